// One run: what it is, how far it is, what one can do with it, and its tabs; live by one stream.
import { html } from "../core/view.js";
import { commands } from "../core/commands.js";
import { go, link } from "../core/router.js";
import { useRun } from "../core/runwatch.js";
import { ACTIVE } from "../core/shapes.js";
import { Elapsed, Time, duration } from "../core/times.js";
import { number, t } from "../core/words.js";
import { askFor, mayBe } from "../parts/actions.js";
import { CommandLine, Copy } from "../parts/command.js";
import { Icon } from "../parts/icons.js";
import { Fact, Page, RunLink, Tabs } from "../parts/layout.js";
import { Bar, Tally } from "../parts/progress.js";
import { RunLog } from "../parts/runlog.js";
import { Waiting } from "../parts/states.js";
import { Labels, Status } from "../parts/status.js";
import { EventsTab } from "./run-events.js";
import { GraphTab } from "./run-graph.js";
import { ItemsTab } from "./run-items.js";
import { ModelsTab, dollars } from "./llm.js";
import { ParamsTab } from "./run-params.js";
import { StepsTab } from "./run-steps.js";

/** @param {{run: string, tab?: string}} props */
export function RunScreen({ run: reference, tab = "steps" }) {
  const watched = useRun(reference);
  const run = watched.run.value;
  const problem = watched.problem.value;
  const above = html`<a href=${link("/runs")}>${t("nav.runs")}</a>`;
  if (!run) {
    const content = html`<${Waiting} problem=${problem} rows=${6} />`;
    return html`<${Page} title=${t("run.title", { n: reference })} above=${above}>${content}<//>`;
  }
  const title = html`${run.flow_name} <span class="run-number">#${run.number}</span> <${Status} state=${run.status} large />`;
  const trail = html`<a href=${link("/runs")}>${t("nav.runs")}</a><span aria-hidden="true">/</span>
    <a href=${link("/runs", { flow: run.flow_name })}>${run.flow_name}</a>`;
  return html`<${Page} name=${`#${run.number} ${run.flow_name}`} title=${title} above=${trail} actions=${html`<${Actions} run=${run} />`}>
    <${Connection} state=${watched.link.value} gone=${problem?.status === 404} />
    <${Header} run=${run} />
    ${run.error && html`<${Trouble} run=${run} />`}
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
  return html`<${StepsTab} run=${run} />`;
}

/** @param {{state: string, gone: boolean}} props */
function Connection({ state, gone }) {
  const name = gone ? "gone" : state;
  return html`<p class=${`connection link-${name}`} role="status" data-link=${name}><i aria-hidden="true"></i>${t(`link.${name}`)}</p>`;
}

/** @param {{run: Api.RunSnapshot}} props */
function Actions({ run }) {
  return html`
    ${mayBe("cancel", run) && html`<button class="button" data-act="cancel" onClick=${() => askFor("cancel", [run])}>
      <${Icon} name="stop" />${t("action.cancel")}</button>`}
    ${mayBe("resume", run) && html`<button class="button primary" data-act="resume" onClick=${() => askFor("resume", [run])}>
      <${Icon} name="play" />${t(run.status === "COMPLETED" ? "action.retry" : "action.resume")}</button>`}
    <a class="button" data-act="like" href=${link("/start", { like: run.number })}><${Icon} name="copies" />${t("action.like")}</a>
    ${mayBe("remove", run) && html`<button class="button" data-act="remove"
      onClick=${() => askFor("remove", [run], () => go("/runs"))}><${Icon} name="bin" />${t("action.remove")}</button>`}`;
}

/** @param {{run: Api.RunSnapshot}} props */
function Header({ run }) {
  const over = !ACTIVE.has(run.status);
  return html`<dl class="facts">
    <${Fact} name=${t("column.took")}><${Elapsed} from=${run.started_at}
      to=${run.finished_at ?? (run.status === "PENDING" ? run.updated_at : null)} /><//>
    <${Fact} name=${t("column.created")}><${Time} at=${run.created_at} /><//>
    ${over && html`<${Fact} name=${t("column.ended")}><${Time} at=${run.finished_at} /><//>`}
    <${Fact} name=${t("column.attempt")}>${number(run.attempt)}<//>
    <${Fact} name=${t("column.worker")}>${run.worker_id ? html`<a href=${link("/workers", { all: 1 })} class="wordy">
      ${run.worker_id}</a>` : html`<span class="none">–</span>`}<//>
    <${Fact} name=${t("column.done")}><${Tally} counts=${run.counts} /><//>
    ${run.usage && html`<${Fact} name=${t("fact.cost")}><a href=${link(`/runs/${run.number}/llm`)}>${dollars(run.cost)}</a><//>`}
    ${run.not_before && run.status === "PENDING" && html`<${Fact} name=${t("fact.notBefore")}><${Time} at=${run.not_before} /><//>`}
    ${run.key && html`<${Fact} name=${t("column.key")}><code>${run.key}</code><//>`}
    ${run.continues && html`<${Fact} name=${t("fact.continues")}><${RunLink} run=${run.continues}>${run.continues.slice(0, 8)}<//><//>`}
    <${Fact} name=${t("column.tags")}><${Labels} run=${run} /><//>
    <${Fact} name=${t("fact.id")}><code title=${run.run_id}>${run.run_id.slice(0, 8)}</code><${Copy} text=${run.run_id} label=${t("copy.id")} /><//>
    ${run.cancel_requested_at && html`<${Fact} name=${t("fact.cancel")}><${Time} at=${run.cancel_requested_at} />
      ${run.cancel_reason && ` · ${run.cancel_reason}`}<//>`}
  </dl>`;
}

/** @param {{run: Api.RunSnapshot}} props */
function Trouble({ run }) {
  const failed = Object.entries(run.task_records ?? {}).find(([, record]) => record.traceback);
  return html`<section class="trouble" role="alert">
    <p><${Icon} name="warn" /><b>${run.error}</b></p>
    <div class="trouble-ways">
      ${run.counts.failed > 0 && html`<a class="button small" href=${link(`/runs/${run.number}/items`, { status: "failed" })}>
        ${t("trouble.items")}</a>`}
      <a class="button small" href=${link(`/runs/${run.number}/logs`)}>${t("tab.logs")}</a>
    </div>
    ${failed?.[1].traceback && html`<details class="fold"><summary>${t("trouble.trace", { task: failed[0] })}</summary>
      <pre tabindex="0">${failed[1].traceback}</pre></details>`}
  </section>`;
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
        step.eta && t("progress.eta", { time: duration(step.eta) }),
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
