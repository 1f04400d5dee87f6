// One run, live: by a stream while it is under way, by a question now and then when it has ended or streams are scarce.
import { batch, signal, useEffect, useMemo } from "./view.js";
import { Problem, ask } from "./api.js";
import { keep, recall } from "./live.js";
import { apiKey } from "./preferences.js";
import { ACTIVE } from "./shapes.js";
import { follow, pause } from "./stream.js";

/** @typedef {import("./types.js").RunSnapshot} RunSnapshot */
/** @typedef {import("./stream.js").Link | "settled"} State */

const PACE = 200; // milliseconds between two pictures of a busy run
const SECONDS = 600; // the longest that a stream stays open
const POLL = 1500; // milliseconds between two questions where no stream is free
const CALM = 4000; // and where the run has ended
// Browsers open six connections to a host, for all tabs together: streams may have half of them.
const STREAMS = 3;

/** Watches a run while it is looked at. @param {string} reference */
export function useRun(reference) {
  const watched = useMemo(() => new WatchedRun(reference), [reference]);
  const key = apiKey.value;
  useEffect(() => watched.open(), [watched, key]);
  return watched;
}

/** Takes one of the streams that all tabs share; gives what gives it back, null where none is free. @returns {Promise<(() => void)|null>} */
async function aStream() {
  if (!navigator.locks) return () => {}; // without TLS nobody can be asked: tabs that are not seen let go of theirs
  for (let place = 0; place < STREAMS; place += 1) {
    const taken = await new Promise((resolve) => {
      void navigator.locks.request(`tsuzuki stream ${place}`, { ifAvailable: true }, (lock) =>
        lock ? new Promise((done) => resolve(() => done(undefined))) : resolve(null));
    });
    if (taken) return taken;
  }
  return null;
}

class WatchedRun {
  /** @param {string} reference */
  constructor(reference) {
    this.reference = reference;
    this.path = `/runs/${encodeURIComponent(reference)}`;
    this.run = signal(/** @type {Api.RunSnapshot|null} */ (recall(this.path)));
    this.link = signal(/** @type {State} */ ("connecting"));
    this.problem = signal(/** @type {Problem|null} */ (null));
    /** @type {Api.RunSnapshot|null} */
    this.newest = null;
    /** @type {ReturnType<typeof setTimeout>|undefined} */
    this.timer = undefined;
  }

  open() {
    const stop = new AbortController();
    void this.watch(stop.signal);
    return () => {
      clearTimeout(this.timer);
      this.timer = undefined;
      stop.abort();
    };
  }

  /** Whether nothing is expected to change. */
  get settled() {
    return this.newest !== null && !ACTIVE.has(this.newest.status);
  }

  /** @param {AbortSignal} stopped */
  async watch(stopped) {
    for (let first = true; !stopped.aborted && (first || this.link.peek() !== "ended"); first = false) {
      if (document.hidden) await seen(stopped);
      if (stopped.aborted) return;
      if (!first && this.settled) {
        await pause(CALM, stopped);
        await this.look(stopped);
        continue;
      }
      const release = await aStream();
      if (release) await this.stream(stopped).finally(release);
      else {
        await this.look(stopped);
        await pause(POLL, stopped);
      }
    }
  }

  /** Asks how the run is. @param {AbortSignal} stopped */
  async look(stopped) {
    if (stopped.aborted || document.hidden) return;
    try {
      const brief = this.settled;
      let found = await ask(this.path, { query: { include: brief ? undefined : "records" }, signal: stopped });
      if (brief && found.updated_at === this.newest?.updated_at) return this.tell("settled");
      if (brief) found = await ask(this.path, { query: { include: "records" }, signal: stopped });
      this.take(found);
      this.tell(this.settled ? "settled" : "live");
    } catch (error) {
      if (stopped.aborted || !(error instanceof Problem)) return;
      this.tell(error.status >= 400 && error.status < 500 ? "ended" : "waiting", error);
    }
  }

  /** Follows the run until it has ended, is not looked at, or cannot be followed. @param {AbortSignal} stopped */
  stream(stopped) {
    return new Promise((/** @type {(value: void) => void} */ resolve) => {
      const done = () => {
        stop();
        document.removeEventListener("visibilitychange", done);
        stopped.removeEventListener("abort", done);
        resolve();
      };
      const stop = follow(`${this.path}/watch`, {
        query: () => ({ include: "records", timeout_sec: SECONDS }),
        event: (event) => {
          if (event.name !== "snapshot") return;
          this.take(event.data.snapshot);
          if (this.settled) {
            this.tell("settled");
            done();
          }
        },
        link: (state, problem) => {
          this.tell(state, problem);
          if (state === "ended") done();
        },
      });
      document.addEventListener("visibilitychange", done);
      stopped.addEventListener("abort", done);
    });
  }

  /** @param {State} state @param {Problem} [problem] */
  tell(state, problem) {
    batch(() => {
      this.link.value = state;
      this.problem.value = problem ?? (state === "live" || state === "settled" ? null : this.problem.value);
    });
  }

  /** Shows a snapshot: the first at once, then one every so often. @param {Api.RunSnapshot} snapshot */
  take(snapshot) {
    this.newest = snapshot;
    keep(this.path, snapshot);
    if (this.timer !== undefined && !this.settled) return;
    clearTimeout(this.timer); // the last one is shown at once
    this.run.value = snapshot;
    this.timer = setTimeout(() => {
      this.timer = undefined;
      if (this.newest !== this.run.peek() && this.newest) this.take(this.newest);
    }, PACE);
  }
}

/** Waits until the page is seen. @param {AbortSignal} stopped */
const seen = (stopped) =>
  new Promise((resolve) => {
    document.addEventListener("visibilitychange", () => resolve(undefined), { once: true, signal: stopped });
    stopped.addEventListener("abort", () => resolve(undefined), { once: true });
  });
