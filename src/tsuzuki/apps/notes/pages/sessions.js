// The sessions, the newest first, and a form that starts one.
import { Bar, Card, CommandLine, Empty, Page, Stale, Table, Time, Waiting, ask, go, html, t, useAsked, useState } from "../../static/parts.js";
import { API, State, act, counts, to } from "./frame.js";

export function Sessions() {
  const asked = useAsked(`${API}/sessions`, { every: 2 });
  if (!asked.value) return html`<${Page} title=${t("app.notes")}><${Waiting} problem=${asked.problem} again=${asked.again} /><//>`;
  const columns = [
    { name: "session", title: t("notes.session"), cell: (/** @type {any} */ row) => html`<a href=${to(`/sessions/${row.session_id}`)}>${row.source}</a>` },
    { name: "created", title: t("notes.created"), cell: (/** @type {any} */ row) => html`<${Time} at=${Date.parse(row.created_at) / 1000} />` },
    { name: "state", title: t("notes.state"), cell: (/** @type {any} */ row) => html`<${State} state=${row.status} />` },
    { name: "progress", title: t("notes.progress"), cell: (/** @type {any} */ row) => html`<${Bar} done=${row.success_count} failed=${row.error_count} skipped=${row.skipped_count} total=${row.total_count} label=${t("notes.progress")} /><small>${counts(row)}</small>` },
  ];
  return html`<${Page} title=${t("app.notes")}>
    <${Stale} problem=${asked.problem} />
    <${Card} title=${t("notes.import")}><${Import} /><//>
    ${asked.value.length
      ? html`<${Card} title=${t("notes.sessions")} flush><${Table} label=${t("notes.sessions")} columns=${columns} rows=${asked.value} rowKey=${(/** @type {any} */ row) => row.session_id} /><//>`
      : html`<${Empty} title=${t("notes.none")} text=${t("notes.noneText")} />`}
  <//>`;
}

function Import() {
  const [where, setWhere] = useState("");
  const [vault, setVault] = useState("");
  const [chunk, setChunk] = useState(false);
  const send = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const started = await act(() => ask(`${API}/sessions`, { method: "POST", body: { export: where, vault, chunk } }), t("notes.begun"));
    if (started) go(`/apps/notes/sessions/${started.session_id}`);
  };
  return html`<form class="toolbar" onSubmit=${send}>
      <input type="text" style=${{ flex: "2 1 220px" }} required aria-label=${t("notes.export")} placeholder=${t("notes.exportHint")} value=${where} onInput=${(/** @type {any} */ event) => setWhere(event.target.value)} />
      <input type="text" style=${{ flex: "2 1 220px" }} required aria-label=${t("notes.vault")} placeholder=${t("notes.vaultHint")} value=${vault} onInput=${(/** @type {any} */ event) => setVault(event.target.value)} />
      <label><input type="checkbox" checked=${chunk} onChange=${(/** @type {any} */ event) => setChunk(event.target.checked)} /> ${t("notes.chunk")}</label>
      <button class="button primary">${t("notes.start")}</button>
    </form>
    <${CommandLine} line="tsuzuki notes import export.zip --out vault" />`;
}
