// The runs of a project, the newest first, and the log of each.
import { Card, Dialog, Empty, Icon, Status, Table, Time, Waiting, html, t, useAsked, useState } from "../../static/parts.js";
import { said } from "./frame.js";
import { Log } from "./running.js";

/** @param {{at: string, active: boolean}} props */
export function History({ at, active }) {
  const asked = useAsked(`${at}/runs`, { every: active ? 2 : 5 });
  const [shown, setShown] = useState(/** @type {any} */ (null));
  if (!asked.value) return html`<${Waiting} problem=${asked.problem} again=${asked.again} />`;
  if (!asked.value.length) return html`<${Empty} title=${t("glossary.noRuns")} />`;
  const time = (/** @type {string|null} */ at) => (at ? html`<${Time} at=${Date.parse(at) / 1000} />` : "");
  const columns = [
    { name: "run", title: t("glossary.theRun"), cell: (/** @type {any} */ row) => html`<button class="button bare" onClick=${() => setShown(row)}><${Icon} name="terminal" />#${row.id} ${t(`glossary.scope.${row.scope}`)}</button>` },
    { name: "state", title: t("glossary.state"), cell: (/** @type {any} */ row) => html`<${Status} state=${row.status.toUpperCase()} />` },
    { name: "by", title: t("glossary.by"), cell: (/** @type {any} */ row) => t(row.triggered_by === "auto" ? "glossary.by.auto" : "glossary.by.user") },
    { name: "started", title: t("glossary.started"), cell: (/** @type {any} */ row) => time(row.started_at) },
    { name: "finished", title: t("glossary.finished"), cell: (/** @type {any} */ row) => time(row.finished_at) },
    { name: "error", title: t("glossary.error"), cell: (/** @type {any} */ row) => said(row.error_message ?? "") },
  ];
  return html`<${Card} flush><${Table} label=${t("glossary.tab.runs")} columns=${columns} rows=${asked.value} rowKey=${(/** @type {any} */ row) => row.id} /><//>
    ${shown && html`<${Dialog} title=${`#${shown.id} ${t(`glossary.scope.${shown.scope}`)}`} close=${() => setShown(null)} side><${Log} at=${at} run=${shown.id} /><//>`}`;
}
