// A document with its terms highlighted; each leads to the card of the term. Long documents are turned by pages.
import { Card, Page, Waiting, go, html, place, t, useAsked, useEffect, useMemo, useRef } from "../../static/parts.js";
import { TermCard } from "./card.js";
import { API, HOME, to } from "./frame.js";

const PAGE = 400; // lines

/** @param {{id: string, file: string}} props */
export function Viewer({ id, file }) {
  const at = `${API}/${id}`;
  const own = `/projects/${id}/files/${file}`;
  const project = useAsked(at);
  const asked = useAsked(`${at}/files/${file}`);
  const found = useAsked(`${at}/files/${file}/occurrences`);
  const { line = "", term = "" } = place.value.query;
  const above = html`<a href=${to("")}>${t("app.glossary")}</a> <a href=${to(`/projects/${id}/files`)}>${project.value?.name ?? id}</a>`;
  if (!asked.value) return html`<${Page} title=${t("glossary.document")} above=${above}><${Waiting} problem=${asked.problem} again=${asked.again} /><//>`;
  const places = found.value ?? [];
  const count = new Set(places.map((/** @type {any} */ each) => each.term)).size;
  return html`<${Page} title=${asked.value.file_name} above=${above}>
    <p class="lead">${t("glossary.seen", { terms: count, n: places.length })}</p>
    <${Text} own=${own} content=${asked.value.content} places=${places} line=${Number(line) || 0} term=${term} />
    ${term && html`<${TermCard} key=${term} id=${id} at=${at} file=${file} term=${term} places=${places.filter((/** @type {any} */ each) => each.term === term)}
      close=${() => place.peek().query.term && go(`${HOME}${own}`, { line }, { replace: true })} />`}
  <//>`;
}

/** @param {{own: string, content: string, places: any[], line: number, term: string}} props */
function Text({ own, content, places, line, term }) {
  const lines = useMemo(() => content.split("\n"), [content]);
  const byLine = useMemo(() => byTheirLine(places), [places]);
  const first = Math.floor(Math.max(Math.min(line, lines.length) - 1, 0) / PAGE) * PAGE;
  const here = useRef(/** @type {HTMLElement|null} */ (null));
  useEffect(() => void (line && requestAnimationFrame(() => requestAnimationFrame(() => here.current?.scrollIntoView({ block: "nearest" })))), [line, content]);
  const turn = (/** @type {number} */ to) => () => go(`${HOME}${own}`, { line: to + 1 });
  const pages = lines.length > PAGE && html`<p class="toolbar">
    <button class="button" disabled=${first === 0} onClick=${turn(first - PAGE)}>${t("glossary.before")}</button>
    <span>${t("glossary.lines", { from: first + 1, to: Math.min(first + PAGE, lines.length), all: lines.length })}</span>
    <button class="button" disabled=${first + PAGE >= lines.length} onClick=${turn(first + PAGE)}>${t("glossary.after")}</button></p>`;
  return html`${pages}<${Card}><div class="glossary-text" role="document">
    ${lines.slice(first, first + PAGE).map((text, at) => {
      const number = first + at + 1;
      return html`<div key=${number} class=${`glossary-line${number === line ? " here" : ""}`} ref=${number === line ? here : undefined} data-line=${number}>
        <small>${number}</small><span>${marked(text.replace(/\r$/, ""), byLine.get(number) ?? [], own, term)}</span></div>`;
    })}
  </div><//>${pages}`;
}

/** @param {any[]} places @returns {Map<number, any[]>} */
function byTheirLine(places) {
  const found = new Map();
  for (const each of places) (found.get(each.line) ?? found.set(each.line, []).get(each.line)).push(each);
  return found;
}

/** A line in pieces: texts, and links for terms. Columns count characters, of which some are two units here. @param {string} text @param {any[]} places @param {string} own @param {string} term */
function marked(text, places, own, term) {
  if (!places.length) return text || " ";
  const letters = [...text];
  const pieces = [];
  let end = 0;
  for (const each of places) {
    const start = each.column - 1;
    pieces.push(letters.slice(end, start).join(""));
    pieces.push(html`<a key=${start} class=${`glossary-mark${each.term === term ? " chosen" : ""}`} data-term=${each.term} title=${each.term} href=${to(own, { line: each.line, term: each.term })}>${letters.slice(start, start + each.length).join("")}</a>`);
    end = start + each.length;
  }
  return [...pieces, letters.slice(end).join("")];
}
