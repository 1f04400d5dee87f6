// What the pages share: addresses, an action whose problem is told in passing, and a list of which a part is shown.
import { LateInput, Problem, act as acting, half, html, language, link, t, useState } from "../../static/parts.js";

export const API = "/api/projects";
export const HOME = "/apps/glossary";
export const CATEGORIES = ["person_name", "place_name", "organization", "title", "technical_term", "common_noun"];
const PART = 100;

/** The address of a page of this application. @param {string} path @param {Record<string, unknown>} [query] */
export const to = (path, query) => link(`${HOME}${path}`, query);

/** The text of a field that was changed. @param {(text: string) => void} set */
export const typed = (set) => (/** @type {any} */ event) => set(event.currentTarget.value);

/** What is always said in the same English words, as programs rely on them: where in the dictionary it is. @type {[RegExp, string][]} */
const KNOWN = [
  [/^Run already running: (?<n>\d+)$/, "active"], [/^Cannot execute pipeline without documents$/, "noDocuments"],
  [/^Cannot execute .+ without extracted terms$/, "noTerms"], [/^Cannot execute .+ without provisional glossary$/, "noProvisional"],
  [/^Review cancelled$/, "reviewCancelled"], [/^Run failed: (?<why>.*)$/s, "failed"], [/^request too large/, "tooLarge"],
  [/^there is no provider '(?<name>.*?)'/, "noProvider"],
];

/** What the server says, for who reads: known sentences by the dictionary, refusals by their half, Japanese first. @param {string} text @returns {string} */
export function said(text) {
  for (const [form, key] of language.value === "ja" ? KNOWN : []) {
    const found = form.exec(text);
    if (found) return t(`glossary.said.${key}`, { ...found.groups, ...(found.groups?.why === undefined ? {} : { why: said(found.groups.why) }) });
  }
  const failed = language.value === "ja" ? null : /^Run failed: (?=.* \/ )/s.exec(text);
  return (failed?.[0] ?? "") + half(text);
}

/** Does something, and tells where it cannot be done: then it gives null. @param {() => Promise<any>} work @param {string} [done] */
export const act = (work, done) => acting(work, done, said);

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
