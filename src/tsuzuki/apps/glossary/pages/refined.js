// The refined glossary, to read, to correct and to take away as a file.
import { Card, CommandLine, Empty, Icon, Table, Waiting, ask, html, quoted, t, useAsked, useState } from "../../static/parts.js";
import { TermCard } from "./card.js";
import { Some, act } from "./frame.js";
import { Definition } from "./provisional.js";

const FORMATS = ["md", "csv", "json", "tbx"];

/** Gives a text to the person as a file. @param {string} text @param {string} name */
function handOver(text, name) {
  const whole = name.endsWith(".csv") ? `\ufeff${text}` : text; // the browser took the mark away by which Excel knows UTF-8
  const address = URL.createObjectURL(new Blob([whole], { type: "application/octet-stream" }));
  Object.assign(document.createElement("a"), { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

/** @param {{id: string, at: string, project: any, active: boolean, changed: () => void}} props */
export function Refined({ id, at, project, active, changed }) {
  const asked = useAsked(`${at}/refined`, { every: active ? 2 : 10 });
  const [shown, setShown] = useState("");
  if (!asked.value) return html`<${Waiting} problem=${asked.problem} again=${asked.again} />`;
  if (!asked.value.length) return html`<${Empty} title=${t("glossary.noEntries")} text=${t("glossary.noRefinedText")} />`;
  const save = async (/** @type {string} */ format) => {
    const told = await act(() => ask(`${at}/refined/export`, { query: { format } }));
    if (told !== null) handOver(typeof told === "string" ? told : JSON.stringify(told, null, 2), `${project.name}.${format}`);
  };
  const remove = (/** @type {any} */ row) => act(() => ask(`${at}/refined/${row.id}`, { method: "DELETE" })).then(() => (asked.again(), changed()));
  const columns = [
    { name: "term", title: t("glossary.term"), cell: (/** @type {any} */ row) => html`<button class="button bare" onClick=${() => setShown(row.term_name)}>${row.term_name}</button>${row.aliases.length > 0 && html`<br /><small>${row.aliases.join(", ")}</small>`}` },
    { name: "definition", title: t("glossary.definition"), cell: (/** @type {any} */ row) => html`<${Definition} row=${row} at=${`${at}/refined/${row.id}`} done=${asked.again} />` },
    { name: "do", title: html`<span class="unseen">${t("glossary.actions")}</span>`, class: "cell-act", cell: (/** @type {any} */ row) => html`<button class="button bare" aria-label=${`${t("glossary.remove")} ${row.term_name}`} title=${t("glossary.remove")} onClick=${() => remove(row)}><${Icon} name="bin" /></button>` },
  ];
  const show = (/** @type {any[]} */ rows) => html`<${Card} flush><${Table} label=${t("glossary.tab.refined")} columns=${columns} rows=${rows} rowKey=${(/** @type {any} */ row) => row.term_name} /><//>`;
  const exports = html`<span class="toolbar-note">${t("glossary.export")}</span>${FORMATS.map((format) => html`<button key=${format} class="button small" onClick=${() => save(format)}><${Icon} name="jump" />${t(`glossary.format.${format}`)}</button>`)}`;
  return html`<${Some} rows=${asked.value} text=${(/** @type {any} */ row) => `${row.term_name} ${row.definition}`} show=${show} more=${exports} />
    <${CommandLine} line=${`tsuzuki glossary export ${quoted(project.name)} -o glossary.md`} />
    ${shown && html`<${TermCard} id=${id} at=${at} term=${shown} close=${() => setShown("")} />`}`;
}
