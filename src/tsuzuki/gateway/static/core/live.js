// Things that are looked at again and again: a question asked every few seconds while the page is seen.
import { effect, signal, useEffect, useMemo } from "./view.js";
import { Problem, ask } from "./api.js";
import { apiKey } from "./preferences.js";

const MOST_KEPT = 40;
/** The last answers, for screens that one comes back to: also while the gateway is away. @type {Map<string, any>} */
const kept = new Map();
effect(() => (apiKey.value, kept.clear()));

/** What was seen last under a name. @param {string} name */
export const recall = (name) => kept.get(name) ?? null;

/** Keeps what was seen last under a name. @param {string} name @param {any} value */
export function keep(name, value) {
  kept.delete(name);
  kept.set(name, value);
  if (kept.size > MOST_KEPT) kept.delete(kept.keys().next().value ?? "");
}

/**
 * Asks a path now and every so many seconds; the last answer stays while there is a problem.
 * @template T
 * @param {string|null} path null: nothing to ask yet
 * @param {{every?: number, query?: Record<string, unknown>, when?: unknown}} [how] seconds; 0: once; and at once when `when` is another one
 * @returns {Api.Asked<T>}
 */
export function useAsked(path, { every = 0, query = {}, when } = {}) {
  const name = path + JSON.stringify(query);
  const asked = useMemo(() => ({ state: signal(/** @type {any} */ ({ value: recall(name), problem: null, loading: true })), again: () => {} }), [name]);
  const key = apiKey.value;
  useEffect(() => {
    if (path === null) return undefined;
    return repeat(every, async (stopped) => {
      try {
        const value = await ask(path, { query, signal: stopped });
        keep(name, value);
        asked.state.value = { value, problem: null, loading: false };
      } catch (error) {
        if (error instanceof Problem) asked.state.value = { ...asked.state.value, problem: error, loading: false };
        else if (!stopped.aborted) throw error;
      }
    }, (again) => (asked.again = again));
  }, [name, every, key, when]);
  return { ...asked.state.value, again: () => asked.again() };
}

/**
 * Does something now and every so many seconds, one at a time, while the page is seen.
 * @param {number} every seconds; 0: only when it is asked for
 * @param {(stopped: AbortSignal) => Promise<unknown>} work
 * @param {(again: () => void) => void} [told] gets what does it at once
 * @returns {() => void} stops it
 */
export function repeat(every, work, told = () => {}) {
  const stop = new AbortController();
  /** @type {ReturnType<typeof setTimeout>|undefined} */
  let timer;
  let busy = false;
  let wanted = false;
  const round = async () => {
    clearTimeout(timer);
    if (busy) {
      wanted = true;
      return;
    }
    busy = true;
    await work(stop.signal).catch((error) => stop.signal.aborted || console.error(error));
    busy = false;
    if (stop.signal.aborted) return;
    if (wanted) {
      wanted = false;
      void round();
    } else if (every) timer = setTimeout(() => (document.hidden ? wait() : round()), every * 1000);
  };
  const wait = () => document.addEventListener("visibilitychange", round, { once: true, signal: stop.signal });
  told(() => void round());
  void round();
  return () => {
    clearTimeout(timer);
    stop.abort();
  };
}
