// Runs: the live list, its filters (all in the address), and what one can do with several at once.
import { html, useEffect, useMemo, useState } from "../core/view.js";
import { MOST_CHOSEN, RunList } from "../core/runlist.js";
import { apiKey } from "../core/preferences.js";
import { go, link, place } from "../core/router.js";
import { STATUSES, WITH_FAILURES, stateOf, stoodStill, waits } from "../core/shapes.js";
import { Elapsed, Time, seconds } from "../core/times.js";
import { glance } from "../core/glance.js";
import { useAsked } from "../core/live.js";
import { number, t } from "../core/words.js";
import { askFor, mayBe } from "../parts/actions.js";
import { LateInput } from "../parts/lateinput.js";
import { Icon, Shape } from "../parts/icons.js";
import { Page } from "../parts/layout.js";
import { RunProgress, WaitLine } from "../parts/progress.js";
import { Empty, Stale, Waiting, errorText } from "../parts/states.js";
import { Labels, Status } from "../parts/status.js";
import { Table } from "../parts/table.js";
import { CommandLine } from "../parts/command.js";
import { commands } from "../core/commands.js";

/** What one can filter by, in the order in which it is shown. */
const STATES = STATUSES.flatMap((status) => (status === "COMPLETED" ? [status, WITH_FAILURES] : [status]));
const SPANS = /** @type {Record<string, number>} */ ({ "1h": 3600, "24h": 86_400, "7d": 604_800 });

/** @param {Record<string, string>} query @returns {import("../core/runlist.js").Filters} */
function filtersOf({ status = "", flow = "", tag = "", label = "", text = "", since = "", from = "", to = "" }) {
  const statuses = status.split(",").filter((word) => STATES.includes(word));
  const moment = (/** @type {string} */ at) => (since === "custom" ? seconds(at) ?? 0 : 0);
  return { status: statuses, flow, tag, label, text, since: SPANS[since] ?? 0, from: moment(from), to: moment(to) };
}

export function RunsScreen() {
  const query = place.value.query;
  const name = JSON.stringify(query);
  const filters = useMemo(() => filtersOf(query), [name]);
  const list = useMemo(() => new RunList(filters), [name]);
  const key = apiKey.value;
  useEffect(() => list.open(), [list, key]);
  const [count, recount] = useCounts(filters, query);
  const [chosen, setChosen] = useState(/** @type {Set<string>} */ (new Set()));
  useEffect(() => setChosen(new Set()), [list]);
  const rows = list.rows.value;
  const picked = rows.filter((run) => chosen.has(run.run_id));
  const start = html`<a class="button primary" href=${link("/start")}><${Icon} name="plus" />${t("start.open")}</a>`;
  const counts = (filters.status.length ? filters.status : [""]).map(count);
  const whole = counts.some((one) => !one) ? null : counts.reduce((sum, one) => sum + (one?.n ?? 0), 0);
  const more = counts.some((one) => one?.more);
  const everything = async () => {
    await list.all();
    setChosen(new Set(list.rows.value.slice(0, MOST_CHOSEN).map((run) => run.run_id)));
  };
  return html`<${Page} title=${t("nav.runs")} actions=${start}>
    <${StateNav} count=${count} query=${query} />
    <${Filters} query=${query} />
    <${Stale} problem=${rows.length ? list.problem.value : null} />
    ${picked.length > 0 && html`<${Bulk} runs=${picked} list=${list} clear=${() => setChosen(new Set())} whole=${list.cursor.value === null ? null : whole}
      more=${more} everything=${everything} recount=${recount} />`}
    <${Rows} list=${list} rows=${rows} chosen=${chosen} setChosen=${setChosen} filtered=${Object.keys(query).length > 0} />
    ${rows.length > 0 && html`<p class="hint total" role="status">${t("runs.total", { n: rows.length, total: `${number(Math.max(whole ?? 0, rows.length))}${more ? "+" : ""}` })}</p>`}
  <//>`;
}

/** @param {Record<string, number>} counts */
const sumOf = (counts) => Object.values(counts).reduce((sum, count) => sum + count, 0);

/** @typedef {{runs: Record<string, number>, at_least: boolean, more?: string[]}|null} Counted */
/** @typedef {{n: number, more: boolean}|null} Count how many, and whether there may be more; null: not known yet */

/** Return how many runs there are of a state (empty: of any) where the filters hold, and what counts again. @param {import("../core/runlist.js").Filters} filters @param {Record<string, string>} query @returns {[(state: string) => Count, () => void]} */
function useCounts(filters, query) {
  const filtered = ["flow", "tag", "label", "text", "since"].some((name) => query[name]);
  const { flow, tag, label, text, since, from, to } = filters;
  // To the minute: a filter that moves with the clock is not another question every second.
  const after = since ? Math.floor((Date.now() / 1000 - since) / 60) * 60 : from;
  const every = text ? 15 : 4, wanted = { flow, tag, label, text, updated_after: after || undefined, updated_before: to || undefined };
  const asked = useAsked(filtered ? "/runs/counts" : null, { every, query: wanted });
  const partly = useAsked("/runs/counts", { every, query: { ...wanted, status: WITH_FAILURES } });
  const count = (/** @type {string} */ state) => {
    const counted = /** @type {Counted} */ (state === WITH_FAILURES ? partly.value : filtered ? asked.value : glance.value.value);
    if (!counted) return null;
    if (!state) return { n: sumOf(counted.runs), more: counted.at_least };
    const status = state === WITH_FAILURES ? "COMPLETED" : state;
    return { n: counted.runs[status], more: Boolean(counted.more?.includes(status)) };
  };
  return [count, () => (asked.again(), partly.again())];
}

/** @param {Count} count */
const figure = (count) => (count ? `${number(count.n)}${count.more ? "+" : ""}` : "·");

/** @param {{count: (state: string) => Count, query: Record<string, string>}} props */
function StateNav({ count, query }) {
  const entry = (/** @type {string} */ state) => html`
    <a key=${state} href=${link("/runs", { ...query, status: state })} title=${state === WITH_FAILURES ? t(`state.${state}`) : undefined}
      aria-current=${(query.status ?? "") === state ? "true" : undefined} data-status=${state || "ALL"}
      class=${state && !count(state)?.n ? "zero" : ""}>
      ${state && html`<${Shape} state=${state} />`}<span>${state === WITH_FAILURES ? t("runs.failures") : t(state ? `state.${state}` : "runs.all")}</span><b>${figure(count(state))}</b>
    </a>`;
  return html`<nav class="states" aria-label=${t("runs.states")}>${["", ...STATES].map(entry)}</nav>`;
}

/** @param {{query: Record<string, string>}} props */
function Filters({ query }) {
  const flows = useAsked("/flows", { every: 30 });
  // What holds when it counts, not when it was typed: two fields may be filled in one moment.
  // Back undoes a filter as a whole: what is typed on replaces what was typed before.
  const set = (/** @type {string} */ name, /** @type {string} */ value) => {
    const before = place.peek().query;
    go("/runs", { ...before, [name]: value }, { replace: Boolean(value && before[name]) });
  };
  const field = (/** @type {string} */ name, /** @type {any} */ more = {}) => html`<${LateInput} key=${name}
    value=${query[name] ?? ""} label=${t(`filter.${name}`)} set=${(/** @type {string} */ text) => set(name, text)}
    more=${{ name, ...more }} />`;
  const moment = (/** @type {string} */ name) => html`<label class="moment"><span>${t(`filter.${name}`)}</span><input type="datetime-local" name=${name} value=${query[name] ?? ""}
    onChange=${(/** @type {any} */ event) => set(name, event.currentTarget.value)} /></label>`;
  const used = ["flow", "tag", "label", "text", "since", "status"].some((name) => query[name]);
  return html`<form class="toolbar filters" role="search" aria-label=${t("runs.filters")}
    onSubmit=${(/** @type {Event} */ event) => event.preventDefault()}>
    <label class="search"><${Icon} name="search" />${field("text", { type: "search", "data-search": "" })}</label>
    ${field("flow", { list: "flows" })} ${field("tag")} ${field("label")}
    <datalist id="flows">${/** @type {any[]} */ (flows.value ?? []).map((flow) => html`<option key=${flow.name} value=${flow.name} />`)}</datalist>
    <select aria-label=${t("filter.since")} value=${query.since ?? ""}
      onChange=${(/** @type {any} */ event) => set("since", event.currentTarget.value)}>
      <option value="">${t("filter.since.any")}</option>
      ${[...Object.keys(SPANS), "custom"].map((span) => html`<option key=${span} value=${span}>${t(`filter.since.${span}`)}</option>`)}
    </select>
    ${query.since === "custom" && html`${moment("from")}${moment("to")}`}
    ${used && html`<a class="button bare" href=${link("/runs")}><${Icon} name="close" />${t("filter.clear")}</a>`}
  </form>`;
}

/** @param {{runs: Api.RunSummary[], list: RunList, clear: () => void, whole: number|null, more: boolean, everything: () => Promise<void>, recount: () => void}} props */
function Bulk({ runs, list, clear, whole, more, everything, recount }) {
  const done = (/** @type {Set<string>} */ ids) => {
    clear();
    list.again();
    recount();
    return ids;
  };
  const removed = (/** @type {Set<string>} */ ids) => list.drop(done(ids));
  return html`<div class="bulk" role="toolbar" aria-label=${t("bulk.label")}>
    <b>${t("bulk.chosen", { n: runs.length })}</b>
    ${whole !== null && whole > runs.length && html`<button class="button" data-bulk="everything" onClick=${everything}>
      ${t("bulk.everything", { n: `${number(Math.min(whole, MOST_CHOSEN))}${more ? "+" : ""}` })}</button>`}
    <button class="button" data-bulk="cancel" onClick=${() => askFor("cancel", runs, done)}><${Icon} name="stop" />${t("action.cancel")}</button>
    <button class="button" data-bulk="resume" onClick=${() => askFor("resume", runs, done)}><${Icon} name="play" />${t("action.resume")}</button>
    <button class="button" data-bulk="remove" onClick=${() => askFor("remove", runs, removed)}><${Icon} name="bin" />${t("action.remove")}</button>
    <button class="button bare" onClick=${clear}><${Icon} name="close" />${t("bulk.clear")}</button>
  </div>`;
}

/** @param {{list: RunList, rows: Api.RunSummary[], chosen: Set<string>, setChosen: (ids: Set<string>) => void, filtered: boolean}} props */
function Rows({ list, rows, chosen, setChosen, filtered }) {
  const problem = list.problem.value;
  if (list.loading.value) return html`<${Waiting} problem=${problem} again=${() => list.again()} rows=${8} />`;
  if (!rows.length) return html`<${Nothing} filtered=${filtered} />`;
  const toggle = (/** @type {string} */ id) => {
    const next = new Set(chosen);
    if (!next.delete(id)) next.add(id);
    setChosen(next);
  };
  const every = rows.every((run) => chosen.has(run.run_id));
  const choose = {
    name: "choose", class: "cell-choose",
    title: html`<input type="checkbox" aria-label=${t("bulk.all")} checked=${every}
      onChange=${() => setChosen(new Set(every ? [] : rows.map((run) => run.run_id)))} />`,
    cell: (/** @type {Api.RunSummary} */ run) => html`<input type="checkbox" aria-label=${t("bulk.one", { n: String(run.number) })}
      checked=${chosen.has(run.run_id)} onChange=${() => toggle(run.run_id)} />`,
  };
  return html`<${Table} label=${t("nav.runs")} columns=${[choose, ...columns()]} rows=${rows}
    rowKey=${(/** @type {Api.RunSummary} */ run) => run.number}
    rowClass=${(/** @type {Api.RunSummary} */ run) => (chosen.has(run.run_id) ? "selected" : "")} />
    ${list.cursor.value !== null && html`<div class="more"><button class="button" onClick=${() => list.more()}>${t("table.more")}</button></div>`}`;
}

const columns = () => [
  { name: "run", title: t("column.run"), class: "cell-run", cell: (/** @type {Api.RunSummary} */ run) => html`<a class="run-name"
    href=${link(`/runs/${run.number}`)}><b>${run.flow_name}</b> <span class="run-number">#${run.number}</span></a>
    <${Labels} run=${run} all=${false} />` },
  { name: "status", title: t("column.status"), class: "cell-status", cell: (/** @type {Api.RunSummary} */ run) =>
    html`<${Status} state=${stateOf(run)} />${run.worker_lost && !run.interrupted && html`<${Status} state="LOST" />`}` },
  { name: "progress", title: t("column.progress"), class: "cell-progress", cell: (/** @type {Api.RunSummary} */ run) => (run.error
    ? html`<span class="error-line" title=${run.error}>${errorText(run)}</span>`
    : waits(run) ? html`<${WaitLine} run=${run} />` : html`<${RunProgress} run=${run} />`) },
  { name: "changed", title: t("column.changed"), class: "cell-time", cell: (/** @type {Api.RunSummary} */ run) =>
    html`<${Time} at=${run.updated_at} />` },
  { name: "took", title: t("column.took"), class: "cell-took", cell: (/** @type {Api.RunSummary} */ run) =>
    html`<${Elapsed} from=${run.started_at} to=${stoodStill(run)} />${run.attempt > 1 && html`<small class="means">${t("column.since")}</small>`}` },
  { name: "act", title: html`<span class="unseen">${t("column.actions")}</span>`, class: "cell-act", cell: (/** @type {Api.RunSummary} */ run) =>
    html`<${RowActions} run=${run} />` },
];

/** @param {{run: Api.RunSummary}} props */
function RowActions({ run }) {
  const act = (/** @type {import("../parts/actions.js").Verb} */ verb, /** @type {string} */ icon) => {
    const label = `${t(`action.${verb}`)} #${run.number}`;
    return html`<button class="button bare" aria-label=${label} title=${label} onClick=${() => askFor(verb, [run])}>
      <${Icon} name=${icon} /></button>`;
  };
  if (mayBe("wake", run)) return act("wake", "play");
  if (mayBe("resume", run)) return act("resume", "play");
  if (mayBe("cancel", run)) return act("cancel", "stop");
  const label = `${t("action.like")} #${run.number}`;
  return html`<a class="button bare" aria-label=${label} title=${label} href=${link("/start", { like: run.number })}><${Icon} name="copies" /></a>`;
}

/** @param {{filtered: boolean}} props */
function Nothing({ filtered }) {
  const flows = useAsked(filtered ? null : "/flows");
  const known = /** @type {any[]} */ (flows.value ?? []).map((flow) => flow.name);
  if (filtered) return html`<${Empty} title=${t("runs.none.filtered")} text=${t("runs.none.filtered.text")} icon="search">
    <a class="button" href=${link("/runs")}>${t("filter.clear")}</a><//>`;
  return html`<${Empty} title=${t("runs.none")} text=${t("runs.none.text")}>
    <a class="button primary" href=${link("/start")}><${Icon} name="plus" />${t("start.open")}</a>
    <${CommandLine} line=${commands.submit({ flow: known.includes("sample") ? "sample" : known[0] ?? "FLOW", params: {} })} />
  <//>`;
}
