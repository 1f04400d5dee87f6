// What the pages share: their tabs, their address, and an action whose problem is told in passing.
import { Page, Problem, Tabs, html, link, t, tell } from "../../static/parts.js";

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

/** Does something, and tells where it cannot be done. @param {() => Promise<unknown>} work @param {string} [done] */
export async function act(work, done) {
  try {
    const answer = await work();
    if (done) tell(done);
    return answer;
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    tell(error.message, "bad");
    return null;
  }
}
