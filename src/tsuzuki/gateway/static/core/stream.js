// Server-sent events over fetch, which unlike EventSource can send the API key; it connects again by itself.
import { Problem, headers, note, problemOf } from "./api.js";
import { address } from "./place.js";
import { apiKey } from "./preferences.js";
import { parse } from "./exact.js";

const SILENCE = 12_000; // the gateway says something every three seconds
const FIRST_WAIT = 400;
const LONGEST_WAIT = 8_000;

/** @typedef {"connecting"|"live"|"waiting"|"ended"} Link */
/** @typedef {{name: string, data: any, id: string}} ServerEvent */

/**
 * Follows a stream until it is told to stop, or what it follows is gone.
 * @param {string} path
 * @param {{query?: () => Record<string, unknown>, event: (event: ServerEvent) => void, link: (state: Link, problem?: Problem) => void}} how
 * @returns {() => void} stops it
 */
export function follow(path, how) {
  const stop = new AbortController();
  void keepFollowing(path, how, stop.signal);
  return () => stop.abort();
}

/** @param {string} path @param {Parameters<typeof follow>[1]} how @param {AbortSignal} stopped */
async function keepFollowing(path, how, stopped) {
  for (let wait = FIRST_WAIT; !stopped.aborted; ) {
    how.link("connecting");
    try {
      await read(address(path, how.query?.()), how, stopped, () => (wait = FIRST_WAIT));
      continue; // it ended in order, because its time was up
    } catch (error) {
      if (stopped.aborted) return;
      const problem = error instanceof Problem ? error : new Problem(0);
      if (problem.status >= 400 && problem.status < 500 && problem.status !== 429) return how.link("ended", problem);
      if (problem.status === 0) note(0);
      how.link("waiting", problem);
    }
    await pause(wait * (0.75 + Math.random() / 2), stopped);
    wait = Math.min(wait * 2, LONGEST_WAIT);
  }
}

/** Waits so long, or until it is told to stop; nothing of it stays. @param {number} milliseconds @param {AbortSignal} stopped */
export const pause = (milliseconds, stopped) =>
  new Promise((/** @type {(value: void) => void} */ resolve) => {
    const over = () => {
      clearTimeout(timer);
      stopped.removeEventListener("abort", over);
      resolve();
    };
    const timer = setTimeout(over, milliseconds);
    stopped.addEventListener("abort", over);
  });

/** @param {URL} url @param {Parameters<typeof follow>[1]} how @param {AbortSignal} stopped @param {() => void} alive */
async function read(url, how, stopped, alive) {
  const cut = new AbortController();
  const stop = () => cut.abort();
  stopped.addEventListener("abort", stop);
  let timer = setTimeout(stop, SILENCE);
  const key = apiKey.peek();
  try {
    const answer = await fetch(url, { headers: headers({ Accept: "text/event-stream" }), signal: cut.signal, cache: "no-store" });
    if (!answer.ok || !answer.body) throw await problemOf(answer, key);
    note(200, "", "", key);
    how.link("live");
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ""; ; ) {
      const { done, value } = await reader.read();
      if (done) return;
      alive();
      clearTimeout(timer);
      timer = setTimeout(stop, SILENCE);
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop() ?? "";
      for (const block of blocks) how.event(parsed(block));
    }
  } finally {
    clearTimeout(timer);
    stopped.removeEventListener("abort", stop);
  }
}

/** @param {string} block @returns {ServerEvent} */
function parsed(block) {
  const event = { name: "message", data: /** @type {any} */ (null), id: "" };
  for (const line of block.split("\n")) {
    const [field, ...rest] = line.split(": ");
    const value = rest.join(": ");
    if (field === "event") event.name = value;
    else if (field === "id") event.id = value;
    else if (field === "data") event.data = parse(value);
  }
  return event;
}
