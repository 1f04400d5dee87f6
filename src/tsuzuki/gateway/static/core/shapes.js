// What the states of runs mean for what one can do with them, and what tells calls apart.
import { stringify } from "./exact.js";

/** @typedef {import("./types.js").RunSummary} RunSummary */

/** @type {import("./types.js").Status[]} */
export const STATUSES = ["PENDING", "RUNNING", "CANCELLING", "COMPLETED", "FAILED", "CANCELLED"];
export const ACTIVE = new Set(["PENDING", "RUNNING", "CANCELLING"]);
/** The filter for completed runs with failed items; their status is COMPLETED. */
export const WITH_FAILURES = "COMPLETED_WITH_FAILURES";

/** The state of a run as people see it: whether its process was stopped, and whether items failed. @param {Api.RunSummary} run */
export const stateOf = (run) => (run.interrupted ? "INTERRUPTED" : run.status === "COMPLETED" && run.counts.failed > 0 ? WITH_FAILURES : run.status);
/** Whether a run waits until a time that it chose itself. @param {Api.RunSummary} run */
export const waits = (run) => run.status === "PENDING" && Boolean(run.waiting_until);
/** Whether somebody works on a run, so that its time goes on. @param {Api.RunSummary} run */
export const underWay = (run) => (run.status === "RUNNING" || run.status === "CANCELLING") && !run.interrupted && !run.worker_lost;
/** When the time of a run stood still; null: it goes on. @param {Api.RunSummary} run */
export const stoodStill = (run) => run.finished_at ?? (underWay(run) ? null : run.updated_at);
/** Whether a run may be asked to stop. @param {Api.RunSummary} run */
export const cancellable = (run) => run.status === "PENDING" || run.status === "RUNNING";
/** Whether a run may go on: what failed, was cancelled or interrupted, and what completed with failed items. @param {Api.RunSummary} run */
export const resumable = (run) =>
  run.status === "FAILED" || run.status === "CANCELLED" || run.interrupted || (run.status === "COMPLETED" && run.counts.failed > 0);
/** Whether a run may be removed. @param {Api.RunSummary} run */
export const removable = (run) => !ACTIVE.has(run.status);

/** What a call without a key is told apart by: what it was given and gave. @param {Api.Item} row */
export const given = (row) => {
  const inputs = Object.keys(row.inputs ?? {}).length ? stringify(row.inputs) : "";
  return `${inputs}${row.preview && row.preview !== "null" ? ` → ${row.preview}` : ""}`;
};
