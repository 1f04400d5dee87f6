// What language models cost, and the job queue of the gateway's machine.
import { html } from "../core/view.js";
import { useAsked } from "../core/live.js";
import { link } from "../core/router.js";
import { number, t } from "../core/words.js";
import { Page } from "../parts/layout.js";
import { Empty, Waiting } from "../parts/states.js";
import { Table } from "../parts/table.js";

/** US dollars, or a dash. @param {number|null} amount */
export const dollars = (amount) =>
  amount === null ? "–" : number(amount, { style: "currency", currency: "USD", maximumFractionDigits: amount < 1 ? 6 : 2 });

/** Rows with a name and figures. @param {any} props */
const Figures = ({ label, rows, name, figures, of = (/** @type {any} */ row) => row }) => rows.length > 0 && html`<${Table} label=${label} rows=${rows}
  rowKey=${(/** @type {any} */ row) => rows.indexOf(row)} columns=${[{ name: "name", title: label, cell: name },
    ...Object.entries(figures).map(([key, title]) => ({ name: key, title: t(title), class: "figure",
      cell: (/** @type {any} */ row) => (key === "cost" ? dollars(of(row).cost) + (of(row).unpriced ? " *" : "") : number(of(row)[key])) }))]} />`;

const USED = { requests: "llm.requests", input_tokens: "llm.input_tokens", output_tokens: "llm.output_tokens", cost: "fact.cost" };
const JOBS = { pending: "state.PENDING", in_progress: "state.RUNNING", completed: "state.COMPLETED", failed: "state.FAILED" };

/** @param {{usage: any}} props */
function Models({ usage }) {
  if (!usage) return html`<${Empty} title=${t("llm.none")} text=${t("llm.none.text")} icon="terminal" />`;
  const rows = usage.models.length > 1 ? [...usage.models, { ...usage, model: t("runs.all") }] : usage.models;
  return html`<${Figures} label=${t("llm.model")} rows=${rows} name=${(/** @type {any} */ row) => html`<b>${row.model}</b> ${row.provider}`} figures=${USED} />
    ${usage.unpriced > 0 && html`<p class="hint">* ${t("llm.unpriced", { n: usage.unpriced })}</p>`}
    ${usage.uncertain > 0 && html`<p class="hint">${t("llm.uncertain", { n: usage.uncertain })}</p>`}`;
}

/** @param {{run: any}} props */
export const ModelsTab = ({ run }) => html`<${Models} usage=${run.usage} /><p><a href=${link("/llm")}>${t("nav.llm")}</a></p>`;

/** What is known of the batches that may have the jobs of a process. @param {Api.JobProcess} props */
const Batches = ({ open_batches, unclear_batches }) => html`
  ${open_batches.length > 0 && html`<p class="hint">${t("llm.queue.open", { batch: open_batches.join(", ") })}</p>`}
  ${unclear_batches > 0 && html`<p class="hint">${t("llm.queue.unclear")}</p>`}`;

export function ModelsScreen() {
  const used = useAsked("/llm/usage", { every: 5 });
  const queue = useAsked("/llm/jobs", { every: 5 });
  return html`<${Page} title=${t("nav.llm")}>
    ${!used.value ? html`<${Waiting} ...${used} />` : html`<${Models} usage=${used.value.usage} />
      ${used.value.at_least && html`<p class="hint">${t("metrics.most", { n: used.value.runs })}</p>`}
      <${Figures} label=${t("nav.runs")} rows=${used.value.latest} figures=${USED} of=${(/** @type {any} */ row) => row.usage}
        name=${(/** @type {any} */ row) => html`<a href=${link(`/runs/${row.number}/llm`)}>${row.flow_name} #${row.number}</a>`} />`}
    ${queue.value && html`<p class="hint">${t("llm.queue.text", { host: queue.value.host })}${queue.value.processes.length ? "" : ` ${t("llm.queue.none")}`}</p>
      <${Figures} label=${t("llm.queue")} rows=${queue.value.processes} figures=${JOBS}
        name=${(/** @type {any} */ row) => html`<code>${row.process_id} ${row.batch_job_id}</code><${Batches} ...${row} />`} />`}
  <//>`;
}
