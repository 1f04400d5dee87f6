// What a run used of language models: by model, and request by request.
import { html, useEffect, useMemo, useRef } from "../core/view.js";
import { ask } from "../core/api.js";
import { Pager } from "../core/pager.js";
import { go, link } from "../core/router.js";
import { Time, duration } from "../core/times.js";
import { number, t } from "../core/words.js";
import { Empty, Stale } from "../parts/states.js";
import { Status } from "../parts/status.js";
import { LongTable } from "../parts/table.js";
import { UsageTable, dollars } from "../parts/usage.js";
import { useGrowth } from "./run-items.js";

/** @typedef {import("../core/types.js").Item} Item */

/** @param {{run: import("../core/types.js").RunSnapshot}} props */
export function ModelsTab({ run }) {
  const wanted = useRef(200);
  const path = `/runs/${run.run_id}/items`;
  /** @type {Pager<Item>} */
  const pager = useMemo(
    () =>
      new Pager(async (cursor) => {
        const page = await ask(path, { query: { spent: "true", cursor, limit: 1000 } });
        // The last page is read again when the journal has grown: it had no cursor to go on from.
        const last = pager.rows.peek().at(-1)?.position ?? 0;
        return { items: page.items.filter((/** @type {Item} */ one) => one.position > last), next: page.next_cursor };
      }),
    [path],
  );
  useEffect(() => () => pager.close(), [pager]);
  useGrowth(pager, run.position, wanted);
  if (!run.usage) return html`<${Empty} title=${t("llm.none.run")} icon="llm" />`;
  const need = (/** @type {number} */ rows) => {
    wanted.current = rows;
    if (!pager.ended.value) void pager.reach(rows);
  };
  const open = (/** @type {Item} */ row) => go(`/runs/${run.number}/items`, { item: row.position });
  return html`<${UsageTable} usage=${run.usage} />
    <h3>${t("llm.byrequest")}</h3>
    <${Stale} problem=${pager.size.value ? pager.problem.value : null} />
    <${LongTable} label=${t("llm.byrequest")} columns=${columns()} rows=${pager.rows.value} size=${pager.size.value}
      rowKey=${(/** @type {Item} */ row) => row.position} need=${need} open=${open} />
    <p class="hint">${t("llm.paid")} <a href=${link("/llm")}>${t("llm.everywhere")}</a></p>`;
}

const columns = () => [
  { name: "task", title: t("column.task"), width: "minmax(90px, 1fr)", cell: (/** @type {Item} */ row) => html`<span class="clip">${row.task}</span>` },
  { name: "status", title: t("column.status"), width: "110px", cell: (/** @type {Item} */ row) => html`<${Status} state=${row.status} />` },
  { name: "model", title: t("llm.model"), width: "minmax(0, 1.4fr)", class: "wide-only", cell: (/** @type {Item} */ row) =>
    html`<span class="clip">${row.usage?.models.map((model) => model.model).join(", ")}</span>` },
  { name: "requests", title: t("llm.requests"), width: "80px", class: "figure wide-only", cell: (/** @type {Item} */ row) => number(row.usage?.requests ?? 0) },
  { name: "input", title: t("llm.input"), width: "96px", class: "figure wide-only", cell: (/** @type {Item} */ row) => number(row.usage?.input_tokens ?? 0) },
  { name: "output", title: t("llm.output"), width: "96px", class: "figure wide-only", cell: (/** @type {Item} */ row) => number(row.usage?.output_tokens ?? 0) },
  { name: "cost", title: t("fact.cost"), width: "110px", class: "figure", cell: (/** @type {Item} */ row) => dollars(row.usage?.cost) },
  { name: "took", title: t("column.took"), width: "76px", class: "figure wide-only", cell: (/** @type {Item} */ row) => duration(row.took) },
  { name: "at", title: t("column.ended"), width: "130px", class: "wide-only", cell: (/** @type {Item} */ row) => html`<${Time} at=${row.at} />` },
];
