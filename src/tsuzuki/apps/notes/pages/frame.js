// What the pages share: their addresses, and how states look.
import { Bar, Problem, Waiting, half, html, link, number, t, useRef, useState } from "../../static/parts.js";

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

/** Whether its export is being read: how many notes there will be is not known yet. @param {any} session */
export const reading = (session) => session.active && session.status === "IN_PROGRESS" && !session.total_count;

/** @param {any} session */
export const counts = (session) => reading(session) ? t("notes.readingExport") : ["success", "error", "skipped", "pending"].map((name) => `${t(`notes.${name}`)} ${number(session[`${name}_count`])}`).join(" · ");

/** Who can make the notes. */
export const PROVIDERS = ["offline", "openai", "anthropic", "gemini", "ollama"];

/** A field of a form in a line. @param {any} asked @param {string} name @param {(event: any) => void} set @param {{required?: boolean, placeholder?: string}} [more] */
export const text = (asked, name, set, more = {}) => html`<input type="text" style=${{ flex: "2 1 200px" }} aria-label=${t(`notes.${name}`)} placeholder=${t(`notes.${name}Hint`)} ...${more} value=${asked[name]} onInput=${set} />`;

/** Says who makes the notes. @param {{value: string, set: (event: any) => void, unsaid: string}} props */
export const Maker = ({ value, set, unsaid }) => html`<select aria-label=${t("notes.llm")} value=${value} onChange=${set}><option value="">${unsaid}</option>${PROVIDERS.map((name) => html`<option value=${name}>${name}</option>`)}</select>`;

/** Until a page has something to show; what is wrong is told in the language of who reads. @param {{problem: Problem|null, again?: () => void}} props */
export const Until = ({ problem, again }) => html`<${Waiting} problem=${problem && new Problem(problem.status, { detail: half(problem.message), error_id: problem.errorId, errors: problem.fields })} again=${again} />`;

/**
 * Lets one thing be done at a time: whether something is under way, and what does it unless something is. The second
 * click of a double click comes before the page is drawn anew, so a disabled button alone would not keep it off.
 * @returns {[boolean, (work: () => Promise<unknown>) => Promise<void>]}
 */
export function useOneAtATime() {
  const under = useRef(false);
  const [busy, setBusy] = useState(false);
  const once = async (/** @type {() => Promise<unknown>} */ work) => {
    if (under.current) return;
    under.current = true;
    setBusy(true);
    try {
      await work();
    } finally {
      under.current = false;
      setBusy(false);
    }
  };
  return [busy, once];
}
