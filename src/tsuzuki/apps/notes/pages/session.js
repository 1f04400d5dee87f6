// One session: how far it is, what one can do with it, what failed and why, and its notes to look at.
import { Card, CommandLine, Dialog, Empty, Fact, Page, RunLink, Stale, Table, Waiting, act, ask, half, html, number, t, useAsked, useState } from "../../static/parts.js";
import { API, State, counts, progress, to } from "./frame.js";

const SHOWN = 50;

/** @param {{id: string}} props */
export function Session({ id }) {
  const at = `${API}/sessions/${id}`;
  const asked = useAsked(at, { every: 1 });
  const above = html`<a href=${to("/")}>${t("app.notes")}</a>`;
  if (!asked.value) return html`<${Page} title=${id} above=${above}><${Waiting} problem=${asked.problem} again=${asked.again} /><//>`;
  const session = asked.value;
  return html`<${Page} title=${session.source} above=${above} actions=${html`<${Actions} at=${at} session=${session} again=${asked.again} />`}>
    <${Stale} problem=${asked.problem} />
    <${Standing} session=${session} />
    <${Failed} at=${at} session=${session} />
    <${Skipped} at=${at} session=${session} again=${asked.again} />
    <${Items} at=${at} session=${session} />
    <${CommandLine} line=${`tsuzuki notes status ${id}`} />
  <//>`;
}

/** @param {{at: string, session: any, again: () => void}} props */
function Actions({ at, session, again }) {
  const send = (/** @type {string} */ verb) => () => act(() => ask(`${at}/${verb}`, { method: "POST" })).then(again);
  if (session.active) return html`<button class="button danger" onClick=${send("cancel")}>${t("notes.cancel")}</button>`;
  return html`${session.success_count > 0 && html`<button class="button" onClick=${() => act(() => download(at, session))}>${t("notes.download")}</button>`}
    ${session.retryable_count > 0 && html`<button class="button" onClick=${send("retry")}>${t("notes.retry")}</button>`}
    ${(session.status === "CRASHED" || session.pending_count + session.retryable_count > 0) && html`<button class="button primary" onClick=${send("resume")}>${t("notes.resume")}</button>`}`;
}

/** @param {{session: any}} props */
function Standing({ session }) {
  return html`<${Card} title=${html`<${State} state=${session.status} />`}>
    ${progress(session)}
    <p>${counts(session)} / ${number(session.total_count)}</p>
    <dl class="facts tight">
      <${Fact} name=${t("notes.session")}>${session.session_id}<//>
      <${Fact} name=${t("notes.provider")}>${session.provider}<//>
      <${Fact} name=${t("notes.vault")}>${session.vault}<//>
      ${session.cost !== null && html`<${Fact} name=${t("notes.cost")}>$${session.cost.toFixed(4)}<//>`}
      ${session.run_number && html`<${Fact} name=${t("notes.run")}><${RunLink} run=${session.run_number} /><//>`}
    </dl>
    ${session.error && html`<p class="notice tone-bad" role="alert">${half(session.error)}</p>`}
  <//>`;
}

/** Conversations that failed, with their reasons. @param {{at: string, session: any}} props */
function Failed({ at, session }) {
  const asked = useAsked(session.error_count ? `${at}/failed` : null, { query: { n: session.error_count } });
  if (!session.error_count || !asked.value) return null;
  const columns = [
    { name: "title", title: t("notes.conversation"), cell: (/** @type {any} */ row) => html`<span class="wordy">${row.title}</span>` },
    { name: "stage", title: t("notes.stage"), cell: (/** @type {any} */ row) => t(`notes.stage.${row.stage}`) },
    { name: "reason", title: t("notes.reason"), cell: (/** @type {any} */ row) => half(row.error_message) },
  ];
  return html`<${Card} title=${t("notes.failed")} flush>
    <${Table} label=${t("notes.failed")} columns=${columns} rows=${asked.value.slice(0, SHOWN)} rowKey=${(/** @type {any} */ row) => row.item_id} />
  <//>`;
}

/** Conversations that were passed over, and why; long ones can be cut. @param {{at: string, session: any, again: () => void}} props */
function Skipped({ at, session, again }) {
  const asked = useAsked(session.skipped_count ? `${at}/items` : null, { query: { state: "skipped", limit: SHOWN, n: session.skipped_count } });
  if (!session.skipped_count || !asked.value) return null;
  const columns = [
    { name: "title", title: t("notes.conversation"), cell: (/** @type {any} */ row) => html`<span class="wordy">${row.title || row.item_id}</span>` },
    { name: "reason", title: t("notes.reason"), cell: (/** @type {any} */ row) => t(`notes.skip.${row.reason}`) },
  ];
  const long = !session.active && asked.value.items.some((/** @type {any} */ row) => row.reason === "too_large");
  const cut = () => act(() => ask(`${at}/resume`, { method: "POST", body: { chunk: true } })).then(again);
  return html`<${Card} title=${t("notes.skippedTitle")} flush>
    ${long && html`<p class="toolbar"><button class="button" onClick=${cut}>${t("notes.cut")}</button></p>`}
    <${Table} label=${t("notes.skippedTitle")} columns=${columns} rows=${asked.value.items} rowKey=${(/** @type {any} */ row) => row.item_id} />
  <//>`;
}

/** Gives all notes to the person as a ZIP. @param {string} at @param {any} session */
async function download(at, session) {
  const address = URL.createObjectURL(await ask(`${at}/notes.zip`));
  Object.assign(document.createElement("a"), { href: address, download: `${session.source}-notes.zip` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

/** @param {{at: string, session: any}} props */
function Items({ at, session }) {
  const [from, setFrom] = useState(0);
  const [shown, setShown] = useState(/** @type {any} */ (null));
  const asked = useAsked(`${at}/items`, { query: { state: "success", offset: from, limit: SHOWN }, every: session.active ? 2 : 0, when: !session.active && session.success_count }); // what was quick was never seen active
  const columns = [
    { name: "title", title: t("notes.note"), cell: (/** @type {any} */ row) => html`<button class="button bare" onClick=${() => setShown(row)}>${row.title}</button>` },
    { name: "id", title: t("notes.item"), cell: (/** @type {any} */ row) => html`<small class="wordy">${row.item_id}</small>` },
  ];
  const { total = 0, items = [] } = asked.value ?? {};
  const turn = (/** @type {number} */ by) => () => setFrom(Math.max(from + by, 0));
  return html`<${Card} title=${`${t("notes.notes")} (${number(total)})`} flush>
      ${items.length ? html`<${Table} label=${t("notes.notes")} columns=${columns} rows=${items} rowKey=${(/** @type {any} */ row) => row.item_id} />` : html`<${Empty} title=${t("notes.noNotes")} />`}
    <//>
    ${total > SHOWN && html`<p class="toolbar">
      <button class="button" disabled=${from === 0} onClick=${turn(-SHOWN)}>${t("notes.before")}</button>
      <button class="button" disabled=${from + SHOWN >= total} onClick=${turn(SHOWN)}>${t("notes.after")}</button></p>`}
    ${shown && html`<${Preview} at=${at} item=${shown} close=${() => setShown(null)} />`}`;
}

/** A note as it stands in the vault. @param {{at: string, item: any, close: () => void}} props */
function Preview({ at, item, close }) {
  const asked = useAsked(`${at}/note`, { query: { item: item.item_id } });
  return html`<${Dialog} title=${item.title} close=${close} side>
    ${asked.value ? html`<p><small>${asked.value.path}</small></p><pre class="code">${asked.value.text || t("notes.gone")}</pre>` : html`<${Waiting} problem=${asked.problem} again=${asked.again} />`}
  <//>`;
}
