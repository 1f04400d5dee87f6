// Metrics: how much is done, how long it takes, how long it waits; from the runs themselves and from the gateway's figures.
import { html, useEffect, useMemo, useState } from "../core/view.js";
import { Problem, ask } from "../core/api.js";
import { glance } from "../core/glance.js";
import { repeat } from "../core/live.js";
import { paged } from "../core/place.js";
import { apiKey } from "../core/preferences.js";
import { go, place } from "../core/router.js";
import { duration, seconds } from "../core/times.js";
import { number, t } from "../core/words.js";
import { CommandLine } from "../parts/command.js";
import { Chart } from "../parts/chart.js";
import { Card, Page } from "../parts/layout.js";
import { Empty, Stale, Waiting } from "../parts/states.js";

const SPANS = /** @type {Record<string, number>} */ ({ "1h": 3600, "24h": 86_400, "7d": 604_800 });
const BINS = 48;
const MOST = 4000; // runs that are looked at
const SAMPLES = 720; // of the queue's age, while the page is open

/** @type {{at: number, age: number}[]} */
const samples = [];

export function MetricsScreen() {
  const span = SPANS[place.value.query.span ?? ""] ? place.value.query.span : "24h";
  const { value: seen, problem } = glance.value;
  useMemo(() => {
    if (seen) samples.push({ at: seen.now, age: seen.queue_age });
    samples.splice(0, samples.length - SAMPLES);
  }, [seen]);
  const found = useEnded(SPANS[span]);
  const choose = html`<div class="segments" role="group" aria-label=${t("metrics.span")}>${Object.keys(SPANS).map((one) =>
    html`<button key=${one} class="segment" aria-pressed=${span === one}
    onClick=${() => go("/metrics", { span: one }, { replace: true })}>${t(`metrics.span.${one}`)}</button>`)}</div>`;
  return html`<${Page} title=${t("nav.metrics")} actions=${choose}>
    <${Stale} problem=${seen ? problem : null} />
    ${seen ? html`<${Figures} seen=${seen} />` : html`<${Waiting} problem=${problem} rows=${2} />`}
    ${found.runs && html`<${Charts} runs=${found.runs} length=${SPANS[span]} />`}
    ${found.more && html`<p class="hint">${t("metrics.most", { n: MOST })}</p>`}
    <${CommandLine} line="tsuzuki metrics" />
  <//>`;
}

/** Runs that changed in the last so many seconds. @param {number} length */
function useEnded(length) {
  const [found, setFound] = useState(/** @type {{runs: Api.RunSummary[]|null, more: boolean}} */ ({ runs: null, more: false }));
  const key = apiKey.value;
  useEffect(() => repeat(15, async (stopped) => {
    /** @type {Api.RunSummary[]} */
    const runs = [];
    /** @type {string|null} */
    let cursor = "";
    try {
      while (cursor !== null && runs.length < MOST) {
        const page = await ask(paged("/runs", { updated_after: Date.now() / 1000 - length, limit: 200, cursor }), { signal: stopped });
        runs.push(...page.items);
        cursor = page.next_cursor;
      }
      setFound({ runs, more: cursor !== null });
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
    }
  }), [length, key]);
  return found;
}

/** @param {{seen: Api.Glance}} props */
function Figures({ seen }) {
  const { runs } = seen;
  const entries = [
    ["state.RUNNING", number(runs.RUNNING + runs.CANCELLING)], ["state.PENDING", number(runs.PENDING)], ["metrics.age", duration(seen.queue_age)],
    ["nav.workers", number(seen.workers_alive)], ["nav.letters", number(seen.dead_letters)], ["state.COMPLETED", number(runs.COMPLETED)], ["state.FAILED", number(runs.FAILED)],
  ];
  return html`<dl class="figures">${entries.map(([name, value]) => html`<div key=${name} class="figure-card"><dt>${t(name)}</dt>
    <dd data-figure=${name}>${value}</dd></div>`)}</dl>`;
}

/** @param {number[]} values @param {number} part */
function quantile(values, part) {
  if (!values.length) return null;
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.min(Math.floor(part * sorted.length), sorted.length - 1)];
}

/** @param {Api.RunSummary[]} runs @param {number} length */
function binned(runs, length) {
  const width = length / BINS;
  const last = Math.ceil(Date.now() / 1000 / width) * width;
  const first = last - BINS * width;
  const bins = Array.from({ length: BINS }, () => ({ done: 0, failed: 0, took: /** @type {number[]} */ ([]), waited: /** @type {number[]} */ ([]) }));
  for (const run of runs) {
    const end = seconds(run.finished_at), start = seconds(run.started_at), made = seconds(run.created_at);
    const bin = end === null ? undefined : bins[Math.floor((end - first) / width)];
    if (bin && end !== null) {
      if (run.status === "COMPLETED") bin.done += 1;
      else if (run.status === "FAILED") bin.failed += 1;
      if (start !== null) bin.took.push(Math.max(end - start, 0));
    }
    if (start !== null && made !== null) bins[Math.floor((start - first) / width)]?.waited.push(Math.max(start - made, 0));
  }
  return { times: bins.map((_, place) => first + (place + 0.5) * width), bins };
}

/** @param {{runs: Api.RunSummary[], length: number}} props */
function Charts({ runs, length }) {
  const { times, bins } = useMemo(() => binned(runs, length), [runs, length]);
  if (!runs.length) return html`<${Empty} title=${t("metrics.none")} text=${t("metrics.none.text")} icon="metrics" />`;
  const sum = (/** @type {"done"|"failed"} */ name) => bins.reduce((whole, bin) => whole + bin[name], 0);
  // The failed stand on top of the completed: their bars begin behind those, and end above them.
  const ended = [
    { label: t("state.FAILED"), tone: "bad", bars: true, figure: sum("failed"), values: bins.map((bin) => bin.done + bin.failed) },
    { label: t("state.COMPLETED"), tone: "good", bars: true, figure: sum("done"), values: bins.map((bin) => bin.done) },
  ];
  const spread = (/** @type {"took"|"waited"} */ name) => [
    { label: t("metrics.median"), tone: "active", values: bins.map((bin) => quantile(bin[name], 0.5)) },
    { label: t("metrics.slow"), tone: "warn", values: bins.map((bin) => quantile(bin[name], 0.95)) },
  ];
  return html`<div class="charts">
    <${Card}><${Chart} title=${t("metrics.throughput")} times=${times} series=${ended} /><//>
    <${Card}><${Chart} title=${t("metrics.durations")} times=${times} show=${duration} series=${spread("took")} /><//>
    <${Card}><${Chart} title=${t("metrics.waited")} times=${times} show=${duration} series=${spread("waited")} /><//>
    <${Card}><${Chart} title=${t("metrics.age")} times=${samples.map((one) => one.at)} show=${duration}
      series=${[{ label: t("metrics.age"), tone: "active", values: samples.map((one) => one.age) }]} />
      <p class="hint">${t("metrics.queue.text")}</p><//>
  </div>`;
}
