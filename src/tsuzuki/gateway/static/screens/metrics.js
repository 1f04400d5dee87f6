// Metrics: how much is done, how long it takes, how long it waits, as the gateway counts it.
import { html, useMemo } from "../core/view.js";
import { commands } from "../core/commands.js";
import { glance } from "../core/glance.js";
import { useAsked } from "../core/live.js";
import { go, place } from "../core/router.js";
import { duration } from "../core/times.js";
import { number, t } from "../core/words.js";
import { CommandLine } from "../parts/command.js";
import { Chart } from "../parts/chart.js";
import { Card, Page } from "../parts/layout.js";
import { Empty, Stale, Waiting } from "../parts/states.js";


const SPANS = /** @type {Record<string, number>} */ ({ "1h": 3600, "24h": 86_400, "7d": 604_800 });

export function MetricsScreen() {
  const span = SPANS[place.value.query.span ?? ""] ? place.value.query.span : "24h";
  const { value: seen, problem } = glance.value;
  /** @type {Api.Asked<Api.History>} */
  const past = useAsked("/overview/history", { every: 15, query: { seconds: SPANS[span] } });
  const choose = html`<div class="segments" role="group" aria-label=${t("metrics.span")}>${Object.keys(SPANS).map((one) =>
    html`<button key=${one} class="segment" aria-pressed=${span === one}
    onClick=${() => go("/metrics", { span: one }, { replace: true })}>${t(`metrics.span.${one}`)}</button>`)}</div>`;
  return html`<${Page} title=${t("nav.metrics")} actions=${choose}>
    <${Stale} problem=${seen ? problem : null} />
    ${seen ? html`<${Figures} seen=${seen} past=${past.value} span=${span} />` : html`<${Waiting} problem=${problem} rows=${2} />`}
    ${past.value ? html`<${Charts} past=${past.value} />` : html`<${Waiting} problem=${past.problem} again=${past.again} rows=${4} />`}
    <${CommandLine} line=${commands.metrics()} />
  <//>`;
}

/** @param {Api.History|null} past @param {string} status */
const ended = (past, status) => (past ? number(past.bars.reduce((sum, bar) => sum + bar.ended[status], 0)) : "·");

/** What there is now, and what ended in the time that is looked at. @param {{seen: Api.Glance, past: Api.History|null, span: string}} props */
function Figures({ seen, past, span }) {
  const { runs } = seen;
  const entries = [
    ["state.RUNNING", number(runs.RUNNING + runs.CANCELLING)], ["state.PENDING", number(runs.PENDING)], ["metrics.age", duration(seen.queue_age)],
    ["nav.workers", number(seen.workers_alive)], ["nav.letters", number(seen.dead_letters)], ["state.COMPLETED", ended(past, "COMPLETED"), span], ["state.FAILED", ended(past, "FAILED"), span],
  ];
  return html`<dl class="figures">${entries.map(([name, value, time]) => html`<div key=${name} class="figure-card"><dt>${t(name)}</dt>
    <dd><span data-figure=${name}>${value}</span>${time && html` <small>${t(`metrics.span.${time}`)}</small>`}</dd></div>`)}</dl>`;
}

/** @param {{past: Api.History}} props */
function Charts({ past }) {
  const { bars, width } = past;
  const times = useMemo(() => bars.map((bar) => bar.start + width / 2), [past]);
  const sum = (/** @type {string} */ name) => bars.reduce((whole, bar) => whole + bar.ended[name], 0);
  if (!bars.some((bar) => bar.queue_age > 0 || Object.values(bar.ended).some(Boolean))) return html`<${Empty} title=${t("metrics.none")} text=${t("metrics.none.text")} icon="metrics" />`;
  // Each stands on top of the next: their bars begin behind those, and end above them.
  const columns = [
    { label: t("state.CANCELLED"), tone: "quiet", bars: true, figure: sum("CANCELLED"), values: bars.map((bar) => bar.ended.COMPLETED + bar.ended.FAILED + bar.ended.CANCELLED) },
    { label: t("state.FAILED"), tone: "bad", bars: true, figure: sum("FAILED"), values: bars.map((bar) => bar.ended.COMPLETED + bar.ended.FAILED) },
    { label: t("state.COMPLETED"), tone: "good", bars: true, figure: sum("COMPLETED"), values: bars.map((bar) => bar.ended.COMPLETED) },
  ];
  const spread = (/** @type {"took"|"waited"} */ name) => [
    { label: t("metrics.median"), tone: "active", values: bars.map((bar) => bar[name]?.[0] ?? null) },
    { label: t("metrics.slow"), tone: "warn", values: bars.map((bar) => bar[name]?.[1] ?? null) },
  ];
  return html`<div class="charts">
    <${Card}><${Chart} title=${t("metrics.throughput")} times=${times} series=${columns} /><//>
    <${Card}><${Chart} title=${t("metrics.durations")} times=${times} show=${duration} whole="time" series=${spread("took")} /><//>
    <${Card}><${Chart} title=${t("metrics.waited")} times=${times} show=${roundly} told=${roughly} whole="seconds" series=${spread("waited")} /><//>
    <${Card}><${Chart} title=${t("metrics.age")} times=${times} show=${duration} whole="time"
      series=${[{ label: t("metrics.age"), tone: "active", values: bars.map((bar) => bar.queue_age) }]} /><//>
  </div>
  <p class="hint">${t(past.at_least ? "metrics.most" : "metrics.sample")}</p>`;
}

/** How long runs waited is known in whole seconds. @param {number} value */
const roundly = (value) => duration(Math.round(value));
/** @param {number} value */
const roughly = (value) => (value < 1 ? t("time.moment") : roundly(value));
