// What is shown when there is nothing to show: it is empty, under way, went wrong, cannot be reached.
import { html } from "../core/view.js";
import { Problem, reach } from "../core/api.js";
import { t, word } from "../core/words.js";
import { Icon } from "./icons.js";

/** @param {{title: string, text?: string, icon?: string, children?: any}} props */
export function Empty({ title, text, icon = "runs", children }) {
  return html`<div class="blank">
    <div class="blank-mark"><${Icon} name=${icon} /></div>
    <p class="blank-title">${title}</p>
    ${text && html`<p class="blank-text">${text}</p>`} ${children}
  </div>`;
}

/** Grey lines where rows will be. @param {{rows?: number}} props */
export function Loading({ rows = 5 }) {
  return html`<div class="loading" role="status" aria-label=${t("state.loading")}>
    ${Array.from({ length: rows }, (_, number) => html`<div class="loading-row" key=${number}><i class=${`w${number % 4}`}></i></div>`)}
  </div>`;
}

/** Says what went wrong, in words of what to do. @param {Problem} problem */
function problemText(problem) {
  if (problem.status === 0) return t("problem.unreachable");
  return word(`error.${problem.errorId.slice(-4)}`) ?? problem.message;
}

/** What the gateway itself says, where that says more. @param {Problem} problem */
const detailOf = (problem) => (problem.status && problemText(problem) !== problem.message ? problem.message : "");

/** What a run failed of, in words: an unknown flow is a sentence instead of its code. @param {{error: string|null, flow_name: string, tag: string}} run */
export const errorText = (run) => (run.error?.startsWith("flow_not_found") ? t("trouble.flow", { flow: run.flow_name, tag: run.tag }) : run.error ?? "");

/** What went wrong and what to do, and below it what the gateway says. @param {{problem: Problem, listed?: boolean, children?: any}} props `listed`: the children say it, one by one */
export function Explained({ problem, listed = false, children }) {
  return html`<div class="notice tone-bad" role="alert"><${Icon} name="warn" /><div>
    <p>${problemText(problem)}</p>${!listed && detailOf(problem) && html`<p class="detail">${detailOf(problem)}</p>`}${children}</div></div>`;
}

/** @param {{problem: Problem, again?: () => void, children?: any}} props */
export function Failure({ problem, again, children }) {
  return html`<div class="blank" role="alert">
    <div class="blank-mark bad"><${Icon} name="warn" /></div>
    <p class="blank-title">${t(problem.status === 404 ? "problem.missing" : problem.status === 403 ? "problem.refused" : "problem.title")}</p>
    <p class="blank-text">${problemText(problem)}</p>
    ${(problem.errorId || detailOf(problem)) && html`<p class="blank-code">${[detailOf(problem), problem.errorId].filter(Boolean).join(" · ")}</p>`}
    ${children}
    ${again && html`<button class="button" onClick=${again}><${Icon} name="again" />${t("action.again")}</button>`}
  </div>`;
}

/** While there is nothing to show: what went wrong, or that it comes. @param {{problem: Problem|null, again?: () => void, rows?: number}} props */
export function Waiting({ problem, again, rows }) {
  return problem ? html`<${Failure} problem=${problem} again=${again} />` : html`<${Loading} rows=${rows} />`;
}

/** One line over what is still shown, when news cannot be had. @param {{problem: Problem|null}} props */
export function Stale({ problem }) {
  if (!problem) return null;
  return html`<p class="notice tone-warn" role="status"><${Icon} name="warn" /><span>${t("problem.stale")} ${problemText(problem)}</span></p>`;
}

/** Where the gateway or its store cannot be reached, everywhere. */
export function Reach() {
  if (reach.value === "live") return null;
  return html`<p class="banner" role="status" data-reach=${reach.value}><${Icon} name="warn" />${t(`reach.${reach.value}`)}</p>`;
}
