// Documents: dropped or chosen, one or many, listed and removed; adding them lets terms be looked for.
import { Card, Confirm, Empty, Icon, Table, Time, Waiting, ask, html, number, t, useAsked, useRef, useState } from "../../static/parts.js";
import { add, dropped, named } from "./adding.js";
import { Some, act, sent, to } from "./frame.js";

/** @typedef {import("./adding.js").Found} Found */

/** @param {{id: string, at: string, active: boolean, stands: string|null, changed: () => void}} props */
export function Files({ id, at, active, stands, changed }) {
  const asked = useAsked(`${at}/files`, { every: active ? 3 : 10 });
  const [removing, setRemoving] = useState(/** @type {any} */ (null));
  const again = () => (asked.again(), changed());
  const remove = () => sent(() => ask(`${at}/files/${removing.id}`, { method: "DELETE" })).then(again);
  const columns = [
    { name: "name", title: t("glossary.document"), cell: (/** @type {any} */ row) => html`<a href=${to(`/projects/${id}/files/${row.id}`)}>${row.file_name}</a>` },
    { name: "size", title: t("glossary.characters"), class: "figure", cell: (/** @type {any} */ row) => number(row.size) },
    { name: "added", title: t("glossary.added"), cell: (/** @type {any} */ row) => html`<${Time} at=${Date.parse(row.created_at) / 1000} />` },
    { name: "do", title: html`<span class="unseen">${t("glossary.actions")}</span>`, class: "cell-act", cell: (/** @type {any} */ row) => html`
      <button class="button bare" aria-label=${`${t("glossary.remove")} ${row.file_name}`} title=${t("glossary.remove")} onClick=${() => setRemoving(row)}><${Icon} name="bin" /></button>` },
  ];
  const show = (/** @type {any[]} */ rows) => html`<${Card} flush><${Table} label=${t("glossary.tab.files")} columns=${columns} rows=${rows} rowKey=${(/** @type {any} */ row) => row.id} /><//>`;
  return html`<${Drop} at=${at} done=${again} />
    ${!active && html`<${Unread} at=${at} stands=${stands} files=${asked.value ?? []} again=${again} />`}
    ${!asked.value ? html`<${Waiting} problem=${asked.problem} again=${asked.again} />`
      : asked.value.length ? html`<${Some} rows=${asked.value} text=${(/** @type {any} */ row) => row.file_name} show=${show} />`
      : html`<${Empty} title=${t("glossary.noFiles")} text=${t("glossary.noFilesText")} />`}
    ${removing && html`<${Confirm} title=${removing.file_name} button=${t("glossary.remove")} danger send=${remove} close=${() => setRemoving(null)}><p>${t("glossary.removeFile")}</p><//>`}`;
}

/** Says that terms were not looked for in some documents, and lets it be done: they came while something else ran, or that was stopped. @param {{at: string, stands: string|null, files: any[], again: () => void}} props */
function Unread({ at, stands, files, again }) {
  const runs = useAsked(`${at}/runs`, { when: stands }).value;
  const last = runs?.find((/** @type {any} */ run) => run.scope === "extract" && run.status === "completed")?.created_at ?? "";
  const count = files.filter((file) => file.created_at > last).length;
  if (!runs || !count) return null;
  const look = () => act(() => ask(`${at}/runs`, { method: "POST", body: { scope: "extract" } })).then(again);
  return html`<p class="notice"><span>${t("glossary.unread", { n: count })}</span>${" "}<button class="button small" onClick=${look}>${t("glossary.scope.extract")}</button></p>`;
}

/** @param {{at: string, done: () => void}} props */
function Drop({ at, done }) {
  const [over, setOver] = useState(false);
  const [busy, setBusy] = useState(false);
  const send = async (/** @type {Promise<Found[]>|Found[]} */ found) => {
    if (busy) return;
    setBusy(true);
    try {
      await add(at, await found);
    } finally {
      setBusy(false);
      done();
    }
  };
  const drop = (/** @type {DragEvent} */ event) => {
    event.preventDefault();
    setOver(false);
    if (event.dataTransfer) void send(dropped(event.dataTransfer));
  };
  const enter = (/** @type {DragEvent} */ event) => (event.preventDefault(), setOver(true));
  return html`<section class=${`card drop-zone${over ? " over" : ""}`} data-drop="documents" aria-label=${t("glossary.add")} aria-busy=${busy} onDragOver=${enter} onDragLeave=${() => setOver(false)} onDrop=${drop}>
    <${Icon} name="plus" />
    <p><b>${t(busy ? "glossary.adding" : "glossary.drop")}</b></p>
    <div class="drop-fields">
      <${Choose} label=${t("glossary.choose")} busy=${busy} send=${send} primary />
      <${Choose} label=${t("glossary.chooseFolder")} busy=${busy} send=${send} folder />
    </div>
  </section>`;
}

/** A button that chooses files, or those of a folder that are documents. @param {{label: string, busy: boolean, send: (found: Found[]) => void, folder?: boolean, primary?: boolean}} props */
function Choose({ label, busy, send, folder = false, primary = false }) {
  const input = useRef(/** @type {HTMLInputElement|null} */ (null));
  const chosen = (/** @type {any} */ event) => {
    const files = /** @type {File[]} */ ([...event.currentTarget.files]);
    event.currentTarget.value = "";
    send(named(files, folder));
  };
  return html`<button class=${`button${primary ? " primary" : ""}`} disabled=${busy} onClick=${() => input.current?.click()}>${label}</button>
    <input ref=${input} type="file" hidden multiple accept=".txt,.md" webkitdirectory=${folder} aria-label=${label} onChange=${chosen} />`;
}
