// The command line that does what a button does.
import { root } from "./place.js";
import { stringify } from "./exact.js";

/** Quotes a word for a shell. @param {string} text */
export const quoted = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

const server = root.href.replace(/\/$/, "");

/** @param {...string} words */
const line = (...words) => ["tsuzuki", ...words, "--server", server].map(quoted).join(" ");

/** Params as options; text that would be read as JSON is written as JSON. @param {Record<string, any>} params */
function paramWords(params) {
  return Object.entries(params).flatMap(([name, value]) => ["--param", `${name}=${paramText(value)}`]);
}

/** @param {any} value */
function paramText(value) {
  if (typeof value !== "string") return stringify(value);
  try {
    JSON.parse(value);
    return stringify(value);
  } catch {
    return value;
  }
}

export const commands = {
  /** @param {{flow: string, params: Record<string, any>, tag?: string, tags?: string[], key?: string}} start */
  submit: ({ flow, params, tag, tags, key }) =>
    line("submit", flow, ...paramWords(params), ...(tag ? ["--tag", tag] : []), ...(tags?.length ? ["--tags", tags.join(",")] : []), ...(key ? ["--key", key] : [])),
  /** @param {string} name @param {string} tag */
  submitYaml: (name, tag) => line("submit-yaml", "FILE.yaml", "--flow-name", name, ...(tag ? ["--tag", tag] : [])),
  /** @param {string|number} run @param {string} [reason] */
  cancel: (run, reason = "") => line("cancel", String(run), ...(reason ? ["--reason", reason] : [])),
  /** @param {string|number} run @param {boolean} [failed] */
  resume: (run, failed = true) => line("resume", String(run), ...(failed ? [] : ["--keep-failed"])),
  /** @param {string|number} run */
  watch: (run) => line("watch", String(run)),
  /** @param {string|number} run @param {number} position */
  item: (run, position) => line("items", String(run), "--position", String(position)),
  /** @param {string|number} run @param {boolean} [failed] */
  items: (run, failed = false) => line("items", String(run), ...(failed ? ["--failed"] : [])),
  /** @param {string|number} run */
  events: (run) => line("events", String(run)),
  /** @param {string|number} run */
  get: (run) => line("get", String(run)),
  /** A worker for runs of a tag; it opens the store itself. @param {string} tag @param {boolean} sync @param {string[]} store */
  worker: (tag, sync, store) =>
    ["tsuzuki", "worker", ...(sync ? ["--wheel-sync"] : ["--flows", "FILE.py"]), ...(tag === "default" ? [] : ["--tags", tag]), ...store].map(quoted).join(" "),
  metrics: () => line("metrics"),
  /** @param {string} worker @param {boolean} hidden */
  hide: (worker, hidden) => line("workers", hidden ? "--hide" : "--unhide", worker),
  /** @param {string} verb @param {string} letter */
  letter: (verb, letter) => line("dlq", verb, letter),
  /** @param {string} verb @param {string} name */
  wheel: (verb, name) => line("wheels", verb, name),
  /** @param {string|number} run */
  remove: (run) => line("delete", String(run), "--yes"),
};
