// What one can do with runs: asked once more with a preview of what will happen, and its command line.
import { html, signal, useEffect, useState } from "../core/view.js";
import { Problem, ask } from "../core/api.js";
import { commands } from "../core/commands.js";
import { place } from "../core/router.js";
import { cancellable, removable, resumable, stateOf, waits } from "../core/shapes.js";
import { number, t } from "../core/words.js";
import { CommandLine, Copy } from "./command.js";
import { Confirm, tell } from "./dialog.js";
import { Bar } from "./progress.js";
import { Status } from "./status.js";

/** @typedef {"cancel"|"resume"|"wake"|"remove"} Verb */

const AT_ONCE = 6; // requests under way at a time
const LISTED = 12;

/** @type {Record<Verb, {may: (run: Api.RunSummary) => boolean, command: (run: Api.RunSummary, how: How) => string, send: (run: Api.RunSummary, how: How) => Promise<any>}>} */
const VERBS = {
  cancel: {
    may: cancellable,
    command: (run, how) => commands.cancel(run.number, how.reason),
    send: (run, how) => ask(`/runs/${run.run_id}/cancel`, { method: "POST", body: how.reason ? { reason: how.reason } : {} }),
  },
  resume: {
    may: resumable,
    command: (run, how) => commands.resume(run.number, how.failed),
    send: (run, how) => ask(`/runs/${run.run_id}/resume`, { method: "POST", body: { failed: how.failed } }),
  },
  wake: {
    may: waits,
    command: (run) => commands.resume(run.number),
    send: (run) => ask(`/runs/${run.run_id}/resume`, { method: "POST", body: {} }),
  },
  remove: {
    may: removable,
    command: (run) => commands.remove(run.number),
    send: (run) => ask(`/runs/${run.run_id}`, { method: "DELETE" }),
  },
};
/** @typedef {{reason: string, failed: boolean}} How */

/** What is asked about now. @type {Api.Signal<{verb: Verb, runs: Api.RunSummary[], done: (ids: Set<string>) => void}|null>} */
const asked = signal(null);

/** Asks whether something is to be done. @param {Verb} verb @param {Api.RunSummary[]} runs @param {(ids: Set<string>) => void} [done] */
export function askFor(verb, runs, done = () => {}) {
  asked.value = { verb, runs, done };
}

/** Whether a verb means anything to a run. @param {Verb} verb @param {Api.RunSummary} run */
export const mayBe = (verb, run) => VERBS[verb].may(run);

/** The question that is open, if one is; it was asked of a page, and goes with it. */
export function Question() {
  const here = place.value.path;
  useEffect(() => () => void (asked.value = null), [here]);
  return asked.value && html`<${Preview} key=${asked.value.verb} ...${asked.value} close=${() => (asked.value = null)} />`;
}

/** @param {{verb: Verb, runs: Api.RunSummary[], done: (ids: Set<string>) => void, close: () => void}} props */
function Preview({ verb, runs, done, close }) {
  const [how, setHow] = useState({ reason: "", failed: true });
  const [ended, setEnded] = useState(0);
  const fit = runs.filter(VERBS[verb].may);
  const rest = runs.filter((run) => !VERBS[verb].may(run));
  const send = async () => {
    const { gone, problems } = await each(fit, (run) => VERBS[verb].send(run, how), setEnded);
    if (gone.size) {
      tell(t(`${verb}.done`, { n: gone.size }));
      done(gone);
    }
    if (problems.length) {
      const [first] = problems;
      if (problems.length > 1) first.message = t("bulk.problems", { n: problems.length, text: first.message });
      throw first;
    }
  };
  const items = retries(verb, fit);
  const [one] = runs.length === 1 && fit.length === 1 ? fit : []; // of one run there is nothing to list
  const title = items ? t("retry.title", { n: items }) : one ? t(`${verb}.one`, { n: String(one.number), flow: one.flow_name }) : t(`${verb}.title`, { n: runs.length });
  const button = items ? t("retry.button", { n: items }) : one ? t(`${verb}.button.one`) : t(`${verb}.button`, { n: fit.length });
  return html`<${Confirm} title=${title} button=${button}
    danger=${verb === "cancel" || verb === "remove"} may=${fit.length > 0} send=${send} close=${close}>
    <p>${items ? t("retry.text") : t(`${verb}.text`, { n: fit.length })}</p>
    ${!one && fit.length > 0 && html`<h3>${t(`${verb}.will`, { n: fit.length })}</h3><${Runs} runs=${fit} />`}
    ${rest.length > 0 && html`<h3>${t(`${verb}.wont`, { n: rest.length })}</h3><${Runs} runs=${rest} />`}
    ${verb === "cancel" && html`<div class="field"><label for="reason">${t("cancel.reason")}</label><input id="reason" type="text"
      maxlength="200" autocomplete="off" value=${how.reason}
      onInput=${(/** @type {any} */ event) => setHow({ ...how, reason: event.currentTarget.value })} /></div>`}
    ${verb === "resume" && !items && html`<label class="check"><input type="checkbox" checked=${how.failed}
      onChange=${(/** @type {any} */ event) => setHow({ ...how, failed: event.currentTarget.checked })} />
      ${t("resume.failed")}</label>`}
    ${fit.slice(0, 3).map((run) => html`<${CommandLine} key=${run.run_id} line=${VERBS[verb].command(run, how)} />`)}
    ${fit.length > 3 && html`<p><${Copy} bare=${false} label=${t("preview.commands", { n: fit.length })}
      text=${fit.map((run) => VERBS[verb].command(run, how)).join("\n")} /></p>`}
    ${ended > 0 && fit.length > AT_ONCE && html`<div class="progress" role="status"><${Bar} done=${ended} total=${fit.length} />
      <span class="progress-text">${number(ended)} / ${number(fit.length)}</span></div>`}
  <//>`;
}

/** How many failed items are tried again, where a resume does nothing else. @param {Verb} verb @param {Api.RunSummary[]} runs */
function retries(verb, runs) {
  const only = verb === "resume" && runs.length > 0 && runs.every((run) => run.status === "COMPLETED");
  return only ? runs.reduce((sum, run) => sum + run.counts.failed, 0) : 0;
}

/** @param {{runs: Api.RunSummary[]}} props */
function Runs({ runs }) {
  return html`<ul class="preview">
    ${runs.slice(0, LISTED).map((run) => html`<li key=${run.run_id}><b>#${run.number}</b> <span>
      ${run.flow_name}</span> <${Status} state=${stateOf(run)} /></li>`)}
    ${runs.length > LISTED && html`<li class="hint">${t("preview.more", { n: runs.length - LISTED })}</li>`}
  </ul>`;
}

/** @param {Api.RunSummary[]} runs @param {(run: Api.RunSummary) => Promise<any>} send @param {(ended: number) => void} told */
async function each(runs, send, told) {
  const left = [...runs];
  const gone = /** @type {Set<string>} */ (new Set());
  /** @type {Problem[]} */
  const problems = [];
  const lane = async () => {
    for (let run = left.shift(); run; run = left.shift()) {
      try {
        await send(run);
        gone.add(run.run_id);
      } catch (error) {
        if (!(error instanceof Problem)) throw error;
        problems.push(error);
      }
      told(gone.size + problems.length);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
  return { gone, problems };
}
