// Requests to the public HTTP API: the key, the problems, and whether the gateway can be reached.
import { signal } from "./view.js";
import { apiKey } from "./preferences.js";
import { address } from "./place.js";
import { parse, stringify } from "./exact.js";

const keyHeader = document.documentElement.dataset.keyHeader || "X-API-Key";

/** Whether the last request reached the gateway, and its store. @type {Api.Signal<"live"|"lost"|"unavailable">} */
export const reach = signal("live");
/** Whether a key is asked for: none needed or a good one, one is missing, this one is refused. @type {Api.Signal<"open"|"asked"|"refused">} */
export const access = signal("open");

/** What the gateway said instead of an answer; status 0: it cannot be reached. */
export class Problem extends Error {
  /** @param {number} status @param {any} [told] */
  constructor(status, told = {}) {
    super(told.detail || told.title || (status ? `HTTP ${status}` : "unreachable"));
    this.status = status;
    /** @type {string} */
    this.errorId = told.error_id ?? "";
    /** @type {{type?: string, loc: (string|number)[], msg: string, line?: number|null}[]} */
    this.fields = told.errors ?? [];
    /** @type {string|null} */
    this.runId = told.run_id ?? null;
  }
}

/** The headers that every request has. @param {Record<string, string>} [more] */
export const headers = (more = {}) => (apiKey.value ? { [keyHeader]: apiKey.value, ...more } : more);

/** Notes what an answer says of store and key; a good key may lack a right. @param {number} status @param {string} errorId @param {string} detail @param {string} key with which it was asked */
export function note(status, errorId = "", detail = "invalid api key", key = apiKey.peek()) {
  reach.value = status === 0 ? "lost" : status === 503 && errorId.endsWith("0003") ? "unavailable" : "live";
  if (key !== apiKey.peek()) return; // it was asked before this key was known, and says nothing of it
  if (status === 401) access.value = "asked";
  else if (status === 403 && apiKey.value && detail === "invalid api key") access.value = "refused";
  else if (status && status < 400) access.value = "open";
}

/**
 * Sends a request and gives what it answers.
 * @param {string|URL} path
 * @param {{method?: string, query?: Record<string, unknown>, body?: unknown, headers?: Record<string, string>, signal?: AbortSignal}} [how]
 * @returns {Promise<any>}
 */
export async function ask(path, how = {}) {
  const json = how.body !== undefined && !(how.body instanceof FormData), key = apiKey.peek();
  /** @type {RequestInit} */
  const request = {
    method: how.method ?? "GET",
    headers: headers({ ...(json ? { "Content-Type": "application/json" } : {}), ...how.headers }),
    body: json ? stringify(how.body) : /** @type {FormData|undefined} */ (how.body),
    signal: how.signal,
    cache: "no-store",
  };
  const answer = await sent(path instanceof URL ? path : address(path, how.query), request, key);
  if (!answer.ok) throw await problemOf(answer, key);
  if (answer.headers.get("content-type") === "application/zip") return answer.blob();
  const text = await answer.text();
  return text && answer.headers.get("content-type")?.includes("json") ? parse(text) : text; // 204 has no text, whatever its type
}

/** @param {URL} url @param {RequestInit} request @param {string} key */
async function sent(url, request, key) {
  try {
    const answer = await fetch(url, request);
    if (answer.ok) note(answer.status, "", "", key);
    return answer;
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    note(0);
    throw new Problem(0);
  }
}

/** Reads what an answer tells that is none. @param {Response} answer @param {string} [key] with which it was asked */
export async function problemOf(answer, key) {
  const told = await answer.json().catch(() => ({}));
  note(answer.status, told.error_id, told.detail, key);
  return new Problem(answer.status, told);
}

/** A key for a request that must not happen twice. */
export const onceKey = () => `dashboard-${crypto.getRandomValues(new Uint32Array(4)).join("-")}`;
