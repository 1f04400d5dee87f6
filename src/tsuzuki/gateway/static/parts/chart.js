// Charts over time, by uPlot, which is loaded when the first chart is shown.
import { html, useEffect, useRef } from "../core/view.js";
import { language, number, t } from "../core/words.js";
import { theme, timeStyle } from "../core/preferences.js";

/** @typedef {{label: string, tone: "active"|"good"|"bad"|"quiet"|"warn", values: (number|null)[], bars?: boolean, figure?: number}} Series */

const WHOLE = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000]; // what is counted has no halves
const SPANS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 28_800, 43_200, 86_400, 172_800, 604_800, 2_419_200]; // marks that clocks have

/** @param {string} name */
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/**
 * A chart with its figures as a table for those who do not see it.
 * @param {{title: string, times: number[], series: Series[], show?: (value: number, scale?: number) => string, told?: (value: number) => string, whole?: boolean|"seconds"|"time", height?: number}} props times in Unix seconds; `told`: a value in the legend; `whole`: there are no halves, of seconds no tenths of minutes; `time` may be shorter than a second
 */
export function Chart({ title, times, series, show = (value) => number(value), told = show, whole = series.some((one) => one.bars), height = 180 }) {
  const place = useRef(/** @type {HTMLDivElement|null} */ (null));
  const chart = useRef(/** @type {any} */ (null));
  const shape = `${series.map((one) => one.label + one.tone).join()}|${theme.value}|${language.value}|${timeStyle.value}`;
  const content = /** @type {any} */ ([times, ...series.map((one) => one.values)]);
  useEffect(() => {
    let gone = false;
    /** @type {ResizeObserver|undefined} */
    let watch;
    void import("../vendor/uplot.js").then(({ default: Plot }) => {
      const element = place.current;
      if (gone || !element) return;
      chart.current = new Plot(options(Plot, element.clientWidth, height, series, show, whole), content, element);
      watch = new ResizeObserver(() => chart.current.setSize({ width: element.clientWidth, height }));
      watch.observe(element);
    });
    return () => {
      gone = true;
      watch?.disconnect();
      chart.current?.destroy();
      chart.current = null;
    };
  }, [shape]);
  useEffect(() => chart.current?.setData(content), [times, series]);
  const last = series.map((one) => one.figure ?? one.values.findLast((value) => value !== null));
  return html`<figure class="chart">
    <figcaption><b>${title}</b><span class="legend">${series.map((one, number) => html`<span key=${one.label}
      class=${`legend-entry tone-${one.tone}`}><i class=${one.bars ? "block" : `dash${number}`}></i>
      ${one.label}${last[number] !== undefined && last[number] !== null ? html` <em>
      ${told(/** @type {number} */ (last[number]))}</em>` : ""}</span>`)}</span></figcaption>
    <div class="chart-place" ref=${place} role="img" aria-label=${t("chart.label", { title })}></div>
  </figure>`;
}

/** @param {any} Plot @param {number} width @param {number} height @param {Series[]} series @param {(value: number, scale?: number) => string} show @param {boolean|"seconds"|"time"} whole @returns {any} */
function options(Plot, width, height, series, show, whole) {
  const line = colour("--line"), ink = colour("--ink-quiet");
  const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 }, font: "12px system-ui, sans-serif" };
  const zone = timeStyle.value === "utc" ? "UTC" : undefined;
  const format = (/** @type {Intl.DateTimeFormatOptions} */ how) => new Intl.DateTimeFormat(language.value, { ...how, timeZone: zone });
  const clock = /** @type {const} */ ({ hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
  const exact = format({ ...clock, second: "2-digit" }), hour = format(clock), day = format({ month: "numeric", day: "numeric" });
  const dates = (/** @type {any} */ plot, /** @type {number[]} */ marks) => {
    const length = plot.scales.x.max - plot.scales.x.min;
    return marks.map((mark) => (length > 172_800 ? day : length > 600 ? hour : exact).format(mark * 1000));
  };
  return {
    width, height, legend: { show: false }, cursor: { y: false, drag: { x: false, y: false } },
    // A single moment would be drawn years wide.
    scales: { x: { range: reachOf }, y: { range: (/** @type {any} */ _, /** @type {number} */ low, /** @type {number} */ high) => [Math.min(low ?? 0, 0), (high || 1) * 1.1] } },
    axes: [{ ...axis, size: 32, values: dates }, { ...axis, size: roomFor, incrs: whole === "time" ? SPANS : whole === "seconds" ? SPANS.filter((span) => span >= 1) : whole ? WHOLE : undefined, values: (/** @type {any} */ _, /** @type {number[]} */ marks) => marks.map((mark) => show(mark, marks.at(-1))) }],
    series: [{}, ...series.map((one, number) => drawn(Plot, one, number))],
  };
}

/** As much room as its marks need: letters of Japanese are twice as wide. @param {any} _ @param {string[]|null} marks */
const roomFor = (_, marks) => Math.max(64, ...(marks ?? []).map((mark) => 22 + [...mark].reduce((sum, letter) => sum + (letter > "\u2e80" ? 12 : 7), 0)));

/** From the first moment to the last, a minute at least. @param {any} plot */
function reachOf(plot) {
  const times = plot.data[0];
  const last = times[times.length - 1] ?? 0;
  return [Math.min(times[0] ?? 0, last - 60), last];
}

/** @param {any} Plot @param {Series} one @param {number} number */
function drawn(Plot, one, number) {
  const stroke = colour(`--${one.tone}`);
  if (one.bars) return { stroke, fill: stroke, width: 0, paths: Plot.paths.bars({ size: [0.7, 24] }), points: { show: false } };
  return { stroke, width: 2, dash: number ? [6, 4] : undefined, points: { show: true, size: 5, stroke, fill: stroke }, spanGaps: true };
}
