// What the review found, by type.
import { Card, Empty, Table, Waiting, go, html, place, t, useAsked, useState } from "../../static/parts.js";
import { TermCard } from "./card.js";
import { HOME, Some } from "./frame.js";

const TYPES = ["", "unclear", "contradiction", "missing_relation", "unnecessary"];

/** @param {{id: string, at: string, active: boolean}} props */
export function Findings({ id, at, active }) {
  const type = TYPES.includes(place.value.query.type) ? place.value.query.type : "";
  const asked = useAsked(`${at}/issues`, { every: active ? 2 : 10, query: type ? { issue_type: type } : {} });
  const [shown, setShown] = useState("");
  const columns = [
    { name: "term", title: t("glossary.term"), cell: (/** @type {any} */ row) => html`<button class="button bare" onClick=${() => setShown(row.term_name)}>${row.term_name}</button>` },
    { name: "type", title: t("glossary.type"), cell: (/** @type {any} */ row) => html`<span class="label">${t(`glossary.issue.${row.issue_type}`)}</span>` },
    { name: "text", title: t("glossary.description"), cell: (/** @type {any} */ row) => html`<div class="glossary-long">${row.description}</div>` },
    { name: "exclude", title: t("glossary.shouldExclude"), cell: (/** @type {any} */ row) => (row.should_exclude ? row.exclusion_reason || t("glossary.yes") : "") },
  ];
  const filter = html`<div class="segments glossary-filter" role="group" aria-label=${t("glossary.type")}>
    ${TYPES.map((name) => html`<button key=${name} class="segment" aria-pressed=${name === type} onClick=${() => go(`${HOME}/projects/${id}/issues`, { type: name })}>${t(name ? `glossary.issue.${name}` : "glossary.all")}</button>`)}</div>`;
  const show = (/** @type {any[]} */ rows) => (rows.length ? html`<${Card} flush><${Table} label=${t("glossary.tab.issues")} columns=${columns} rows=${rows} rowKey=${(/** @type {any} */ row) => row.id} /><//>` : html`<${Empty} title=${t("glossary.noIssues")} />`);
  return html`${asked.value ? html`<${Some} rows=${asked.value} text=${(/** @type {any} */ row) => `${row.term_name} ${row.description}`} show=${show} more=${filter} />` : html`<${Waiting} problem=${asked.problem} again=${asked.again} />`}
    ${shown && html`<${TermCard} id=${id} at=${at} term=${shown} close=${() => setShown("")} />`}`;
}
