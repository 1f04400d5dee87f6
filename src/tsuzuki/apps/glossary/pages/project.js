// One project: what runs on it and how far that is, and a tab for everything it has.
import { Page, Stale, Tabs, Waiting, html, number, t, useAsked } from "../../static/parts.js";
import { API, to } from "./frame.js";
import { Files } from "./files.js";
import { Findings } from "./findings.js";
import { History } from "./history.js";
import { Provisional } from "./provisional.js";
import { Refined } from "./refined.js";
import { RunButtons, Standing, useRun } from "./running.js";
import { Settings } from "./settings.js";
import { Synonyms } from "./synonyms.js";
import { Terms } from "./terms.js";

const VIEWS = /** @type {Record<string, any>} */ ({ files: Files, terms: Terms, synonyms: Synonyms, provisional: Provisional, issues: Findings, refined: Refined, runs: History, settings: Settings });
const COUNTS = /** @type {Record<string, string>} */ ({ files: "document", terms: "term", provisional: "provisional", issues: "issue", refined: "refined" });

/** @param {{id: string, tab?: string}} props */
export function Project({ id, tab = "files" }) {
  const at = `${API}/${id}`;
  const current = useRun(at);
  const stands = current.run && `${current.run.id} ${current.run.status}`;
  const asked = useAsked(at, { every: current.active ? 1.5 : 5, when: stands }); // a quick run is over before it is seen active
  const above = html`<a href=${to("")}>${t("app.glossary")}</a>`;
  if (!asked.value) return html`<${Page} title=${t("glossary.project")} above=${above}><${Waiting} problem=${asked.problem} again=${asked.again} /><//>`;
  const project = asked.value;
  const shown = tab in VIEWS ? tab : "files";
  const tabs = Object.keys(VIEWS).map((name) => ({ name, href: to(`/projects/${id}/${name}`), title: t(`glossary.tab.${name}`) + (COUNTS[name] ? ` ${number(project[`${COUNTS[name]}_count`])}` : "") }));
  const changed = () => (asked.again(), current.again());
  return html`<${Page} title=${project.name} above=${above} actions=${html`<${RunButtons} at=${at} project=${project} run=${current.run} active=${current.active} again=${changed} />`}>
    <${Stale} problem=${asked.problem ?? current.problem} />
    ${current.run && html`<${Standing} at=${at} run=${current.run} active=${current.active} />`}
    <p class="hint" data-asked=${project.asked_provider}>${project.asked_provider === "offline" ? t("glossary.offline") : t("glossary.asks", { who: `${project.asked_provider} ${project.asked_model}` })} <a href=${to(`/projects/${id}/settings`)}>${t("glossary.tab.settings")}</a></p>
    <${Tabs} label=${project.name} tabs=${tabs} current=${shown} />
    <${VIEWS[shown]} key=${`${id} ${shown}`} id=${id} at=${at} project=${project} active=${current.active} stands=${stands} changed=${changed} />
  <//>`;
}
