// Language models: what all runs used of each and what that cost, and the job queue of the gateway's machine.
import { html, useState } from "../core/view.js";
import { useAsked } from "../core/live.js";
import { go, link, place } from "../core/router.js";
import { Time } from "../core/times.js";
import { number, t } from "../core/words.js";
import { CommandLine } from "../parts/command.js";
import { Dialog } from "../parts/dialog.js";
import { Page } from "../parts/layout.js";
import { Empty, Stale, Waiting } from "../parts/states.js";
import { Status } from "../parts/status.js";
import { Table } from "../parts/table.js";
import { UsageTable, sumColumns } from "../parts/usage.js";

/** @typedef {import("../core/types.js").RunSummary} RunSummary */
/** @typedef {import("../core/types.js").JobProcess} JobProcess */

const DAYS = /** @type {Record<string, number>} */ ({ "1d": 1, "30d": 30, all: 0 });

export function ModelsScreen() {
  const { span = "30d" } = place.value.query;
  const days = DAYS[span] ?? 30;
  const [after, setAfter] = useState(() => Date.now() / 1000);
  /** @type {import("../core/types.js").Asked<import("../core/types.js").UsageView>} */
  const used = useAsked("/llm/usage", { every: 5, query: days ? { updated_after: after - days * 86400 } : {} });
  const choose = (/** @type {string} */ name) => {
    setAfter(Date.now() / 1000);
    go("/llm", { span: name }, { replace: true });
  };
  const found = used.value;
  return html`<${Page} title=${t("nav.llm")}>
    <p class="lead">${t("llm.lead")}</p>
    <div class="toolbar"><div class="segments" role="group" aria-label=${t("metrics.span")}>
      ${Object.keys(DAYS).map((name) => html`<button key=${name} class="segment" aria-pressed=${span === name}
        onClick=${() => choose(name)}>${t(`llm.span.${name}`)}</button>`)}
    </div></div>
    <${Stale} problem=${found ? used.problem : null} />
    ${!found ? html`<${Waiting} ...${used} />` : !found.usage ? html`<${Empty} title=${t("llm.none")} text=${t("llm.none.text")} icon="llm" />` : html`
      <${UsageTable} usage=${found.usage} />
      ${found.at_least && html`<p class="hint">${t("llm.atleast", { n: found.runs })}</p>`}
      <h2>${t("llm.runs")}</h2>
      <${Table} label=${t("llm.runs")} columns=${runColumns()} rows=${found.latest} rowKey=${(/** @type {RunSummary} */ run) => run.run_id} />`}
    <h2>${t("llm.queue")}</h2>
    <${Queue} />
    <${CommandLine} line="tsuzuki llm cost" />
  <//>`;
}

const runColumns = () => [
  { name: "run", title: t("column.run"), class: "cell-run", cell: (/** @type {RunSummary} */ run) =>
    html`<a href=${link(`/runs/${run.number}/llm`)}><b>${run.flow_name}</b> <span class="run-number">#${run.number}</span></a>` },
  { name: "status", title: t("column.status"), cell: (/** @type {RunSummary} */ run) => html`<${Status} state=${run.status} />` },
  ...sumColumns((/** @type {RunSummary} */ run) => /** @type {import("../core/types.js").Usage} */ (run.usage)),
  { name: "at", title: t("column.at"), class: "cell-time", cell: (/** @type {RunSummary} */ run) => html`<${Time} at=${run.updated_at} />` },
];

/** The jobs that wait or were not handed over yet. */
function Queue() {
  const [shown, setShown] = useState(/** @type {string|null} */ (null));
  /** @type {import("../core/types.js").Asked<import("../core/types.js").QueueView>} */
  const queue = useAsked("/llm/jobs", { every: 3 });
  if (!queue.value) return html`<${Waiting} ...${queue} />`;
  const { host, hidden, processes } = queue.value;
  return html`<p class="hint">${t("llm.queue.text", { host })}</p>
    <${Stale} problem=${queue.problem} />
    ${hidden ? html`<p class="notice">${t("llm.queue.hidden")}</p>` : !processes.length ? html`<p class="hint" data-queue="empty">${t("llm.queue.none")}</p>`
      : html`<${Table} label=${t("llm.queue")} columns=${processColumns(setShown)} rows=${processes}
        rowKey=${(/** @type {JobProcess} */ one) => one.process_id} />`}
    ${shown && html`<${Jobs} process=${shown} close=${() => setShown(null)} />`}`;
}

/** @param {(process: string) => void} show */
const processColumns = (show) => [
  { name: "process", title: t("llm.process"), class: "cell-run", cell: (/** @type {JobProcess} */ one) =>
    html`<button class="button bare mono" onClick=${() => show(one.process_id)}>${one.process_id.slice(0, 8)}</button>` },
  ...["pending", "in_progress", "completed", "failed"].map((name) => ({ name, title: t(`llm.job.${name}`), class: "figure",
    cell: (/** @type {any} */ one) => number(one[name]) })),
  { name: "batch", title: t("llm.batch"), cell: (/** @type {JobProcess} */ one) => html`<span class="clip mono">${one.batch_job_id ?? "–"}</span>` },
  { name: "at", title: t("column.created"), class: "cell-time", cell: (/** @type {JobProcess} */ one) => html`<${Time} at=${one.created_at} />` },
];

/** @param {{process: string, close: () => void}} props */
function Jobs({ process, close }) {
  /** @type {import("../core/types.js").Asked<{items: import("../core/types.js").JobView[]}>} */
  const found = useAsked(`/llm/jobs/${encodeURIComponent(process)}`, { every: 3 });
  return html`<${Dialog} side title=${process} close=${close}>
    ${!found.value ? html`<${Waiting} ...${found} />` : html`<${Table} label=${t("llm.queue")} rows=${found.value.items}
      rowKey=${(/** @type {any} */ job) => job.id} columns=${[
        { name: "id", title: t("llm.job"), cell: (/** @type {any} */ job) => html`<code>${job.id.slice(0, 8)}</code>` },
        { name: "status", title: t("column.status"), cell: (/** @type {any} */ job) => t(`llm.job.${job.status.toLowerCase()}`) },
        { name: "error", title: t("column.error"), cell: (/** @type {any} */ job) => job.error_message ?? "–" },
        { name: "at", title: t("column.at"), class: "cell-time", cell: (/** @type {any} */ job) => html`<${Time} at=${job.updated_at} />` },
      ]} />`}
    <${CommandLine} line=${`tsuzuki llm jobs show ${process}`} />
  <//>`;
}
