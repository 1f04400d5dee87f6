// What the pages share: addresses, an action whose problem is told in passing, and a list of which a part is shown.
import { LateInput, Problem, html, language, link, t, tell, useState } from "../../static/parts.js";

export const API = "/api/projects";
export const HOME = "/apps/glossary";
export const CATEGORIES = ["person_name", "place_name", "organization", "title", "technical_term", "common_noun"];
const PART = 100;

/** The address of a page of this application. @param {string} path @param {Record<string, unknown>} [query] */
export const to = (path, query) => link(`${HOME}${path}`, query);

/** The text of a field that was changed. @param {(text: string) => void} set */
export const typed = (set) => (/** @type {any} */ event) => set(event.currentTarget.value);

/** Refusals are told in both languages, Japanese first: gives the one of who reads. @param {string} text */
export function said(text) {
  const at = text.indexOf(" / ");
  return at < 0 ? text : language.value === "ja" ? text.slice(0, at) : text.slice(at + 3);
}

/** Does something, and tells where it cannot be done: then it gives null. @param {() => Promise<any>} work @param {string} [done] */
export async function act(work, done) {
  try {
    const answer = await work();
    if (done) tell(done);
    return answer;
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    tell(error.status ? said(error.message) : t("problem.unreachable"), "bad");
    return null;
  }
}

/** Does something for a window that tells problems itself. @param {() => Promise<any>} work */
export async function sent(work) {
  try {
    return await work();
  } catch (error) {
    if (error instanceof Problem) error.message = said(error.message);
    throw error;
  }
}

/** Some of many rows: those with the word that is sought, and more of them when asked for; `show` shows them. @param {{rows: any[], text: (row: any) => string, show: (rows: any[]) => any, more?: any}} props */
export function Some({ rows, text, show, more }) {
  const [sought, setSought] = useState("");
  const [most, setMost] = useState(PART);
  const word = sought.toLowerCase();
  const found = word ? rows.filter((row) => text(row).toLowerCase().includes(word)) : rows;
  return html`<div class="toolbar">${rows.length > 5 && html`<${LateInput} label=${t("glossary.search")} value=${sought} set=${setSought} />`}${more}</div>
    ${show(found.slice(0, most))}
    ${found.length > most && html`<p class="toolbar"><button class="button" onClick=${() => setMost(most + PART)}>${t("glossary.more", { n: found.length - most })}</button></p>`}`;
}
