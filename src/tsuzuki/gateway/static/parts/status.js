// The state of something, by shape, word and colour.
import { html } from "../core/view.js";
import { link } from "../core/router.js";
import { t } from "../core/words.js";
import { Shape } from "./icons.js";

const TONES = {
  PENDING: "quiet", RUNNING: "active", CANCELLING: "warn", COMPLETED: "good", COMPLETED_WITH_FAILURES: "warn", FAILED: "bad", CANCELLED: "quiet",
  SUCCEEDED: "good", done: "good", failed: "bad", skipped: "quiet", IDLE: "good", STOPPED_GRACEFUL: "quiet", DISCONNECTED: "bad", INTERRUPTED: "warn", LOST: "bad",
};

/** @param {string} state */
export const tone = (state) => /** @type {Record<string, string>} */ (TONES)[state] ?? "quiet";

/** A state with its shape and word. @param {{state: string, large?: boolean}} props */
export function Status({ state, large = false }) {
  return html`<span class=${`status tone-${tone(state)}${large ? " large" : ""}`} data-state=${state}><${Shape} state=${state} />
    ${t(`state.${state}`)}</span>`;
}

const TAIL = 14; // letters at the end of a key, where keys differ

/** A text on one line that is cut in the middle where there is no room. @param {{text: string}} props */
export function Middle({ text }) {
  if (text.length < 2 * TAIL) return text;
  return html`<span class="middle"><span>${text.slice(0, -TAIL)}</span><span>${text.slice(-TAIL)}</span></span>`;
}

/** Where a run goes, and its labels; each leads to the runs that have it. @param {{run: {tag: string, tags: string[]}, all?: boolean}} props `all`: also the usual tag */
export function Labels({ run, all = true }) {
  const labels = run.tags.filter((label) => label !== run.tag);
  const tag = all || run.tag !== "default";
  if (!tag && !labels.length) return null;
  return html`<span class="labels">
    ${tag && html`<a class="label tag" href=${link("/runs", { tag: run.tag })} title=${t("filter.tag")}>${run.tag}</a>`}
    ${labels.map((label) => html`<a key=${label} class="label" href=${link("/runs", { label })} title=${t("filter.label")}>${label}</a>`)}
  </span>`;
}
