// The card of a term: what it means, what it is called too, what people and the review say of it, and where it stands.
import { Dialog, Fact, Waiting, html, number, t, useAsked } from "../../static/parts.js";
import { to } from "./frame.js";

const MOST = 30;

/** @param {{id: string, at: string, term: string, close: () => void, file?: string, places?: any[]}} props `places`: where it stands in the document `file` */
export function TermCard({ id, at, term, close, file, places = [] }) {
  const terms = useAsked(`${at}/terms`), provisional = useAsked(`${at}/provisional`), refined = useAsked(`${at}/refined`), issues = useAsked(`${at}/issues`), files = useAsked(`${at}/files`);
  const all = [terms, provisional, refined, issues, files];
  const late = all.find((asked) => !asked.value);
  if (late) return html`<${Dialog} title=${term} close=${close} side><${Waiting} problem=${late.problem} again=${late.again} /><//>`;
  const named = (/** @type {any} */ asked) => asked.value.find((/** @type {any} */ each) => each.term_name === term);
  const own = terms.value.find((/** @type {any} */ each) => each.term_text === term);
  const entry = named(refined) ?? named(provisional);
  const found = issues.value.filter((/** @type {any} */ each) => each.term_name === term);
  const numbers = new Map(files.value.map((/** @type {any} */ each) => [each.file_name, each.id]));
  const where = (/** @type {any} */ each) => `${each.document_path} · ${t("glossary.line", { n: each.line_number })}`;
  return html`<${Dialog} title=${term} close=${close} side><div class="glossary-card">
    <p class="glossary-long">${entry ? entry.definition : t("glossary.noDefinition")}</p>
    <dl class="facts tight">
      ${own?.category && html`<${Fact} name=${t("glossary.category")}>${t(`glossary.category.${own.category}`)}<//>`}
      ${entry && html`<${Fact} name=${t("glossary.confidence")}>${number(entry.confidence, { style: "percent" })}<//>`}
      ${entry?.aliases.length > 0 && html`<${Fact} name=${t("glossary.aliases")}>${entry.aliases.join(", ")}<//>`}
      ${own?.user_notes && html`<${Fact} name=${t("glossary.notes")}>${own.user_notes}<//>`}
    </dl>
    ${found.length > 0 && html`<h3>${t("glossary.tab.issues")}</h3><ul>${found.map((/** @type {any} */ each) => html`<li key=${each.id}><b>${t(`glossary.issue.${each.issue_type}`)}</b>: ${each.description}</li>`)}</ul>`}
    ${places.length > 0 && html`<h3>${t("glossary.here", { n: places.length })}</h3>
      <ul>${places.slice(0, MOST).map((each) => html`<li key=${`${each.line}:${each.column}`}><a href=${to(`/projects/${id}/files/${file}`, { line: each.line })}>${t("glossary.at", { line: each.line, column: each.column })}</a>${" "}${each.text}</li>`)}</ul>`}
    ${entry?.occurrences.length > 0 && html`<h3>${t("glossary.occurrences")}</h3>
      <ul class="glossary-places">${entry.occurrences.slice(0, MOST).map((/** @type {any} */ each, /** @type {number} */ at) => html`<li key=${at}>
        ${numbers.has(each.document_path) ? html`<a href=${to(`/projects/${id}/files/${numbers.get(each.document_path)}`, { line: each.line_number })}>${where(each)}</a>` : where(each)}
        <blockquote>${each.context}</blockquote></li>`)}</ul>`}
  </div><//>`;
}
