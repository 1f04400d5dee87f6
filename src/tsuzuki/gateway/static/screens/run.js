// One run: what it is, how far it is, what one can do with it, and its tabs; live by one stream.
import { html, useState } from "../core/view.js";
import { commands } from "../core/commands.js";
import { useAsked } from "../core/live.js";
import { go, link } from "../core/router.js";
import { useRun } from "../core/runwatch.js";
import { ACTIVE, stateOf, stoodStill, underWay, waits } from "../core/shapes.js";
import { Elapsed, Time } from "../core/times.js";
import { number, t } from "../core/words.js";
import { askFor, mayBe } from "../parts/actions.js";
import { CommandLine, Copy } from "../parts/command.js";
import { Icon } from "../parts/icons.js";
import { Fact, Page, RunLink, Tabs } from "../parts/layout.js";
import { Bar, Tally, leftText } from "../parts/progress.js";
import { RunLog } from "../parts/runlog.js";
import { Empty, Failure, Waiting, errorText } from "../parts/states.js";
import { Labels, Status } from "../parts/status.js";
import { EventsTab } from "./run-events.js";
import { GraphTab } from "./run-graph.js";
import { ItemsTab } from "./run-items.js";
import { ModelsTab, dollars } from "./llm.js";
import { ParamsTab } from "./run-params.js";
import { Standing } from "./run-standing.js";
import { StepsTab } from "./run-steps.js";

/** @param {{run: string, tab?: string}} props */
export function RunScreen({ run: reference, tab = "steps" }) {
  const watched = useRun(reference);
  const run = watched.run.value;
  const problem = watched.problem.value;
  const above = html`<a href=${link("/runs")}>${t("nav.runs")}</a>`;
  if (!run) {
    const ways = html`<a class="button" href=${link("/runs", { text: reference })}>${t("problem.search")}</a>`;
    const content = problem?.status === 404 ? html`<${Failure} problem=${problem}>${ways}<//>` : html`<${Waiting} problem=${problem} rows=${6} />`;
    return html`<${Page} title=${t("run.title", { n: reference })} above=${above}>${content}<//>`;
  }
  const title = html`${run.flow_name} <span class="run-number">#${run.number}</span> <${Status} state=${stateOf(run)} large />`;
  const trail = html`<a href=${link("/runs")}>${t("nav.runs")}</a><span aria-hidden="true">/</span>
    <a class="clip" href=${link("/runs", { flow: run.flow_name })}>${run.flow_name}</a>`;
  return html`<${Page} name=${`#${run.number} ${run.flow_name}`} title=${title} above=${trail} actions=${problem?.status !== 404 && html`<${Actions} run=${run} />`}>
    <${Connection} state=${watched.link.value} gone=${problem?.status === 404} still=${run.interrupted || run.worker_lost} />
    <${Header} run=${run} />
    <${Standing} run=${run} />
    ${run.error && html`<${Trouble} run=${run} tab=${tab} />`}
    <${Progress} run=${run} />
    <${Tabs} label=${t("run.tabs")} current=${tab} tabs=${tabsOf(run)} />
    <div class="tab-body" data-open=${tab}><${Body} run=${run} tab=${tab} /></div>
  <//>`;
}

/** @param {Api.RunSnapshot} run */
function tabsOf(run) {
  const names = ["steps", ...(run.workflow_yaml_sha256 ? ["graph"] : []), "items", ...(run.usage ? ["llm"] : []), "logs", "events", "params"];
  const { done, failed, skipped, steps } = run.counts;
  const figures = /** @type {Record<string, number>} */ ({ steps: Object.keys(run.tasks).length, items: done + failed + skipped + steps, events: run.position });
  return names.map((name) => ({
    name,
    title: html`${t(`tab.${name}`)}${figures[name] ? html` <small>${number(figures[name], { notation: "compact" })}</small>` : ""}`,
    href: link(`/runs/${run.number}${name === "steps" ? "" : `/${name}`}`),
  }));
}

/** @param {{run: Api.RunSnapshot, tab: string}} props */
function Body({ run, tab }) {
  if (tab === "items") return html`<${ItemsTab} run=${run} />`;
  if (tab === "llm") return html`<${ModelsTab} run=${run} />`;
  if (tab === "graph") return html`<${GraphTab} run=${run} />`;
  if (tab === "logs") return html`<${RunLog} run=${run.run_id} live=${ACTIVE.has(run.status)} />
    <${CommandLine} line=${commands.watch(run.number)} />`;
  if (tab === "events") return html`<${EventsTab} run=${run} />`;
  if (tab === "params") return html`<${ParamsTab} run=${run} />`;
  if (tab === "steps") return html`<${StepsTab} run=${run} />`;
  return html`<${Empty} title=${t("problem.notab")} icon="search"><a class="button" href=${link(`/runs/${run.number}`)}>${t("tab.steps")}</a><//>`;
}

/** @param {{state: string, gone: boolean, still: boolean}} props `still`: nobody works on it */
function Connection({ state, gone, still }) {
  const name = gone ? "gone" : state === "live" && still ? "settled" : state;
  return html`<p class=${`connection link-${name}`} role="status" data-link=${name}><i aria-hidden="true"></i>${t(`link.${name}`)}</p>`;
}

/** @param {{run: Api.RunSnapshot}} props */
function Actions({ run }) {
  return html`
    ${mayBe("cancel", run) && html`<button class="button" data-act="cancel" onClick=${() => askFor("cancel", [run])}>
      <${Icon} name="stop" />${t("action.cancel")}</button>`}
    ${mayBe("wake", run) && html`<button class="button primary" data-act="wake" onClick=${() => askFor("wake", [run])}>
      <${Icon} name="play" />${t("action.wake")}</button>`}
    ${mayBe("resume", run) && html`<button class="button primary" data-act="resume" onClick=${() => askFor("resume", [run])}>
      <${Icon} name="play" />${run.status === "COMPLETED" ? t("action.retry", { n: run.counts.failed }) : t("action.resume")}</button>`}
    <a class="button" data-act="like" href=${link("/start", { like: run.number })}><${Icon} name="copies" />${t("action.like")}</a>
    ${mayBe("remove", run) && html`<button class="button" data-act="remove"
      onClick=${() => askFor("remove", [run], () => go("/runs"))}><${Icon} name="bin" />${t("action.remove")}</button>`}`;
}

/** @param {{run: Api.RunSnapshot}} props */
function Header({ run }) {
  const over = !ACTIVE.has(run.status);
  return html`<dl class="facts">
    <${Fact} name=${t(run.attempt > 1 ? "column.since" : "column.took")}><${Elapsed} from=${run.started_at} to=${stoodStill(run)} /><//>
    <${Fact} name=${t("column.created")}><${Time} at=${run.created_at} /><//>
    ${over && html`<${Fact} name=${t("column.ended")}><${Time} at=${run.finished_at} /><//>`}
    <${Fact} name=${t("column.attempt")}>${number(run.attempt)}<//>
    <${Fact} name=${t("column.worker")}>${run.worker_id ? html`<a href=${link("/workers", { all: 1 })} class="wordy">
      ${run.worker_id}</a>` : html`<span class="none">–</span>`}<//>
    <${Fact} name=${t("column.done")}><${Tally} counts=${countsOf(run)} /><//>
    ${run.usage && html`<${Fact} name=${t("fact.cost")}><a href=${link(`/runs/${run.number}/llm`)}>${dollars(run.cost)}</a><//>`}
    ${waits(run) && html`<${Fact} name=${t("fact.waitsUntil")}><${Time} at=${run.waiting_until} /><//>`}
    ${waits(run) && run.waiting_reason && html`<${Fact} name=${t("fact.waitsFor")}><span class="wordy">${run.waiting_reason}</span><//>`}
    ${run.not_before && run.status === "PENDING" && !waits(run) && html`<${Fact} name=${t("fact.notBefore")}><${Time} at=${run.not_before} /><//>`}
    ${run.key && html`<${Fact} name=${t("column.key")}><code>${run.key}</code><//>`}
    ${run.continues && html`<${Fact} name=${t("fact.continues")}><${RunLink} run=${run.continues}>${run.continues.slice(0, 8)}<//><//>`}
    <${Fact} name=${t("column.tags")}><${Labels} run=${run} /><//>
    <${Fact} name=${t("fact.id")}><code title=${run.run_id}>${run.run_id.slice(0, 8)}</code><${Copy} text=${run.run_id} label=${t("copy.id")} /><//>
    ${run.cancel_requested_at && html`<${Fact} name=${t("fact.cancel")}><${Time} at=${run.cancel_requested_at} />
      ${run.cancel_reason && ` · ${run.cancel_reason}`}<//>`}
  </dl>`;
}

/** What a run has done; of calls that were no items those that failed are told apart. @param {Api.RunSnapshot} run @returns {Api.Counts} */
function countsOf(run) {
  const { counts, task_records: records, task_records_truncated: cut } = run;
  if (!records || cut || counts.done + counts.failed + counts.skipped > 0) return counts;
  const sum = (/** @type {"done"|"failed"} */ name) => Object.values(records).reduce((whole, record) => whole + record[name], 0);
  return { ...counts, steps: sum("done"), failed: sum("failed") };
}

/** @param {{run: Api.RunSnapshot, tab: string}} props */
function Trouble({ run, tab }) {
  const failed = Object.entries(run.task_records ?? {}).find(([, record]) => record.traceback);
  /** @type {Api.Asked<{items: Api.Fact[]}>} */
  const last = useAsked(failed || run.status !== "FAILED" ? null : `/runs/${run.run_id}/facts`, { query: { after: run.position - 1, limit: 1 } });
  const [name, trace] = failed ? [failed[0], failed[1].traceback] : [run.flow_name, last.value?.items[0]?.error?.traceback];
  return html`<section class="trouble" role="alert">
    <p><${Icon} name="warn" /><${Long} text=${errorText(run)} /></p>
    <div class="trouble-ways">
      ${run.counts.failed > 0 && html`<a class="button small" href=${link(`/runs/${run.number}/items`, { status: "failed" })}>
        ${t("trouble.items")}</a>`}
      ${tab !== "logs" && html`<a class="button small" href=${link(`/runs/${run.number}/logs`)}>${t("tab.logs")}</a>`}
    </div>
    ${trace && html`<details class="fold"><summary>${t("trouble.trace", { task: name })}</summary>
      <pre tabindex="0">${trace}</pre></details>`}
  </section>`;
}

/** A text that may be long: its beginning, and all of it when asked for. @param {{text: string}} props */
function Long({ text }) {
  const [all, setAll] = useState(false);
  const long = text.length > 400 || text.split("\n").length > 5;
  return html`<span class="long-text"><b class=${long && !all ? "clamped" : ""}>${text}</b>
    ${long && html`<button class="button small" aria-expanded=${all} onClick=${() => setAll(!all)}>${t(all ? "trouble.less" : "trouble.all")}</button>`}</span>`;
}

/** @param {{run: Api.RunSnapshot}} props */
function Progress({ run }) {
  const steps = ACTIVE.has(run.status) ? run.progress ?? [] : [];
  if (!steps.length) return null;
  return html`<div class="steps-progress">
    ${steps.slice(0, 6).map((step) => {
      const ended = (step.done ?? 0) + (step.failed ?? 0) + (step.skipped ?? 0);
      const told = [
        step.total ? `${number(ended)} / ${number(step.total)}` : number(ended),
        step.total && number(ended / step.total, { style: "percent" }),
        step.eta && underWay(run) && leftText(step.eta),
        step.text,
      ];
      return html`<div key=${step.step} class="step-progress">
        <b>${step.name}</b>
        <${Bar} done=${step.done ?? 0} failed=${step.failed} skipped=${step.skipped} total=${step.total} label=${step.name} />
        <span>${told.filter(Boolean).join(" · ")}</span>
      </div>`;
    })}
  </div>`;
}
