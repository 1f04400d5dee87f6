// Workers: who lives, what they do, who left; and which of them are hidden.
import { html, useState } from "../core/view.js";
import { ask } from "../core/api.js";
import { commands } from "../core/commands.js";
import { useAsked } from "../core/live.js";
import { go, link, place } from "../core/router.js";
import { Elapsed, Time } from "../core/times.js";
import { t } from "../core/words.js";
import { CommandLine } from "../parts/command.js";
import { Confirm, tell } from "../parts/dialog.js";
import { Icon } from "../parts/icons.js";
import { Page, RunLink } from "../parts/layout.js";
import { Empty, Stale, Waiting } from "../parts/states.js";
import { Status } from "../parts/status.js";
import { Table } from "../parts/table.js";
import { WorkerLine } from "../parts/workerline.js";

const LISTED = 3; // runs of a worker

export function WorkersScreen() {
  const { all = "", hidden = "" } = place.value.query;
  const [asking, setAsking] = useState(/** @type {Api.Worker|null} */ (null));
  /** @type {Api.Asked<Api.Worker[]>} */
  const workers = useAsked("/workers", { every: 2, query: { scope: all ? "all" : "active", include_hidden: hidden ? "true" : undefined } });
  const box = (/** @type {string} */ name, /** @type {string} */ value) => html`<label class="check"><input type="checkbox"
    checked=${Boolean(value)}
    onChange=${() => go("/workers", { ...place.value.query, [name]: value ? "" : 1 }, { replace: true })} />
    ${t(`workers.${name}`)}</label>`;
  /** @type {Api.Asked<Api.RunSummary[]>} */
  const running = useAsked("/runs", { every: 2, query: { status: ["RUNNING", "CANCELLING"], limit: 200 } });
  const runsOf = (/** @type {Api.Worker} */ worker) => (running.value ?? []).filter((run) => run.worker_id === worker.worker_id && !run.worker_lost);
  const rows = workers.value ?? [];
  let content;
  if (!workers.value) content = html`<${Waiting} ...${workers} />`;
  else if (!rows.length) content = html`<${Empty} title=${t("workers.none")} text=${t("workers.none.text")} icon="workers">
    <${WorkerLine} /><//>`;
  else content = html`<${Table} label=${t("nav.workers")} columns=${columns(setAsking, runsOf)} rows=${rows}
    rowKey=${(/** @type {Api.Worker} */ worker) => worker.worker_id}
    rowClass=${(/** @type {Api.Worker} */ worker) => (worker.hidden ? "faint" : "")} />`;
  return html`<${Page} title=${t("nav.workers")}>
    <div class="toolbar">${box("all", all)}${box("hidden", hidden)}</div>
    <${Stale} problem=${workers.value ? workers.problem : null} />
    ${content}
    ${asking && html`<${Hide} worker=${asking} close=${() => setAsking(null)} done=${workers.again} />`}
  <//>`;
}

/** @param {{worker: Api.Worker, runs: Api.RunSummary[]}} props */
function Current({ worker, runs }) {
  const { current_run_id: id } = worker;
  if (!runs.length) return id ? html`<${RunLink} run=${id}>${id.slice(0, 8)}<//>` : html`<span class="none">–</span>`;
  return html`${runs.slice(0, LISTED).map((run) => html`<div key=${run.run_id}><${RunLink} run=${String(run.number)}>${run.flow_name} #${run.number}<//></div>`)}
    ${runs.length > LISTED && html`<small class="means">${t("preview.more", { n: runs.length - LISTED })}</small>`}`;
}

/** @param {(worker: Api.Worker) => void} hide @param {(worker: Api.Worker) => Api.RunSummary[]} runsOf */
const columns = (hide, runsOf) => [
  { name: "worker", title: t("column.worker"), class: "cell-run", cell: (/** @type {Api.Worker} */ worker) => html`<b class="wordy">
    ${worker.worker_id}</b>${worker.hidden && html` <span class="label">${t("workers.ishidden")}</span>`}` },
  { name: "state", title: t("column.status"), cell: (/** @type {Api.Worker} */ worker) => html`<${Status} state=${worker.state} />` },
  { name: "run", title: t("column.current"), cell: (/** @type {Api.Worker} */ worker) => html`<${Current} worker=${worker} runs=${runsOf(worker)} />` },
  { name: "tags", title: t("column.tags"), cell: (/** @type {Api.Worker} */ worker) => html`<span class="labels">
    ${worker.tags.map((tag) => html`<a key=${tag} class="label tag" href=${link("/runs", { tag })}>${tag}</a>`)}</span>` },
  { name: "flows", title: t("column.flows"), cell: (/** @type {Api.Worker} */ worker) => html`<span class="clip two"
    title=${worker.flows.join(", ")}>${worker.flows.join(", ")}</span>` },
  { name: "seen", title: t("column.seen"), class: "cell-time", cell: (/** @type {Api.Worker} */ worker) => html`<${Time} at=${worker.last_seen_at} />` },
  { name: "lives", title: t("column.lives"), class: "cell-took roomy-only", cell: (/** @type {Api.Worker} */ worker) =>
    html`<${Elapsed} from=${worker.started_at}
    to=${worker.stopped_at ?? (worker.state === "DISCONNECTED" ? worker.last_seen_at : null)} />` },
  { name: "act", title: html`<span class="unseen">${t("column.actions")}</span>`, class: "cell-act", cell: (/** @type {Api.Worker} */ worker) => {
    const label = `${t(worker.hidden ? "workers.unhide" : "workers.hide")} ${worker.worker_id}`;
    return html`<button class="button bare" aria-label=${label} title=${label} onClick=${() => hide(worker)}>
      <${Icon} name=${worker.hidden ? "eye" : "hide"} /></button>`;
  } },
];

/** @param {{worker: Api.Worker, close: () => void, done: () => void}} props */
function Hide({ worker, close, done }) {
  const hidden = !worker.hidden;
  const verb = hidden ? "hide" : "unhide";
  const send = async () => {
    await ask(`/workers/${encodeURIComponent(worker.worker_id)}`, { method: "PATCH", body: { hidden } });
    tell(t(`workers.${verb}.done`));
    done();
  };
  return html`<${Confirm} title=${t(`workers.${verb}.title`)} button=${t(`workers.${verb}`)} send=${send} close=${close}>
    <p>${t(hidden && worker.state !== "RUNNING" && worker.state !== "IDLE" ? "workers.hide.stopped" : `workers.${verb}.text`)}</p>
    <p><b class="wordy">${worker.worker_id}</b> <${Status} state=${worker.state} /></p>
    <${CommandLine} line=${commands.hide(worker.worker_id, hidden)} />
  <//>`;
}
