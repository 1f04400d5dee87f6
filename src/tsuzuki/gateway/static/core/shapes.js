// What the states of runs mean for what one can do with them.

/** @type {Api.Status[]} */
export const STATUSES = ["PENDING", "RUNNING", "CANCELLING", "COMPLETED", "FAILED", "CANCELLED"];
export const ACTIVE = new Set(["PENDING", "RUNNING", "CANCELLING"]);

/** Whether a run may be asked to stop. @param {Api.RunSummary} run */
export const cancellable = (run) => run.status === "PENDING" || run.status === "RUNNING";
/** Whether a run may go on: what failed, what was cancelled, and what completed with failed items. @param {Api.RunSummary} run */
export const resumable = (run) =>
  run.status === "FAILED" || run.status === "CANCELLED" || (run.status === "COMPLETED" && run.counts.failed > 0);
/** Whether a run may be removed. @param {Api.RunSummary} run */
export const removable = (run) => !ACTIVE.has(run.status);
