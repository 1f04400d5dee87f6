// Runs: the live list, its filters (all in the address), and what one can do with several at once.
import { html, useEffect, useMemo, useState } from "../core/view.js";
import { RunList } from "../core/runlist.js";
import { apiKey } from "../core/preferences.js";
import { go, link, place } from "../core/router.js";
import { STATUSES } from "../core/shapes.js";
import { Elapsed, Time } from "../core/times.js";
import { glance } from "../core/glance.js";
import { useAsked } from "../core/live.js";
import { number, t } from "../core/words.js";
import { askFor, mayBe } from "../parts/actions.js";
import { LateInput } from "../parts/form.js";
import { Icon, Shape } from "../parts/icons.js";
import { Page } from "../parts/layout.js";
import { RunProgress } from "../parts/progress.js";
import { Empty, Stale, Waiting } from "../parts/states.js";
import { Labels, Status } from "../parts/status.js";
import { Table } from "../parts/table.js";
import { CommandLine } from "../parts/command.js";

const SPANS = /** @type {Record<string, number>} */ ({ "1h": 3600, "24h": 86_400, "7d": 604_800 });

/** @param {Record<string, string>} query @returns {import("../core/runlist.js").Filters} */
function filtersOf({ status = "", flow = "", tag = "", label = "", text = "", since = "" }) {
  const statuses = status.split(",").filter((word) => STATUSES.includes(/** @type {any} */ (word)));
  return { status: statuses, flow, tag, label, text, since: SPANS[since] ?? 0 };
}

export function RunsScreen() {
  const query = place.value.query;
  const name = JSON.stringify(query);
  const list = useMemo(() => new RunList(filtersOf(query)), [name]);
  const key = apiKey.value;
  useEffect(() => list.open(), [list, key]);
  const [chosen, setChosen] = useState(/** @type {Set<string>} */ (new Set()));
  useEffect(() => setChosen(new Set()), [list]);
  const rows = list.rows.value;
  const picked = rows.filter((run) => chosen.has(run.run_id));
  const start = html`<a class="button primary" href=${link("/start")}><${Icon} name="plus" />${t("start.open")}</a>`;
  return html`<${Page} title=${t("nav.runs")} actions=${start}>
    <${StateNav} glance=${glance.value.value} query=${query} />
    <${Filters} query=${query} />
    <${Stale} problem=${rows.length ? list.problem.value : null} />
    ${picked.length > 0 && html`<${Bulk} runs=${picked} list=${list} clear=${() => setChosen(new Set())} />`}
    <${Rows} list=${list} rows=${rows} chosen=${chosen} setChosen=${setChosen} filtered=${Object.keys(query).length > 0} />
  <//>`;
}

/** @param {{glance: Api.Glance|null, query: Record<string, string>}} props */
function StateNav({ glance: seen, query }) {
  const all = seen ? Object.values(seen.runs).reduce((sum, count) => sum + count, 0) : null;
  /** @param {number|null|undefined} count */
  const figure = (count) => html`<b>${count === null || count === undefined ? "·" : number(count)}${seen?.at_least ? "+" : ""}</b>`;
  const entry = (/** @type {string} */ status, /** @type {any} */ mark, /** @type {number|null|undefined} */ count) => html`
    <a key=${status} href=${link("/runs", { ...query, status })}
      aria-current=${(query.status ?? "") === status ? "true" : undefined} data-status=${status || "ALL"}
      class=${status && !count ? "zero" : ""}>
      ${mark}<span>${t(status ? `state.${status}` : "runs.all")}</span>${figure(count)}
    </a>`;
  return html`<nav class="states" aria-label=${t("runs.states")}>
    ${entry("", null, all)} ${STATUSES.map((status) => entry(status, html`<${Shape} state=${status} />`, seen?.runs[status]))}
  </nav>`;
}

/** @param {{query: Record<string, string>}} props */
function Filters({ query }) {
  const flows = useAsked("/flows", { every: 30 });
  // What holds when it counts, not when it was typed: two fields may be filled in one moment.
  const set = (/** @type {string} */ name, /** @type {string} */ value) => go("/runs", { ...place.peek().query, [name]: value }, { replace: true });
  const field = (/** @type {string} */ name, /** @type {any} */ more = {}) => html`<${LateInput} key=${name}
    value=${query[name] ?? ""} label=${t(`filter.${name}`)} set=${(/** @type {string} */ text) => set(name, text)}
    more=${{ name, ...more }} />`;
  const used = ["flow", "tag", "label", "text", "since"].some((name) => query[name]);
  return html`<form class="toolbar filters" role="search" aria-label=${t("runs.filters")}
    onSubmit=${(/** @type {Event} */ event) => event.preventDefault()}>
    <label class="search"><${Icon} name="search" />${field("text", { type: "search", "data-search": "" })}</label>
    ${field("flow", { list: "flows" })} ${field("tag")} ${field("label")}
    <datalist id="flows">${/** @type {any[]} */ (flows.value ?? []).map((flow) => html`<option key=${flow.name} value=${flow.name} />`)}</datalist>
    <select aria-label=${t("filter.since")} value=${query.since ?? ""}
      onChange=${(/** @type {any} */ event) => set("since", event.currentTarget.value)}>
      <option value="">${t("filter.since.any")}</option>
      ${Object.keys(SPANS).map((span) => html`<option key=${span} value=${span}>${t(`filter.since.${span}`)}</option>`)}
    </select>
    ${used && html`<a class="button bare" href=${link("/runs", { status: query.status })}><${Icon} name="close" />${t("filter.clear")}</a>`}
  </form>`;
}

/** @param {{runs: Api.RunSummary[], list: RunList, clear: () => void}} props */
function Bulk({ runs, list, clear }) {
  const done = (/** @type {Set<string>} */ ids) => {
    clear();
    list.again();
    return ids;
  };
  const removed = (/** @type {Set<string>} */ ids) => list.drop(done(ids));
  return html`<div class="bulk" role="toolbar" aria-label=${t("bulk.label")}>
    <b>${t("bulk.chosen", { n: runs.length })}</b>
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
    cell: (/** @type {Api.RunSummary} */ run) => html`<input type="checkbox" aria-label=${t("bulk.one", { n: run.number })}
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
    html`<${Status} state=${run.status} />` },
  { name: "progress", title: t("column.progress"), class: "cell-progress", cell: (/** @type {Api.RunSummary} */ run) => (run.error
    ? html`<span class="error-line" title=${run.error}>${run.error}</span>` : html`<${RunProgress} run=${run} />`) },
  { name: "created", title: t("column.created"), class: "cell-time", cell: (/** @type {Api.RunSummary} */ run) =>
    html`<${Time} at=${run.created_at} />` },
  { name: "took", title: t("column.took"), class: "cell-took", cell: (/** @type {Api.RunSummary} */ run) =>
    html`<${Elapsed} from=${run.started_at}
    to=${run.finished_at ?? (run.status === "RUNNING" || run.status === "CANCELLING" ? null : run.updated_at)} />` },
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
  if (mayBe("cancel", run)) return act("cancel", "stop");
  if (mayBe("resume", run)) return act("resume", "play");
  const label = `${t("action.like")} #${run.number}`;
  return html`<a class="button bare" aria-label=${label} title=${label} href=${link("/start", { like: run.number })}><${Icon} name="copies" /></a>`;
}

/** @param {{filtered: boolean}} props */
function Nothing({ filtered }) {
  if (filtered) return html`<${Empty} title=${t("runs.none.filtered")} text=${t("runs.none.filtered.text")} icon="search">
    <a class="button" href=${link("/runs")}>${t("filter.clear")}</a><//>`;
  return html`<${Empty} title=${t("runs.none")} text=${t("runs.none.text")}>
    <a class="button primary" href=${link("/start")}><${Icon} name="plus" />${t("start.open")}</a>
    <${CommandLine} line="tsuzuki submit sample --param sentences=40 --watch" />
  <//>`;
}
