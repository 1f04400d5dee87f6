// The state of something, by shape, word and colour.
import { html } from "../core/view.js";
import { t } from "../core/words.js";
import { Shape } from "./icons.js";

const TONES = {
  PENDING: "quiet", RUNNING: "active", CANCELLING: "warn", COMPLETED: "good", FAILED: "bad", CANCELLED: "quiet",
  SUCCEEDED: "good", done: "good", failed: "bad", skipped: "quiet", IDLE: "good", STOPPED_GRACEFUL: "quiet", DISCONNECTED: "bad",
};

/** @param {string} state */
export const tone = (state) => /** @type {Record<string, string>} */ (TONES)[state] ?? "quiet";

/** A state with its shape and word. @param {{state: string, large?: boolean}} props */
export function Status({ state, large = false }) {
  return html`<span class=${`status tone-${tone(state)}${large ? " large" : ""}`} data-state=${state}><${Shape} state=${state} />${t(`state.${state}`)}</span>`;
}
