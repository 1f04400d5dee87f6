// One run, live: a single stream of snapshots that connects again by itself.
import { batch, signal, useEffect, useMemo } from "./view.js";
import { Problem } from "./api.js";
import { apiKey } from "./preferences.js";
import { follow } from "./stream.js";

const PACE = 200; // milliseconds between two pictures of a busy run
const SECONDS = 600; // the longest that a stream stays open

/** Watches a run while it is looked at. @param {string} reference */
export function useRun(reference) {
  const watched = useMemo(() => new WatchedRun(reference), [reference]);
  const key = apiKey.value;
  useEffect(() => watched.open(), [watched, key]);
  return watched;
}

export class WatchedRun {
  /** @param {string} reference */
  constructor(reference) {
    this.reference = reference;
    this.run = signal(/** @type {Api.RunSnapshot|null} */ (null));
    this.link = signal(/** @type {import("./stream.js").Link} */ ("connecting"));
    this.problem = signal(/** @type {Problem|null} */ (null));
    /** @type {Api.RunSnapshot|null} */
    this.newest = null;
    /** @type {ReturnType<typeof setTimeout>|undefined} */
    this.timer = undefined;
  }

  open() {
    const stop = follow(`/runs/${encodeURIComponent(this.reference)}/watch`, {
      query: () => ({ include: "records", timeout_sec: SECONDS }),
      event: (event) => event.name === "snapshot" && this.take(event.data.snapshot),
      link: (state, problem) =>
        batch(() => {
          this.link.value = state;
          this.problem.value = problem ?? (state === "live" ? null : this.problem.value);
        }),
    });
    return () => {
      clearTimeout(this.timer);
      this.timer = undefined;
      stop();
    };
  }

  /** Shows a snapshot: the first at once, then one every so often. @param {Api.RunSnapshot} snapshot */
  take(snapshot) {
    this.newest = snapshot;
    if (this.timer !== undefined) return;
    this.run.value = snapshot;
    this.timer = setTimeout(() => {
      this.timer = undefined;
      if (this.newest !== this.run.peek() && this.newest) this.take(this.newest);
    }, PACE);
  }
}
