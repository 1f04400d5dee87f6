// Items: every recorded step and item in a window over a hundred thousand of them, and one of them closely.
import { html, useEffect, useMemo, useRef } from "../core/view.js";
import { ask } from "../core/api.js";
import { commands } from "../core/commands.js";
import { useAsked } from "../core/live.js";
import { Pager } from "../core/pager.js";
import { go, place } from "../core/router.js";
import { given } from "../core/shapes.js";
import { Time, duration } from "../core/times.js";
import { bytes, number, t } from "../core/words.js";
import { CommandLine, Copy } from "../parts/command.js";
import { Dialog } from "../parts/dialog.js";
import { LateInput } from "../parts/lateinput.js";
import { Icon } from "../parts/icons.js";
import { Fact } from "../parts/layout.js";
import { Empty, Stale, Waiting } from "../parts/states.js";
import { Middle, Status } from "../parts/status.js";
import { LongTable } from "../parts/table.js";
import { Value } from "../parts/value.js";
import { dollars } from "./llm.js";

const PAGE = 1000;
const STATES = ["done", "failed", "skipped"];

/** @param {{run: Api.RunSnapshot}} props */
export function ItemsTab({ run }) {
  const { status = "", step = "", error = "", key = "", item = "" } = place.value.query;
  const path = `/runs/${run.run_id}/items`;
  const wanted = useRef(200);
  /** @type {Pager<Api.Item>} */
  const pager = useMemo(
    () =>
      new Pager(async (cursor) => {
        const page = await ask(path, { query: { status, step, error, key, cursor, limit: PAGE } });
        // The last page is read again when the journal has grown: it had no cursor to go on from.
        const last = pager.rows.peek().at(-1)?.position ?? 0;
        return { items: page.items.filter((/** @type {Api.Item} */ one) => one.position > last), next: page.next_cursor };
      }),
    [path, status, step, error, key],
  );
  useEffect(() => () => pager.close(), [pager]);
  useGrowth(pager, run.position, wanted);
  const set = (/** @type {Record<string, any>} */ changes) => go(place.peek().path, { ...place.peek().query, ...changes }, { replace: true });
  const { done, failed, skipped, steps } = run.counts;
  const total = status || step || error || key ? null : done + failed + skipped + steps;
  const need = (/** @type {number} */ rows) => {
    wanted.current = rows;
    if (!pager.ended.value) void pager.reach(rows);
  };
  const problem = pager.problem.value;
  const select = (/** @type {Api.Item} */ row) => set({ item: row.position });
  let content;
  if (pager.size.value) {
    content = html`<${LongTable} label=${t("tab.items")} columns=${columns()} rows=${pager.rows.value} size=${pager.size.value}
      total=${pager.ended.value ? pager.size.value : total} rowKey=${(/** @type {Api.Item} */ row) => row.position}
      need=${need} open=${select} selected=${Number(item) || null} />`;
  } else if (pager.ended.value && !problem) content = html`<${Empty} title=${t(total === null ? "items.none.filtered" : "items.none")}
    icon="runs" />`;
  else content = html`<${Waiting} problem=${problem} again=${() => pager.reach(200)} />`;
  return html`
    <${ItemFilters} run=${run} status=${status} step=${step} error=${error} itemKey=${key} set=${set} />
    <${Stale} problem=${pager.size.value ? problem : null} />
    ${content}
    ${item && html`<${OneItem} run=${run} position=${item} close=${() => set({ item: "" })} />`}
    <${CommandLine} line=${commands.items(run.number, status === "failed")} />`;
}

/** Reads on when the journal has grown, as far as somebody looks; at most once a second. @param {Pager<any>} pager @param {number} position @param {{current: number}} wanted */
export function useGrowth(pager, position, wanted) {
  const timer = useRef(/** @type {any} */ (null));
  const current = useRef(pager);
  current.current = pager; // another one may be shown by the time
  useEffect(() => {
    if (timer.current !== null) return;
    timer.current = setTimeout(() => {
      timer.current = null;
      const shown = current.current;
      if (shown.size.peek() < wanted.current) void shown.wake(wanted.current);
      else shown.ended.value = false;
    }, pager.size.peek() ? 1000 : 0);
  }, [pager, position]);
  useEffect(() => () => clearTimeout(timer.current), []);
  useEffect(() => void pager.reach(wanted.current), [pager]);
}

/** @param {{run: Api.RunSnapshot, status: string, step: string, error: string, itemKey: string, set: (changes: Record<string, any>) => void}} props */
function ItemFilters({ run, status, step, error, itemKey, set }) {
  return html`<div class="toolbar" role="search" aria-label=${t("items.filters")}>
    <div class="segments" role="group" aria-label=${t("items.status")}>
      ${["", ...STATES].map((one) => html`<button key=${one} class="segment" data-item-status=${one || "all"}
        aria-pressed=${status === one} onClick=${() => set({ status: one })}>${t(one ? `state.${one}` : "runs.all")}</button>`)}
    </div>
    <select aria-label=${t("column.task")} value=${step} onChange=${(/** @type {any} */ event) => set({ step: event.currentTarget.value })}>
      <option value="">${t("items.everytask")}</option>
      ${Object.keys(run.tasks).map((name) => html`<option key=${name} value=${name}>${name}</option>`)}
    </select>
    <label class="search"><${Icon} name="search" /><${LateInput} value=${itemKey} label=${t("items.key")}
      set=${(/** @type {string} */ text) => set({ key: text })} more=${{ type: "search", "data-search": "" }} /></label>
    <label class="search"><${Icon} name="search" /><${LateInput} value=${error} label=${t("items.error")}
      set=${(/** @type {string} */ text) => set({ error: text })} more=${{ type: "search" }} /></label>
  </div>`;
}

const columns = () => [
  { name: "key", title: t("column.key"), width: "minmax(90px, 1.2fr)", cell: (/** @type {Api.Item} */ row) =>
    html`<span class="clip mono" title=${row.key || given(row)}>${row.key ? html`<${Middle} text=${row.key} />` : html`<span class="none">${given(row) || t("items.call", { n: number(row.position) })}</span>`}</span>` },
  { name: "task", title: t("column.task"), width: "minmax(80px, 0.8fr)", class: "wide-only", cell: (/** @type {Api.Item} */ row) =>
    html`<span class="clip">${row.task}</span>` },
  { name: "status", title: t("column.status"), width: "108px", cell: (/** @type {Api.Item} */ row) => html`<${Status} state=${row.status} />` },
  { name: "took", title: t("column.took"), width: "76px", class: "figure", cell: (/** @type {Api.Item} */ row) => duration(row.took) },
  { name: "tries", title: t("column.tries"), width: "64px", class: "figure wide-only", cell: (/** @type {Api.Item} */ row) => number(row.tries) },
  { name: "error", title: t("column.error"), width: "minmax(0, 2fr)", class: "wide-only", cell: (/** @type {Api.Item} */ row) =>
    html`<span class="clip tone-bad" title=${row.error ?? ""}>${row.error ?? ""}</span>` },
];

/** @param {{item: Api.Outcome}} props */
function Inputs({ item }) {
  if (!item.inputs) return html`<p class="hint">${t("items.inputs.none")}</p>`;
  if (!Object.keys(item.inputs).length) return html`<p class="hint">${t("items.inputs.empty")}</p>`;
  return html`<${Value} label=${t("items.inputs")} value=${item.inputs} />
    ${item.inputs_truncated && html`<p class="hint">${t("items.inputs.cut")}</p>`}`;
}

/** @param {{run: Api.RunSnapshot, position: string, close: () => void}} props */
function OneItem({ run, position, close }) {
  /** @type {Api.Asked<Api.Outcome>} */
  const found = useAsked(`/runs/${run.run_id}/items/${encodeURIComponent(position)}`);
  const item = found.value;
  const title = item ? `${item.task} · ${item.key || t("items.call", { n: number(item.position) })}` : t("items.one");
  return html`<${Dialog} side title=${title} close=${close}>
    ${found.problem && found.problem.status >= 400 && found.problem.status < 500 ? html`<${Empty} title=${t("items.missing")} icon="search" />` : !item ? html`<${Waiting} ...${found} />` : html`
      <dl class="facts tight">
        <${Fact} name=${t("column.status")}><${Status} state=${item.status} /><//>
        <${Fact} name=${t("column.took")}>${duration(item.took)}<//>
        <${Fact} name=${t("column.tries")}>${number(item.tries)}<//>
        <${Fact} name=${t("column.attempt")}>${number(item.attempt)}<//>
        <${Fact} name=${t("column.ended")}><${Time} at=${item.at} /><//>
        <${Fact} name=${t("items.position")}>${number(item.position)}<//>
        ${item.usage && html`<${Fact} name=${t("fact.cost")}>${dollars(item.usage.cost)}<//>`}
        ${item.key === "" && html`<${Fact} name=${t("items.callid")}><code>${item.step}</code><//>`}
      </dl>
      ${item.error && html`<div class="trouble"><p><${Icon} name="warn" /><b>${item.error}</b></p></div>`}
      ${item.traceback && html`<div class="value"><div class="value-head"><span>${t("items.trace")}</span>
        <${Copy} text=${item.traceback} /></div><pre class="code" tabindex="0">${item.traceback}</pre></div>`}
      ${item.key !== "" && html`<${Value} label=${t("column.key")} value=${item.key} />`}
      <${Inputs} item=${item} />
      ${item.status !== "failed" && (item.output_truncated ? html`<p class="notice">
        ${t("items.large", { size: bytes(item.output_bytes) })}</p>` : html`<${Value} label=${t("items.output")}
        value=${item.output} />`)}
      ${item.artifacts.length > 0 && html`<h3>${t("items.artifacts")}</h3><ul class="preview">${item.artifacts.map((one) =>
        html`<li key=${one.name}><b>${one.name}</b> <span>${bytes(one.size)}</span></li>`)}</ul>`}
      <${CommandLine} line=${commands.item(run.number, item.position)} />`}
  <//>`;
}
