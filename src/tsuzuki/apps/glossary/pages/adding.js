// Documents on their way to a project: files and folders that were dropped or chosen, read, and sent in parts that a request can take.
import { Problem, ask, t, tell } from "../../static/parts.js";
import { act, said } from "./frame.js";

const LARGEST = 4_000_000; // bytes of a request, somewhat below what the gateway takes
const LARGEST_FILE = 3 * 1024 * 1024;
const MOST = 1000;
const REASONS = 5, NAMES = 3; // in one sentence
const REFUSED = new Set([400, 409]);
const KANA = /[ぁ-んァ-ヶ]/;
const DOCUMENT = /\.(txt|md)$/i;

/** @typedef {{file: File, name: string}} Found */

/** What was chosen; of a folder the documents. @param {File[]} files @param {boolean} folder @returns {Found[]} */
export const named = (files, folder) => files.filter((file) => !folder || DOCUMENT.test(file.name)).map((file) => ({ file, name: file.webkitRelativePath || file.name }));

/** What was dropped, with the documents of folders. @param {DataTransfer} transfer @returns {Promise<Found[]>} */
export async function dropped(transfer) {
  // The browser forgets what was dropped as soon as this function waits for something.
  const items = [...transfer.items].map((item) => ({ entry: item.webkitGetAsEntry(), file: item.getAsFile() }));
  const found = await Promise.all(items.map(({ entry, file }) => (entry?.isDirectory ? inside(entry) : file ? [{ file, name: file.name }] : [])));
  return found.flat();
}

/** @param {any} entry a folder @returns {Promise<Found[]>} */
async function inside(entry) {
  const reader = entry.createReader(), found = /** @type {Found[]} */ ([]);
  for (;;) {
    const some = /** @type {any[]} */ (await new Promise((done, broken) => reader.readEntries(done, broken)));
    if (!some.length) return found;
    for (const each of some) {
      if (each.isDirectory) found.push(...(await inside(each)));
      else if (DOCUMENT.test(each.name)) found.push({ file: await new Promise((done, broken) => each.file(done, broken)), name: each.fullPath.replace(/^\//, "") });
    }
  }
}

/** A document as it is sent; null where it is no text. @param {Found} found */
async function read({ file, name }) {
  const bytes = await file.arrayBuffer();
  const decoded = (/** @type {string} */ encoding) => ({ file_name: name, content: new TextDecoder(encoding, { fatal: true }).decode(bytes) });
  try {
    return decoded("utf-8");
  } catch {
    try {
      const document = decoded("shift_jis");
      return KANA.test(document.content) ? document : null; // bytes of other encodings hardly ever make kana
    } catch {
      return null;
    }
  }
}

/** Documents in parts, each small enough for one request. @param {any[]} documents */
function parts(documents) {
  const made = /** @type {any[][]} */ ([]);
  let size = LARGEST;
  for (const each of documents) {
    const own = new Blob([JSON.stringify(each)]).size + 2;
    if (size + own > LARGEST || made[made.length - 1].length >= MOST) made.push([]), (size = 20);
    made[made.length - 1].push(each);
    size += own;
  }
  return made;
}

/** Adds documents. What cannot be added is left out and told, with the reason, and costs no other one. Terms are looked for when the last ones are there. @param {string} at @param {Found[]} found */
export async function add(at, found) {
  const there = await act(() => ask(`${at}/files`));
  if (!there) return;
  const left = /** @type {Map<string, string[]>} */ (new Map());
  const all = parts(await fit(found, new Set(there.map((/** @type {any} */ file) => file.file_name)), left));
  let added = 0, answer = null;
  for (const [place, files] of all.entries()) {
    const one = files.length === 1, query = { extract: String(place === all.length - 1) };
    answer = await send(() => ask(one ? `${at}/files` : `${at}/files/bulk`, { method: "POST", query, body: one ? files[0] : { files } }), one ? files : null, left);
    if (answer) added += files.length;
    else if (answer === null) break;
    else if (!one) added += await singly(at, files, left);
  }
  if (left.size) tell(t("glossary.leftOut", { what: listed(left) }), "bad");
  if (added) tell(t("glossary.addedFiles", { n: added }));
  if (added && !answer) await act(() => ask(`${at}/runs`, { method: "POST", body: { scope: "extract" } })); // those that are there are not left unread
  else if (answer && !answer.extract_started) tell(`${t("glossary.notLooked")} ${said(answer.extract_skipped_reason ?? "")}`, "bad");
}

/** What was left out, in one sentence: some names for each reason, and how many more there are. @param {Map<string, string[]>} left */
function listed(left) {
  const shown = [...left].slice(0, REASONS).map(([why, names]) => ({ why, names: names.slice(0, NAMES) }));
  const more = [...left.values()].flat().length - shown.flatMap(({ names }) => names).length;
  const sentence = shown.map(({ why, names }) => t("glossary.leftWhy", { why, names: names.join(", ") })).join(" ");
  return more ? `${sentence} ${t("glossary.leftMore", { n: more })}` : sentence;
}

/** Those that can be sent, read; of the others why not. @param {Found[]} found @param {Set<string>} there @param {Map<string, string[]>} left */
async function fit(found, there, left) {
  const texts = await Promise.all(
    found.map(async (each) => {
      const name = each.name.normalize("NFC");
      const why = !DOCUMENT.test(name) ? "kind" : there.has(name) ? "there" : each.file.size > LARGEST_FILE ? "large" : "";
      const text = why ? null : await read(each);
      if (!text) leave(left, t(`glossary.left.${why || "noText"}`), name);
      return text;
    }),
  );
  return texts.filter((text) => text !== null);
}

/** @param {Map<string, string[]>} left @param {string} why @param {string} name */
const leave = (left, why, name) => left.set(why, [...(left.get(why) ?? []), name]);

/** Sends documents: their answer, undefined where they are refused, null where nobody answers as he should. @param {() => Promise<any>} work @param {any[] | null} alone the one that is sent, to be told of @param {Map<string, string[]>} left */
async function send(work, alone, left) {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Problem) || !REFUSED.has(error.status)) return act(() => Promise.reject(error));
    if (alone) leave(left, said(error.message), alone[0].file_name);
    return undefined;
  }
}

/** Sends documents one by one, as one of them was refused, and says how many were taken. @param {string} at @param {any[]} files @param {Map<string, string[]>} left */
async function singly(at, files, left) {
  let added = 0;
  for (const file of files) {
    const answer = await send(() => ask(`${at}/files`, { method: "POST", query: { extract: "false" }, body: file }), [file], left);
    if (answer === null) break;
    if (answer) added += 1;
  }
  return added;
}
