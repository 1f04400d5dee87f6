// Documents on their way to a project: files and folders that were dropped or chosen, read, and sent in parts that a request can take.
import { ask, t, tell } from "../../static/parts.js";
import { act, said } from "./frame.js";

const LARGEST = 4_000_000; // bytes of a request, somewhat below what the gateway takes
const MOST = 1000;
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
  try {
    return { file_name: name, content: new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer()) };
  } catch {
    return null;
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

/** Adds documents; what cannot be read is left out and told. Terms are looked for when the last ones are there. @param {string} at @param {Found[]} found */
export async function add(at, found) {
  const texts = await Promise.all(found.map(read));
  texts.forEach((text, place) => text ?? tell(t("glossary.noText", { name: found[place].name }), "bad"));
  const all = parts(texts.filter((text) => text !== null));
  let added = 0, answer = null;
  for (const [place, files] of all.entries()) {
    const query = { extract: String(place === all.length - 1) };
    answer = await act(() => (files.length === 1 ? ask(`${at}/files`, { method: "POST", query, body: files[0] }) : ask(`${at}/files/bulk`, { method: "POST", query, body: { files } })));
    if (!answer) break;
    added += files.length;
  }
  if (added) tell(t("glossary.addedFiles", { n: added }));
  if (added && !answer) await act(() => ask(`${at}/runs`, { method: "POST", body: { scope: "extract" } })); // those that are there are not left unread
  else if (answer && !answer.extract_started) tell(`${t("glossary.notLooked")} ${said(answer.extract_skipped_reason ?? "")}`, "bad");
}
