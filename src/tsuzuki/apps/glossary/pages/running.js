// Run and stop: which run is the current one, the scope of the next, the steps with the one under way, and the live log.
import { Bar, Card, Icon, LogPanel, Status, ask, follow, html, number, signal, t, useAsked, useEffect, useState } from "../../static/parts.js";
import { act, said, typed } from "./frame.js";
import { Partial, unfinished } from "./partial.js";

const SCOPES = ["full", "extract", "generate", "review", "refine"];
const STEPS = /** @type {Record<string, string[]>} */ ({ extract: ["extract"], full: ["provisional", "issues", "refined"], generate: ["provisional"], review: ["issues"], refine: ["refined"] });
const opened = signal(false);

/** The active run of a project, else its last one; null where there was none. @param {string} at */
export function useRun(at) {
  const [active, setActive] = useState(false);
  const runs = useAsked(`${at}/runs`, { every: active ? 1 : 3 });
  const run = runs.value?.[0] ?? null;
  const now = run !== null && ["pending", "running"].includes(run.status);
  useEffect(() => setActive(now), [now]);
  return { run, active: now, problem: runs.value ? runs.problem : null, again: runs.again };
}

/** @param {{at: string, project: any, run: any, active: boolean, again: () => void}} props */
export function RunButtons({ at, project, run, active, again }) {
  const [scope, setScope] = useState("");
  const chosen = scope || (project.term_count ? "full" : "extract");
  const start = async () => {
    opened.value = true;
    await act(() => ask(`${at}/runs`, { method: "POST", body: { scope: chosen } }));
    again();
  };
  const stop = () => act(() => ask(`${at}/runs/${run.id}`, { method: "DELETE" }), t("glossary.stopping")).then(again);
  if (active) return html`<button class="button danger" onClick=${stop}><${Icon} name="stop" />${t("glossary.stop")}</button>`;
  return html`<select style=${{ width: "auto" }} aria-label=${t("glossary.scope")} value=${chosen} onChange=${typed(setScope)}>
      ${SCOPES.map((name) => html`<option key=${name} value=${name}>${t(`glossary.scope.${name}`)}</option>`)}
    </select>
    <button class="button primary" onClick=${start}><${Icon} name="play" />${t("glossary.run")}</button>`;
}

/** How a run stands, and its log where one wants to see it. @param {{at: string, run: any, active: boolean}} props */
export function Standing({ at, run, active }) {
  const title = html`<span data-run=${run.id}><${Status} state=${run.status.toUpperCase()} large />${" "}#${run.id} ${t(`glossary.scope.${run.scope}`)}</span>`;
  const toggle = html`<button class="button small" aria-expanded=${opened.value} onClick=${() => (opened.value = !opened.value)}><${Icon} name="terminal" />${t("glossary.log")}</button>`;
  const [looking, setLooking] = useState(false);
  const partial = unfinished(run) && html`<button class="button small" onClick=${() => setLooking(true)}><${Icon} name="runs" />${t("glossary.partial")}</button>`;
  const stopped = run.status === "cancelled" && run.progress_total > 0; // of a failed one the count has what failed
  return html`<${Card} title=${title} actions=${html`<div class="toolbar">${partial}${toggle}</div>`}>
    <${Steps} run=${run} />
    ${active && html`<${Bar} done=${run.progress_current ?? 0} total=${run.progress_total} label=${t("glossary.progress")} />
      ${run.progress_total > 0 && html`<p class="hint">${number(run.progress_current ?? 0)} / ${number(run.progress_total)}</p>`}`}
    ${stopped && html`<p class="hint">${t("glossary.stoppedAt", { step: t(`glossary.step.${run.current_step}`), done: number(run.progress_current ?? 0), total: number(run.progress_total) })}</p>`}
    ${run.error_message && html`<p class=${`notice tone-${run.status === "completed" ? "warn" : "bad"}`} role="alert"><${Icon} name="warn" /><span>${said(run.error_message)}</span></p>`}
    ${opened.value && html`<div class="glossary-log"><${Log} key=${run.id} at=${at} run=${run.id} /></div>`}
    ${looking && html`<${Partial} at=${at} run=${run} active=${active} close=${() => setLooking(false)} />`}
  <//>`;
}

/** The steps of a run: before the current one they are done. @param {{run: any}} props */
function Steps({ run }) {
  const steps = STEPS[run.scope] ?? [];
  const begun = run.status === "running" ? Math.max(0, steps.indexOf(run.current_step)) : steps.indexOf(run.current_step);
  const here = run.status === "completed" ? steps.length : begun;
  const state = (/** @type {number} */ place) => (place < here ? "done" : place !== here ? "waiting" : run.status === "running" ? "running" : run.status === "pending" ? "waiting" : "stopped");
  return html`<ol class="glossary-steps" aria-label=${t("glossary.steps")}>
    ${steps.map((name, place) => html`<li key=${name} class="glossary-step" data-step-state=${state(place)}
      aria-current=${state(place) === "running" ? "step" : undefined}><i aria-hidden="true"></i>${t(`glossary.step.${name}`)}</li>`)}
  </ol>`;
}

/** Whether the page is looked at. */
function useSeen() {
  const [seen, setSeen] = useState(!document.hidden);
  useEffect(() => {
    const look = () => setSeen(!document.hidden);
    document.addEventListener("visibilitychange", look);
    return () => document.removeEventListener("visibilitychange", look);
  }, []);
  return seen;
}

/** The log of a run, as it is written or as it was; a page that is not looked at holds no connection. @param {{at: string, run: number}} props */
export function Log({ at, run }) {
  const [log, setLog] = useState({ lines: /** @type {any[]} */ ([]), size: 0 });
  const [live, setLive] = useState(true);
  const seen = useSeen();
  useEffect(() => {
    if (!seen || !live) return undefined;
    /** @type {any[]} */
    let lines = [];
    const stop = follow(`${at}/runs/${run}/logs`, {
      query: () => ({ history: true }),
      link: (state) => {
        if (state === "live") lines = []; // whoever comes again gets all lines again
        if (state === "ended") setLive(false);
      },
      event: ({ name, data }) => {
        if (name === "complete") return stop(), setLive(false);
        if (!data) return undefined;
        lines.push({ number: lines.length, at: 0, level: data.level, text: data.step ? data.message : [said(data.message), data.traceback].filter(Boolean).join("\n"), name: data.step ? t(`glossary.step.${data.step}`) : "", key: "" });
        return setLog({ lines, size: lines.length });
      },
    });
    return stop;
  }, [at, run, seen, live]);
  return html`<${LogPanel} lines=${log.lines} size=${log.size} live=${live} label=${t("glossary.log")} />`;
}
