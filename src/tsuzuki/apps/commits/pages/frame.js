// What the pages share: their tabs, their address, and problems in the language of who reads.
import { Page, Problem, Stale, Tabs, Waiting, ask, half, html, link, t } from "../../static/parts.js";

export const API = "/api/commits";
const HOME = "/apps/commits";

/** The address of a page of this application. @param {string} path @param {Record<string, unknown>} [query] */
export const to = (path, query) => link(`${HOME}${path}`, query);

/** @param {{current: string, actions?: any, children?: any, title?: string}} props */
export function Frame({ current, actions, children, title }) {
  const tabs = [["bulk", "/"], ["sources", "/sources"], ["statistics", "/statistics"]].map(([name, path]) => ({ name, title: t(`commits.${name}`), href: to(path) }));
  return html`<${Page} title=${title ?? t("app.commits")} actions=${actions}>
    <${Tabs} label=${t("app.commits")} tabs=${tabs} current=${current} />
    ${children}
  <//>`;
}

/** A problem in the language of who reads. @param {Problem|null} problem */
const inWords = (problem) => problem && new Problem(problem.status, { detail: half(problem.message), error_id: problem.errorId, errors: problem.fields });

/** @param {{problem: Problem|null, again?: () => void}} props */
export const Until = ({ problem, again }) => html`<${Waiting} problem=${inWords(problem)} again=${again} />`;

/** @param {{problem: Problem|null}} props */
export const Old = ({ problem }) => html`<${Stale} problem=${inWords(problem)} />`;

/** A request whose problem is told in one language. @param {string} path @param {any} how */
export async function sent(path, how) {
  try {
    return await ask(path, how);
  } catch (error) {
    throw error instanceof Problem ? inWords(error) : error;
  }
}
