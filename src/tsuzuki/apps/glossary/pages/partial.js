// What a run has defined so far, whether it is under way or was stopped.
import { Dialog, Table, Waiting, html, number, t, useAsked } from "../../static/parts.js";

/** Whether a run can have something that is not yet in a glossary. @param {any} run */
export const unfinished = (run) => run.status !== "completed" && run.started_at !== null && ["full", "generate", "refine"].includes(run.scope);

/** @param {{at: string, run: any, active: boolean, close: () => void}} props */
export function Partial({ at, run, active, close }) {
  const asked = useAsked(`${at}/runs/${run.id}/partial`, active ? { every: 5 } : {});
  const columns = [
    { name: "term", title: t("glossary.term"), cell: (/** @type {any} */ row) => row.term },
    { name: "definition", title: t("glossary.definition"), cell: (/** @type {any} */ row) => html`<div class="glossary-long">${row.definition}</div>` },
    { name: "sure", title: t("glossary.confidence"), class: "figure", cell: (/** @type {any} */ row) => number(row.confidence, { style: "percent" }) },
    { name: "step", title: t("glossary.step"), cell: (/** @type {any} */ row) => t(`glossary.step.${row.step}`) },
  ];
  return html`<${Dialog} title=${`${t("glossary.partial")} #${run.id}`} close=${close} side>
    <p class="hint">${t("glossary.partialText")}</p>
    ${!asked.value ? html`<${Waiting} problem=${asked.problem} again=${asked.again} />`
      : asked.value.length ? html`<${Table} label=${t("glossary.partial")} columns=${columns} rows=${asked.value} rowKey=${(/** @type {any} */ row) => `${row.step} ${row.term}`} />`
      : html`<p>${t("glossary.noPartial")}</p>`}
  <//>`;
}
