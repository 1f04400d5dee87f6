// How far something is: a bar with what is done, failed and left, and when it may end.
import { html } from "../core/view.js";
import { number, t } from "../core/words.js";
import { Time, duration } from "../core/times.js";
import { ACTIVE, underWay } from "../core/shapes.js";

/**
 * A bar; without a total it only shows that something is under way.
 * @param {{done: number, failed?: number, skipped?: number, total?: number|null, label?: string}} props
 */
export function Bar({ done, failed = 0, skipped = 0, total, label }) {
  const whole = total || 0;
  const ended = done + failed + skipped;
  const share = (/** @type {number} */ part) => ({ width: `${whole ? Math.min((100 * part) / whole, 100) : 0}%` });
  const text = label ?? t("progress.label");
  if (!whole) return html`<div class="bar unknown" role="progressbar" aria-label=${text}><i></i></div>`;
  return html`<div class="bar" role="progressbar" aria-label=${text} aria-valuemin="0" aria-valuemax=${whole} aria-valuenow=${Math.min(ended, whole)}>
    <i class="good" style=${share(done)}></i><i class="bad" style=${share(failed)}></i><i class="quiet" style=${share(skipped)}></i>
  </div>`;
}

/** What the maps of a run have to do together. @param {Api.StepProgress[]} steps */
export function together(steps) {
  const sum = { done: 0, failed: 0, skipped: 0, total: /** @type {number|null} */ (0), eta: /** @type {number|null} */ (null) };
  for (const step of steps) {
    sum.done += step.done ?? 0;
    sum.failed += step.failed ?? 0;
    sum.skipped += step.skipped ?? 0;
    sum.total = sum.total === null || step.total === null || step.total === undefined ? null : sum.total + step.total;
    if (step.eta !== null && step.eta !== undefined) sum.eta = Math.max(sum.eta ?? 0, step.eta);
  }
  return steps.length ? sum : null;
}

/** When something may end, in whole seconds: nobody knows it better. @param {number} eta */
export const leftText = (eta) => t("progress.eta", { time: duration(Math.max(Math.round(eta), 1)) });

/** How far a run is, in a line. @param {{run: Api.RunSummary}} props */
export function RunProgress({ run }) {
  const { counts } = run;
  const sum = ACTIVE.has(run.status) ? together(run.progress ?? []) : null;
  if (!sum) return html`<${Tally} counts=${counts} />`;
  const ended = sum.done + sum.failed + sum.skipped;
  const line = sum.total ? `${number(ended)} / ${number(sum.total)}` : t("progress.ended", { n: ended });
  const left = sum.eta !== null && underWay(run) && leftText(sum.eta);
  return html`<div class="progress">
    <${Bar} ...${sum} />
    <span class="progress-text">
      ${line}${sum.failed > 0 && html` · <b class="tone-bad">${t("progress.failed", { n: sum.failed })}</b>`}${left && ` · ${left}`}
    </span>
  </div>`;
}

/** Until when a run waits, and why. @param {{run: Api.RunSummary}} props */
export function WaitLine({ run }) {
  return html`<span class="wait-line">${run.waiting_reason && html`<span class="wordy">${run.waiting_reason}</span> · `}${t("fact.waitsUntil")} <${Time} at=${run.waiting_until} /></span>`;
}

/** What a run has done. @param {{counts: Api.Counts}} props */
export function Tally({ counts }) {
  const parts = [];
  if (counts.done) parts.push(html`<span key="d">${t("count.done", { n: counts.done })}</span>`);
  else if (!counts.skipped && counts.steps) parts.push(html`<span key="n">${t("count.steps", { n: counts.steps })}</span>`);
  if (counts.failed) parts.push(html`<b key="f" class="tone-bad">${t("count.failed", { n: counts.failed })}</b>`);
  if (counts.skipped) parts.push(html`<span key="s">${t("count.skipped", { n: counts.skipped })}</span>`);
  return parts.length ? html`<span class="tally">${parts}</span>` : html`<span class="none">–</span>`;
}
