// The bulk run: how far it is, what one can do with it, what failed and why, and those before it.
import { Bar, Card, Elapsed, Empty, RunLink, Table, Time, act, ask, half, html, number, t, useAsked, useState } from "../../static/parts.js";
import { API, Frame, Old, Until, to } from "./frame.js";

const FIRST = 30;
const TONES = /** @type {Record<string, string>} */ ({ success: "good", completed: "good", failed: "bad", running: "active", cancelled: "warn", interrupted: "warn", pending: "quiet" });

/** @param {{state: string}} props */
const State = ({ state }) => html`<span class=${`tone-${TONES[state] ?? "quiet"}`} style=${{ whiteSpace: "nowrap" }} data-state=${state}>${t(`commits.status.${state}`)}</span>`;

const seconds = (/** @type {string} */ text) => Date.parse(text) / 1000;

export function Bulk() {
  const asked = useAsked(`${API}/bulk/status`, { every: 1 });
  const history = useAsked(`${API}/runs`, { every: 5 });
  if (asked.loading || (!asked.value && asked.problem)) return html`<${Frame} current="bulk"><${Until} problem=${asked.problem} again=${asked.again} /><//>`;
  const again = () => (asked.again(), history.again());
  // The last run is asked for more often: it stands in the history as it stands above it.
  const runs = (history.value ?? []).map((/** @type {any} */ each) => (each.run_id === asked.value?.run_id ? { ...each, ...asked.value } : each));
  return html`<${Frame} current="bulk" actions=${html`<${Actions} run=${asked.value} again=${again} />`}>
    <${Old} problem=${asked.problem} />
    ${asked.value ? html`<${Standing} run=${asked.value} />` : html`<${Empty} title=${t("commits.none")} text=${t("commits.noneText")} />`}
    ${runs.length > 1 && html`<${Card} title=${t("commits.history")} flush><${History} runs=${runs} /><//>`}
  <//>`;
}

/** What can be done: with the last run, or with an earlier one, of which only the failed targets can be had again. @param {{run: any, again: () => void, earlier?: boolean}} props */
function Actions({ run, again, earlier = false }) {
  const send = (/** @type {string} */ path, /** @type {any} */ body = {}) => () => act(() => ask(`${API}${path}`, { method: "POST", body })).then(again);
  if (run?.run_status === "running" && !run.interrupted) return html`<button class="button danger" onClick=${send("/bulk/cancel", { run_id: run.run_id })}>${t("commits.cancel")}</button>`;
  const rest = run?.interrupted || (run?.run_status === "cancelled" && run.pending_count > 0);
  return html`${run?.failed_count > 0 && html`<button class="button" onClick=${send("/bulk/retry", { run_id: run.run_id })}>${t("commits.retry")}</button>`}
    ${rest && !earlier && html`<button class="button" onClick=${send("/bulk", { fresh: true })}>${t("commits.fresh")}</button>`}
    ${!earlier && html`<button class="button primary" onClick=${send("/bulk")}>${t(rest ? "commits.resume" : "commits.start")}</button>`}`;
}

/** @param {{run: any}} props */
function Standing({ run }) {
  const results = useAsked(`${API}/runs/${run.run_id}/results`, { every: run.run_status === "running" ? 1 : 0, query: { at: run.completed } });
  const current = run.current_target && (results.value ?? []).find((/** @type {any} */ each) => each.project_id === run.current_target.project_id && each.branch_name === run.current_target.branch_name);
  return html`<${Card} title=${html`<${State} state=${run.interrupted ? "interrupted" : run.run_status} />`}>
      <${Bar} done=${run.success} failed=${run.failed} total=${run.total} label=${t("commits.bulk")} />
      <p>${number(run.completed)} / ${number(run.total)} · ${t("commits.succeeded")} ${number(run.success)} · ${t("commits.failed")} ${number(run.failed)} · ${t("commits.pending")} ${number(run.pending_count)}</p>
      <p><${Time} at=${seconds(run.started_at_utc)} /> · <${Elapsed} from=${seconds(run.started_at_utc)} to=${run.completed_at_utc && seconds(run.completed_at_utc)} />
        ${run.number && html` · <${RunLink} run=${run.number}>${t("commits.run", { n: run.number })}<//>`}</p>
      ${current && !run.interrupted && html`<p>${t("commits.current")}: ${current.project_name} · ${current.branch_name}</p>`}
      ${run.error && html`<p class="notice tone-bad" role="alert">${run.error}</p>`}
    <//>
    <${Card} title=${t("commits.results")} flush>
      ${results.value ? html`<${Results} results=${results.value} />` : html`<${Until} problem=${results.problem} again=${results.again} />`}
    <//>`;
}

/** Those that failed come first, the rest where it is asked for. @param {{results: any[]}} props */
function Results({ results }) {
  const [all, setAll] = useState(false);
  const order = (/** @type {any} */ row) => ["failed", "pending", "success"].indexOf(row.status);
  const rows = [...results].sort((one, other) => order(one) - order(other));
  const columns = [
    { name: "project", title: t("commits.project"), cell: (/** @type {any} */ row) => row.project_name },
    { name: "branch", title: t("commits.branch"), cell: (/** @type {any} */ row) => row.branch_name },
    { name: "state", title: t("commits.state"), cell: (/** @type {any} */ row) => html`<${State} state=${row.status} />` },
    { name: "new", title: t("commits.new"), class: "figure", cell: (/** @type {any} */ row) => (row.new_commits_count === null ? "-" : number(row.new_commits_count)) },
    { name: "reason", title: t("commits.reason"), cell: (/** @type {any} */ row) => half(row.error_message ?? "") },
  ];
  const most = all ? rows.length : Math.max(FIRST, rows.filter((row) => row.status === "failed").length);
  return html`<${Table} label=${t("commits.results")} columns=${columns} rows=${rows.slice(0, most)} rowKey=${(/** @type {any} */ row) => `${row.project_id}:${row.branch_name}`} />
    ${most < rows.length && html`<p class="toolbar"><button class="button bare" onClick=${() => setAll(true)}>${t("commits.more", { n: number(rows.length - most) })}</button></p>`}`;
}

/** @param {{runs: any[]}} props */
function History({ runs }) {
  const columns = [
    { name: "started", title: t("commits.started"), cell: (/** @type {any} */ row) => html`<a href=${to(`/runs/${row.run_id}`)}><${Time} at=${seconds(row.started_at_utc)} /></a>` },
    { name: "state", title: t("commits.state"), cell: (/** @type {any} */ row) => html`<${State} state=${row.run_status} />` },
    { name: "targets", title: t("commits.targets"), class: "figure", cell: (/** @type {any} */ row) => number(row.total_targets) },
    { name: "succeeded", title: t("commits.succeeded"), class: "figure", cell: (/** @type {any} */ row) => number(row.success_count) },
    { name: "failed", title: t("commits.failed"), class: "figure", cell: (/** @type {any} */ row) => number(row.failed_count) },
    { name: "pending", title: t("commits.pending"), class: "figure", cell: (/** @type {any} */ row) => number(row.pending_count) },
  ];
  return html`<${Table} label=${t("commits.history")} columns=${columns} rows=${runs} rowKey=${(/** @type {any} */ row) => row.run_id} />`;
}

/** An earlier run. @param {{id: string}} props */
export function OneRun({ id }) {
  const asked = useAsked(`${API}/runs/${id}`, { every: 2 });
  if (!asked.value) return html`<${Frame} current="bulk"><${Until} problem=${asked.problem} again=${asked.again} /><//>`;
  return html`<${Frame} current="bulk" actions=${html`<${Actions} run=${asked.value} again=${asked.again} earlier />`}><${Standing} run=${asked.value} /><//>`;
}
