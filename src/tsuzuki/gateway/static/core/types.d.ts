// The shapes of the public HTTP API, as far as the dashboard looks at them; only tsc reads this.

export type Status = "PENDING"|"RUNNING"|"CANCELLING"|"COMPLETED"|"FAILED"|"CANCELLED";

export type Counts = {done: number, failed: number, skipped: number, steps: number};

export type StepProgress = {step: string, name: string, total?: number|null, done?: number, failed?: number, skipped?: number, running?: number, eta?: number|null, text?: string};

export type RunSummary = {run_id: string, number: number, flow_name: string, tag: string, tags: string[], tenant_id: string|null, api_key_id: string|null,  status: Status, updated_at: number, heartbeat_at: number, error: string|null, worker_id: string|null, created_at: string,  started_at: string|null, finished_at: string|null, counts: Counts, attempt: number, progress: StepProgress[], interrupted: boolean, worker_lost: boolean, usage: Usage|null, cost: number|null, waiting_reason?: string|null, waiting_until?: string|number|null};

export type Strip = {start: number, width: number, done: number[], failed: number[]};

export type TaskRecord = {state: string, started_at: number|null, ended_at: number|null, duration_ms: number|null, error: string|null, traceback: string|null,  inputs: Record<string, any>|null, output: any, done: number, failed: number, skipped: number, total: number|null, busy_ms: number, strip: Strip|null};

export type RunSnapshot = RunSummary & {workflow_yaml_sha256: string|null, params: Record<string, any>, params_truncated: boolean, tasks: Record<string, string>, start_time: number|null,  end_time: number|null, position: number, key: string|null, priority: number, continues: string|null, not_before: number|null,  cancel_requested_at: number|null, cancel_requested_by: string|null, cancel_reason: string|null, cut: Record<"never_started"|"finished_anyway"|"interrupted", number>|null, result: any, result_truncated: boolean, result_blob: string|null,  task_records?: Record<string, TaskRecord>, task_records_truncated?: boolean};

export type Item = {position: number, status: "done"|"failed"|"skipped", kind: string, task: string, step: string, key: string, attempt: number,  tries: number, took: number, at: string, ended_at: number, error: string|null, inputs: Record<string, any>|null, inputs_truncated: boolean, preview: string, usage: Usage|null};

export type Outcome = Item & {output: any, output_bytes: number, output_truncated: boolean, traceback: string|null, artifacts: {name: string, size: number}[]};

export type LogLine = {number: number, at: number, level: string, text: string, name: string, key: string, step: string, logger: string, position: number};

export type Worker = {worker_id: string, instance_id: string, state: string, hidden: boolean, tags: string[], flows: string[], resolves: boolean, last_seen_at: number,  started_at: number, current_run_id: string|null, last_run_id: string|null, last_run_status: string|null, stopped_at: number|null, stop_reason: string|null, wheel_sync: WheelSync};

export type WheelSync = {enabled: boolean, last_result: string, last_synced_at: number|null, last_error: string|null, installed_wheels: string[], skipped_incompatible: string[]};

export type Wheel = {name: string, package: string, version: string, size_bytes: number, sha256_hex: string, modified: number, nuid: string, tags: string[]};

export type WheelEvent = {event_id: string, occurred_at: number, action: string, wheel_name: string, tags: string[], actor: {tenant_id: string|null, api_key_id: string|null},
  source: {remote_addr: string|null}};

export type Letter = {id: string, timestamp: number, reason: string, error: string|null, run_id: string, number: number, flow_name: string, tag: string, tags: string[], worker_id: string|null, num_delivered: number};

export type FlowView = {name: string, doc: string, params: any, tag: string, tags: string[], workers: string[]};

export type Glance = {runs: Record<Status, number>, at_least: boolean, workers_alive: number, dead_letters: number, queue_age: number, tenant: string|null, now: number};

export type History = {width: number, at_least: boolean, bars: {start: number, ended: Record<string, number>, took: number[]|null, waited: number[]|null, queue_age: number}[]};

export type SettingView = {name: string, value: string, from: string, means: string, refusal: string|null};

export type GraphNode = {name: string, callable: string, needs: string[], stage: number, mapped: boolean};

export type Application = {name: string, title: {en: string, ja: string}, module: string|null};

export type Asked<T> = {value: T|null, problem: import("./api.js").Problem|null, loading: boolean, again: () => void};

export type Fact = {position: number, kind: string, at: number, attempt?: number, name?: string, key?: string, step?: string, worker?: string,
  reason?: string, by?: string, error?: {type: string, message: string, traceback?: string}};

export type Sums = {requests: number, cached: number, unpriced: number, uncertain: number, input_tokens: number, output_tokens: number, cost: number|null};

export type ModelUsage = Sums & {provider: string, model: string};

export type Usage = Sums & {models: ModelUsage[]};

export type UsageView = {usage: Usage|null, runs: number, at_least: boolean, latest: RunSummary[]};

export type JobProcess = {process_id: string, pending: number, in_progress: number, completed: number, failed: number, batch_job_id: string|null, open_batches: string[], unclear_batches: number, created_at: string, updated_at: string};

export type JobView = {id: string, status: string, batch_job_id: string|null, batch_state: string|null, error_message: string|null, created_at: string, updated_at: string};

export type QueueView = {host: string, hidden: boolean, processes: JobProcess[]};
