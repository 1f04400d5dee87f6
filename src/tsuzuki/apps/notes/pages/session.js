// One session: how far it is, what one can do with it, what failed and why, and its notes to look at.
import { Card, CommandLine, Dialog, Empty, Fact, LateInput, Page, RunLink, Stale, Table, act, ask, half, html, number, t, useAsked, useState } from "../../static/parts.js";
import { API, Maker, State, Until, counts, progress, reading, text, to, useOneAtATime } from "./frame.js";

const SHOWN = 50;
const AS_BEFORE = { vault: "", llm: "", model: "" };

/** @param {{id: string}} props */
export function Session({ id }) {
  const at = `${API}/sessions/${id}`;
  const asked = useAsked(at, { every: 1 });
  const [changes, setChanges] = useState(AS_BEFORE);
  const doing = useDoing(at, asked.again, changes, () => setChanges(AS_BEFORE));
  const above = html`<a href=${to("/")}>${t("app.notes")}</a>`;
  if (!asked.value) return html`<${Page} title=${id} above=${above}><${Until} problem=${asked.problem} again=${asked.again} /><//>`;
  const session = asked.value;
  return html`<${Page} title=${session.source} above=${above} actions=${html`<${Actions} at=${at} session=${session} doing=${doing} />`}>
    <${Stale} problem=${asked.problem} />
    <${Standing} session=${session} />
    ${!session.active && unfinished(session) && html`<${Elsewhere} session=${session} changes=${changes} set=${setChanges} />`}
    <${Failed} at=${at} session=${session} />
    <${Skipped} at=${at} session=${session} doing=${doing} />
    <${Notes} at=${at} session=${session} />
    <${CommandLine} line=${`tsuzuki notes status ${id}`} />
  <//>`;
}

/** @typedef {{busy: boolean, once: (work: () => Promise<unknown>) => Promise<void>, send: (verb: string, body?: unknown) => (event: MouseEvent) => void}} Doing */

/**
 * What is done with a session: one thing at a time, whichever button is pressed; who goes on takes along what is to change.
 * @param {string} at @param {() => void} again @param {Record<string, string>} changes @param {() => void} changed @returns {Doing}
 */
function useDoing(at, again, changes, changed) {
  const [busy, once] = useOneAtATime();
  const said = changes.llm === "offline" ? { ...changes, model: "" } : changes; // what is not shown is not asked for
  const named = Object.fromEntries(Object.entries(said).filter(([, value]) => value.trim()));
  const send = (/** @type {string} */ verb, /** @type {any} */ more = {}) => (/** @type {MouseEvent} */ event) => {
    if (event.detail > 1) return; // where "Go on" was, "Cancel" may be by the second click of a double click
    const body = verb === "cancel" ? undefined : { ...named, ...more };
    void once(() => act(() => ask(`${at}/${verb}`, { method: "POST", body }).then(changed)).then(again));
  };
  return { busy, once, send };
}

/** @param {{at: string, session: any, doing: Doing}} props */
function Actions({ at, session, doing: { busy, once, send } }) {
  if (session.active) return html`<button class="button danger" disabled=${busy} onClick=${send("cancel")}>${t("notes.cancel")}</button>`;
  return html`${session.success_count > 0 && html`<button class="button" disabled=${busy} onClick=${() => once(() => act(() => download(at, session)))}>${t("notes.download")}</button>`}
    ${session.retryable_count > 0 && !session.owed_batches.length && html`<button class="button" disabled=${busy} onClick=${send("retry")}>${t("notes.retry")}</button>`}
    ${unfinished(session) && html`<button class="button primary" disabled=${busy} onClick=${send("resume")}>${t("notes.resume")}</button>`}`;
}

/** Whether there is something to go on with: also where it was stopped before it had read its export. @param {any} session */
function unfinished(session) {
  const stopped = session.status === "CRASHED" || (session.status !== "COMPLETED" && session.total_count === 0);
  return !session.export_unreadable && (stopped || session.pending_count + session.retryable_count > 0);
}

/** Lets whoever named a wrong vault or model name another, with which it goes on. @param {{session: any, changes: any, set: (changes: any) => void}} props */
function Elsewhere({ session, changes, set }) {
  const change = (/** @type {string} */ name) => (/** @type {any} */ event) => set({ ...changes, [name]: event.target.value });
  return html`<details class="fold"><summary>${t("notes.elsewhere")}</summary>
    <p class="hint">${t("notes.elsewhereText")}</p>
    <div class="toolbar">${session.vault && text(changes, "vault", change("vault"), { placeholder: session.vault })}
      <${Maker} value=${changes.llm} set=${change("llm")} unsaid=${t("notes.asBefore")} />
      ${changes.llm !== "offline" && text(changes, "model", change("model"))}</div>
  </details>`;
}

/** How many conversations of an export were read so far. @param {{session: any}} props */
function Reading({ session }) {
  const run = useAsked(`/runs/${session.run_id}`, { every: 1 });
  const read = (run.value?.progress ?? []).reduce((/** @type {number} */ sum, /** @type {any} */ step) => sum + (step.done ?? 0), 0);
  return html`<p>${t("notes.readingExport")}${read > 0 && ` ${t("notes.readSoFar", { n: number(read) })}`}</p>`;
}

/** @param {{session: any}} props */
function Standing({ session }) {
  return html`<${Card} title=${html`<${State} state=${session.status} />`}>
    ${progress(session)}
    ${reading(session) ? html`<${Reading} session=${session} />` : html`<p>${counts(session)} / ${number(session.total_count)}</p>`}
    <dl class="facts tight">
      <${Fact} name=${t("notes.session")}>${session.session_id}<//>
      <${Fact} name=${t("notes.provider")}>${session.provider}<//>
      ${session.vault && html`<${Fact} name=${t("notes.vault")}>${session.vault}<//>`}
      ${session.cost !== null && html`<${Fact} name=${t("notes.cost")}>$${session.cost.toFixed(4)}<//>`}
      ${session.owed_batches.length > 0 && html`<${Fact} name=${t("notes.owed")}>${session.owed_batches.map((/** @type {string} */ batch) => (batch === "unclear" ? t("notes.unclear") : batch)).join(", ")}<//>`}
      ${session.run_number && html`<${Fact} name=${t("notes.run")}><${RunLink} run=${session.run_number} /><//>`}
    </dl>
    ${session.error && html`<p class="notice tone-bad" role="alert">${half(session.error)}</p>`}
    ${session.skipped_reasons.too_large > 0 && html`<p class="notice tone-warn" role="alert">${t("notes.tooLong", { n: number(session.skipped_reasons.too_large) })}</p>`}
    ${session.export_unreadable && html`<p>${t("notes.newExport")}</p>`}
  <//>`;
}

/** Tells items apart whose titles are the same. */
const item = () => ({ name: "id", title: t("notes.item"), cell: (/** @type {any} */ row) => html`<small class="wordy">${row.item_id}</small>` });

/**
 * The items of a session that are in a state, a page at a time. How many there are is what the session says, so that no
 * two numbers on the page differ; what is on the page follows a moment later.
 * @param {{at: string, session: any, state: string, count: number, title: string, columns: any[], children?: any, search?: boolean}} props
 */
function Items({ at, session, state, count: all, title, columns, children, search = false }) {
  const [wanted, setFrom] = useState(0);
  const [q, setQ] = useState("");
  const from = q ? wanted : Math.min(wanted, Math.floor(Math.max(all - 1, 0) / SHOWN) * SHOWN); // a retry leaves fewer pages
  const asked = useAsked(all ? `${at}/items` : null, { query: { state, offset: from, limit: SHOWN, ...(q && { q }) }, every: session.active ? 1 : 0, when: !session.active && `${session.run_number} ${all}` }); // what was quick was never seen active
  const rows = (all && asked.value?.items) || [];
  const count = q ? asked.value?.total ?? 0 : all;
  const turn = (/** @type {number} */ by) => () => setFrom(from + by);
  return html`<${Card} title=${`${title} (${number(all)})`} flush>
      ${children}
      ${search && all > SHOWN && html`<div class="toolbar"><${LateInput} value=${q} label=${t("notes.search")} set=${(/** @type {string} */ words) => (setQ(words), setFrom(0))} more=${{ type: "search", style: { flex: "1 1 200px" } }} /></div>`}
      ${rows.length ? html`<${Table} label=${title} columns=${columns} rows=${rows} rowKey=${(/** @type {any} */ row) => row.item_id} />` : html`<${Empty} title=${t(q && asked.value ? "notes.notFound" : all ? "notes.reading" : "notes.noNotes")} />`}
    <//>
    ${count > SHOWN && html`<p class="toolbar" role="group" aria-label=${title}>
      <button class="button" disabled=${from === 0} onClick=${turn(-SHOWN)}>${t("notes.before")}</button>
      <span>${number(from + 1)}–${number(Math.min(from + SHOWN, count))} / ${number(count)}</span>
      <button class="button" disabled=${from + SHOWN >= count} onClick=${turn(SHOWN)}>${t("notes.after")}</button></p>`}`;
}

/** Conversations that failed, with their reasons. @param {{at: string, session: any}} props */
function Failed({ at, session }) {
  if (!session.error_count) return null;
  const columns = [
    { name: "title", title: t("notes.conversation"), cell: (/** @type {any} */ row) => html`<span class="wordy">${row.title || row.item_id}</span>` },
    item(),
    { name: "stage", title: t("notes.stage"), cell: (/** @type {any} */ row) => t(`notes.stage.${row.stage}`) },
    { name: "reason", title: t("notes.reason"), cell: (/** @type {any} */ row) => html`<span class="wordy">${half(row.reason)}</span>` },
  ];
  return html`<${Items} at=${at} session=${session} state="failed" count=${session.error_count} title=${t("notes.failed")} columns=${columns} />`;
}

/** Conversations that were passed over, and why; long ones can be cut. @param {{at: string, session: any, doing: Doing}} props */
function Skipped({ at, session, doing }) {
  if (!session.skipped_count) return null;
  const long = session.skipped_reasons.too_large ?? 0;
  const may = !session.active && !session.owed_batches.length;
  const columns = [
    { name: "title", title: t("notes.conversation"), cell: (/** @type {any} */ row) => html`<span class="wordy">${row.title || row.item_id}</span>` },
    item(),
    { name: "reason", title: t("notes.reason"), cell: (/** @type {any} */ row) => t(`notes.skip.${row.reason}`) },
  ];
  return html`<${Items} at=${at} session=${session} state="skipped" count=${session.skipped_count} title=${t("notes.skippedTitle")} columns=${columns}>
    ${may && long > 0 && html`<p class="toolbar"><button class="button" disabled=${doing.busy} onClick=${doing.send("resume", { chunk: true })}>${t("notes.cut")} (${number(long)})</button></p>`}
  <//>`;
}

/** Gives all notes to the person as a ZIP. @param {string} at @param {any} session */
async function download(at, session) {
  const address = URL.createObjectURL(await ask(`${at}/notes.zip`));
  Object.assign(document.createElement("a"), { href: address, download: `${session.source.replace(/\.(zip|jsonl?|md|markdown|txt)$/i, "")}-notes.zip` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

/** @param {{at: string, session: any}} props */
function Notes({ at, session }) {
  const [shown, setShown] = useState(/** @type {any} */ (null));
  const columns = [
    { name: "title", title: t("notes.note"), cell: (/** @type {any} */ row) => html`<button class="button bare" onClick=${() => setShown(row)}>${row.title}</button>` },
    item(),
  ];
  return html`<${Items} at=${at} session=${session} state="success" count=${session.success_count} title=${t("notes.notes")} columns=${columns} search />
    ${shown && html`<${Preview} at=${at} item=${shown} close=${() => setShown(null)} />`}`;
}

/** A note as it stands in the vault. @param {{at: string, item: any, close: () => void}} props */
function Preview({ at, item, close }) {
  const asked = useAsked(`${at}/note`, { query: { item: item.item_id } });
  return html`<${Dialog} title=${item.title} close=${close} side>
    ${asked.value ? html`<p><small>${asked.value.path}</small></p><pre class="code" style=${{ maxHeight: "none" }}>${asked.value.text || t("notes.gone")}</pre>` : html`<${Until} problem=${asked.problem} again=${asked.again} />`}
  <//>`;
}
