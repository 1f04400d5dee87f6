// What the pages share: their addresses, and how states look.
import { Bar, html, link, t } from "../../static/parts.js";

export const API = "/api/notes";
const HOME = "/apps/notes";
const TONES = /** @type {Record<string, string>} */ ({
  COMPLETED: "good", PARTIAL: "warn", FAILED: "bad", CRASHED: "bad", IN_PROGRESS: "active", PENDING: "quiet",
  success: "good", failed: "bad", skipped: "quiet", pending: "quiet",
});

/** The address of a page of this application. @param {string} path */
export const to = (path) => link(`${HOME}${path}`);

/** @param {{state: string}} props */
export const State = ({ state }) => html`<span class=${`tone-${TONES[state] ?? "quiet"}`} data-state=${state}>${t(`notes.state.${state}`)}</span>`;

/** How far a session is; one that nobody works on and that has nothing does not look as if it went on. @param {any} session */
export const progress = (session) => (session.total_count || session.active) && html`<${Bar} done=${session.success_count} failed=${session.error_count} skipped=${session.skipped_count} total=${session.total_count} label=${t("notes.progress")} />`;

/** @param {any} session */
export const counts = (session) => ["success", "error", "skipped", "pending"].map((name) => `${t(`notes.${name}`)} ${session[`${name}_count`]}`).join(" · ");
