// What was used of language models: dollars, and a table by model.
import { html } from "../core/view.js";
import { number, t } from "../core/words.js";
import { Table } from "./table.js";

/** @typedef {import("../core/types.js").Sums} Sums */
/** @typedef {import("../core/types.js").ModelUsage} ModelUsage */

/** Gives an amount of US dollars, with more decimals where it is small; a dash where it is not known. @param {number|null|undefined} amount */
export function dollars(amount) {
  if (amount === null || amount === undefined) return "–";
  const digits = amount > 0 && amount < 1 ? 6 : 2;
  return number(amount, { style: "currency", currency: "USD", minimumFractionDigits: 2, maximumFractionDigits: digits });
}

/** The columns of sums, for any rows that have some. @template T @param {(row: T) => Sums} sums */
export const sumColumns = (sums) => [
  { name: "requests", title: t("llm.requests"), class: "figure", cell: (/** @type {T} */ row) => number(sums(row).requests) },
  { name: "input", title: t("llm.input"), class: "figure", cell: (/** @type {T} */ row) => number(sums(row).input_tokens) },
  { name: "output", title: t("llm.output"), class: "figure", cell: (/** @type {T} */ row) => number(sums(row).output_tokens) },
  { name: "cost", title: t("fact.cost"), class: "figure", cell: (/** @type {T} */ row) => html`<span
    title=${sums(row).unpriced ? t("llm.unpriced", { n: sums(row).unpriced }) : ""}>${dollars(sums(row).cost)}${sums(row).unpriced ? " *" : ""}</span>` },
];

/** What was used, by model and all together. @param {{usage: import("../core/types.js").Usage}} props */
export function UsageTable({ usage }) {
  const columns = [
    { name: "model", title: t("llm.model"), cell: (/** @type {ModelUsage} */ row) => html`<b class="wordy">${row.model || "–"}</b>
      ${row.provider && html` <span class="label">${row.provider}</span>`}${row.cached > 0 && html` <span class="label">
      ${t("llm.cached", { n: row.cached })}</span>`}` },
    ...sumColumns((/** @type {ModelUsage} */ row) => row),
  ];
  const all = { ...usage, provider: "", model: t("llm.all") };
  const rows = usage.models.length > 1 ? [...usage.models, all] : usage.models;
  return html`<${Table} label=${t("llm.bymodel")} columns=${columns} rows=${rows}
      rowKey=${(/** @type {ModelUsage} */ row) => `${row.provider}/${row.model}`} />
    ${usage.unpriced > 0 && html`<p class="hint">* ${t("llm.unpriced", { n: usage.unpriced })}</p>`}`;
}
