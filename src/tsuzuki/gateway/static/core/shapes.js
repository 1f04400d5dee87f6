// The shapes of the public HTTP API, as far as the dashboard looks at them.

/** @typedef {"PENDING"|"RUNNING"|"CANCELLING"|"COMPLETED"|"FAILED"|"CANCELLED"} Status */
/** @typedef {{done: number, failed: number, skipped: number, steps: number}} Counts */
/** @typedef {{step: string, name: string, total?: number|null, done?: number, failed?: number, skipped?: number, running?: number, eta?: number|null, text?: string}} StepProgress */
/**
 * @typedef {{run_id: string, number: number, flow_name: string, tag: string, tags: string[], tenant_id: string|null, api_key_id: string|null,
 *   status: Status, updated_at: number, heartbeat_at: number, error: string|null, worker_id: string|null, created_at: string,
 *   started_at: string|null, finished_at: string|null, counts: Counts, attempt: number, progress: StepProgress[]}} RunSummary
 */
/** @typedef {{start: number, width: number, done: number[], failed: number[]}} Strip */
/**
 * @typedef {{state: string, started_at: number|null, ended_at: number|null, duration_ms: number|null, error: string|null, traceback: string|null,
 *   output: any, done: number, failed: number, skipped: number, total: number|null, busy_ms: number, strip: Strip|null}} TaskRecord
 */
/**
 * @typedef {RunSummary & {workflow_yaml_sha256: string|null, params: Record<string, any>, tasks: Record<string, string>, start_time: number|null,
 *   end_time: number|null, position: number, key: string|null, priority: number, continues: string|null, not_before: number|null,
 *   cancel_requested_at: number|null, cancel_requested_by: string|null, cancel_reason: string|null, result: any, result_blob: string|null,
 *   task_records?: Record<string, TaskRecord>, task_records_truncated?: boolean, cost?: number|null}} RunSnapshot
 */
/**
 * @typedef {{position: number, status: "done"|"failed"|"skipped", kind: string, task: string, step: string, key: string, attempt: number,
 *   tries: number, took: number, at: string, ended_at: number, error: string|null}} Item
 */
/** @typedef {Item & {output: any, output_bytes: number, output_truncated: boolean, traceback: string|null, artifacts: {name: string, size: number}[]}} Outcome */
/** @typedef {{number: number, at: number, level: string, text: string, name: string, key: string, step: string, logger: string, position: number}} LogLine */
/**
 * @typedef {{worker_id: string, instance_id: string, state: string, hidden: boolean, tags: string[], flows: string[], last_seen_at: number,
 *   started_at: number, current_run_id: string|null, last_run_id: string|null, last_run_status: string|null, stopped_at: number|null, stop_reason: string|null}} Worker
 */
/** @typedef {{id: string, timestamp: number, reason: string, error: string|null, run_id: string, number: number, flow_name: string, tag: string, tags: string[], worker_id: string|null, num_delivered: number}} Letter */
/** @typedef {{name: string, doc: string, params: any, tags: string[], workers: string[]}} FlowView */
/** @typedef {{runs: Record<Status, number>, at_least: boolean, workers_alive: number, dead_letters: number, queue_age: number, tenant: string|null, now: number}} Glance */
/** @typedef {{name: string, value: string, from: string, means: string, refusal: string|null}} SettingView */
/** @typedef {{name: string, callable: string, needs: string[], stage: number, mapped: boolean}} GraphNode */
/** @typedef {{name: string, title: {en: string, ja: string}, module: string|null}} Application */

/** @type {Status[]} */
export const STATUSES = ["PENDING", "RUNNING", "CANCELLING", "COMPLETED", "FAILED", "CANCELLED"];
export const ACTIVE = new Set(["PENDING", "RUNNING", "CANCELLING"]);

/** Whether a run may be asked to stop. @param {RunSummary} run */
export const cancellable = (run) => run.status === "PENDING" || run.status === "RUNNING";
/** Whether a run may go on: what failed, what was cancelled, and what completed with failed items. @param {RunSummary} run */
export const resumable = (run) =>
  run.status === "FAILED" || run.status === "CANCELLED" || (run.status === "COMPLETED" && run.counts.failed > 0);
/** Whether a run may be removed. @param {RunSummary} run */
export const removable = (run) => !ACTIVE.has(run.status);
