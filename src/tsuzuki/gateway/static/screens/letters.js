// Dead letters: runs that failed, kept for those who look after the system; look, replay, drop.
import { html, useState } from "../core/view.js";
import { ask } from "../core/api.js";
import { commands } from "../core/commands.js";
import { useAsked } from "../core/live.js";
import { Time } from "../core/times.js";
import { number, t, word } from "../core/words.js";
import { CommandLine } from "../parts/command.js";
import { Confirm, Dialog, tell } from "../parts/dialog.js";
import { Icon } from "../parts/icons.js";
import { Fact, Page, RunLink } from "../parts/layout.js";
import { Empty, Stale, Waiting } from "../parts/states.js";
import { Labels } from "../parts/status.js";
import { Table } from "../parts/table.js";

/** @typedef {"show"|"replay"|"drop"} Verb */

/** @type {[Verb, string][]} */
const VERBS = [["show", "eye"], ["replay", "play"], ["drop", "bin"]];

export function LettersScreen() {
  const [older, setOlder] = useState(/** @type {Api.Letter[]} */ ([]));
  const [next, setNext] = useState(/** @type {string|null|undefined} */ (undefined));
  const [asking, setAsking] = useState(/** @type {{letter: Api.Letter, verb: Verb}|null} */ (null));
  /** @type {Api.Asked<{items: Api.Letter[], next_cursor: string|null}>} */
  const page = useAsked("/dlq", { every: 5, query: { limit: 50 } });
  const cursor = next === undefined ? page.value?.next_cursor : next;
  const more = async () => {
    const found = await ask("/dlq", { query: { limit: 50, cursor } });
    setOlder([...older, ...found.items]);
    setNext(found.next_cursor);
  };
  const first = page.value?.items ?? [];
  const known = new Set(first.map((letter) => letter.id));
  const rows = [...first, ...older.filter((letter) => !known.has(letter.id))];
  const gone = (/** @type {string} */ id) => {
    setOlder(older.filter((letter) => letter.id !== id));
    page.again();
  };
  let content;
  if (!page.value) content = html`<${Waiting} ...${page} />`;
  else if (!rows.length) content = html`<${Empty} title=${t("letters.none")} text=${t("letters.none.text")} icon="letters" />`;
  else content = html`<${Table} label=${t("nav.letters")} columns=${columns((letter, verb) => setAsking({ letter, verb }))}
    rows=${rows} rowKey=${(/** @type {Api.Letter} */ letter) => letter.id} />
    ${cursor && html`<div class="more"><button class="button" onClick=${more}>${t("table.more")}</button></div>`}`;
  return html`<${Page} title=${t("nav.letters")}>
    <p class="lead">${t("letters.lead")}</p>
    <${Stale} problem=${page.value ? page.problem : null} />
    ${content}
    ${asking && html`<${Question} key=${asking.letter.id + asking.verb} ...${asking} close=${() => setAsking(null)} gone=${gone} />`}
  <//>`;
}

/** @param {Api.Letter} letter */
const reasonOf = (letter) => word(`reason.${letter.reason}`) ?? letter.reason;

/** @param {(letter: Api.Letter, verb: Verb) => void} act */
const columns = (act) => [
  { name: "run", title: t("column.run"), class: "cell-run", cell: (/** @type {Api.Letter} */ letter) =>
    html`<${RunLink} run=${letter.run_id}><b>${letter.flow_name}</b> <span class="run-number">#${letter.number}</span><//>` },
  { name: "reason", title: t("column.reason"), cell: (/** @type {Api.Letter} */ letter) => html`<span class="label" title=${letter.reason}>${reasonOf(letter)}</span>` },
  { name: "error", title: t("column.error"), class: "cell-progress", cell: (/** @type {Api.Letter} */ letter) =>
    html`<span class="error-line" title=${letter.error ?? ""}>${letter.error ?? "–"}</span>` },
  { name: "claims", title: t("column.claims"), class: "figure", cell: (/** @type {Api.Letter} */ letter) => number(letter.num_delivered) },
  { name: "at", title: t("column.at"), class: "cell-time", cell: (/** @type {Api.Letter} */ letter) => html`<${Time} at=${letter.timestamp} />` },
  { name: "act", title: html`<span class="unseen">${t("column.actions")}</span>`, class: "cell-act", cell: (/** @type {Api.Letter} */ letter) =>
    VERBS.map(([verb, icon]) => {
      const label = `${t(`letters.${verb}`)} #${letter.number}`;
      return html`<button key=${verb} class="button bare" data-verb=${verb} aria-label=${label} title=${label}
        onClick=${() => act(letter, verb)}><${Icon} name=${icon} /></button>`;
    }) },
];

/** @param {{letter: Api.Letter, verb: Verb, close: () => void, gone: (id: string) => void}} props */
function Question({ letter, verb, close, gone }) {
  const path = `/dlq/${encodeURIComponent(letter.id)}`;
  const send = async () => {
    await (verb === "replay" ? ask(`${path}/replay`, { method: "POST" }) : ask(path, { method: "DELETE" }));
    tell(t(`letters.${verb}.done`));
    gone(letter.id);
  };
  const content = html`<p>${t(`letters.${verb}.text`)}</p>
    <dl class="facts tight">
      <${Fact} name=${t("column.run")}><${RunLink} run=${letter.run_id}>${letter.flow_name} #${letter.number}<//><//>
      <${Fact} name=${t("column.reason")}><span title=${letter.reason}>${reasonOf(letter)}</span><//>
      <${Fact} name=${t("column.at")}><${Time} at=${letter.timestamp} /><//>
      <${Fact} name=${t("column.claims")}>${number(letter.num_delivered)}<//>
      <${Fact} name=${t("column.worker")}><span class="wordy">${letter.worker_id ?? "–"}</span><//>
      <${Fact} name=${t("column.tags")}><${Labels} run=${letter} /><//>
    </dl>
    ${letter.error && html`<pre class="code" tabindex="0">${letter.error}</pre>`}
    <${CommandLine} line=${commands.letter(verb, letter.id)} />`;
  const title = t(`letters.${verb}.title`);
  if (verb === "show") return html`<${Dialog} title=${title} close=${close}>${content}<//>`;
  return html`<${Confirm} title=${title} button=${t(`letters.${verb}`)} danger=${verb === "drop"} send=${send} close=${close}>${content}<//>`;
}
