// Steps: every task of a run as a bar on the time of the run; a map has a strip of when its items ended.
import { html, useState } from "../core/view.js";
import { useAsked } from "../core/live.js";
import { link } from "../core/router.js";
import { ACTIVE, WITH_FAILURES, given, stateOf, underWay } from "../core/shapes.js";
import { duration, now, seconds } from "../core/times.js";
import { number, t } from "../core/words.js";
import { commands } from "../core/commands.js";
import { CommandLine } from "../parts/command.js";
import { Icon, Shape } from "../parts/icons.js";
import { Empty, Waiting } from "../parts/states.js";
import { Middle, tone } from "../parts/status.js";

/** @typedef {{from: number, to: number}} Scale */

const CALLS = 200;

/** @param {{run: Api.RunSnapshot}} props */
export function StepsTab({ run }) {
  const names = Object.keys(run.tasks);
  if (!names.length) return html`<${NoSteps} run=${run} />`;
  const records = run.task_records ?? {};
  const scale = scaleOf(run, Object.values(records));
  return html`<div class="waterfall" role="table" aria-label=${t("tab.steps")}>
    <div class="fall-row fall-head" role="row"><span role="columnheader">${t("column.task")}</span><span role="columnheader">
      ${t("column.done")}</span><${Axis} scale=${scale} /></div>
    ${names.map((name) => html`<${Row} key=${name} name=${name} state=${taskState(run, name)} record=${records[name]} scale=${scale} run=${run} />`)}
  </div>
  ${run.task_records_truncated && html`<p class="hint">${t("steps.truncated")}</p>`}
  <${CommandLine} line=${commands.get(run.number)} />`;
}

/** Why there are no steps to show. @param {{run: Api.RunSnapshot}} props */
function NoSteps({ run }) {
  if (run.status === "PENDING") return html`<${Empty} title=${t("steps.waiting")} text=${t("steps.waiting.text")} icon="runs" />`;
  return html`<${Empty} title=${t("steps.none")} text=${t(run.status === "FAILED" || run.status === "CANCELLED" ? "steps.none.early" : "steps.none.text")} icon="runs" />`;
}

/** A map of which an item failed goes on all the same. @param {Api.RunSnapshot} run @param {string} name */
export function taskState(run, name) {
  const record = run.task_records?.[name];
  if (run.tasks[name] === "RUNNING" && !underWay(run)) return run.interrupted ? "INTERRUPTED" : run.worker_lost ? "LOST" : "RUNNING";
  const open = record && (record.total ?? 0) > record.done + record.failed + record.skipped;
  if (run.tasks[name] === "FAILED" && run.status === "COMPLETED" && record && record.done + record.skipped > 0) return WITH_FAILURES;
  if (run.tasks[name] !== "FAILED" || !open) return run.tasks[name];
  return underWay(run) ? "RUNNING" : ACTIVE.has(run.status) ? stateOf(run) : run.status === "CANCELLED" ? "CANCELLED" : "FAILED";
}

/** @param {Api.RunSnapshot} run @param {Api.TaskRecord[]} records @returns {Scale} */
function scaleOf(run, records) {
  const starts = records.map((record) => record.started_at).filter((at) => at !== null);
  const from = Math.min(...starts, run.start_time ?? Infinity, seconds(run.started_at) ?? Infinity);
  const begun = Number.isFinite(from) ? from : run.updated_at;
  const open = underWay(run);
  const ends = records.map((record) => record.ended_at).filter((at) => at !== null);
  const end = open ? Math.max(now.value, run.updated_at) : run.end_time ?? Math.max(...ends, run.updated_at);
  return { from: begun, to: Math.max(end, begun + 0.001) };
}

/** @param {{scale: Scale}} props */
function Axis({ scale }) {
  const length = scale.to - scale.from;
  return html`<span role="columnheader" class="axis" aria-label=${t("column.time")}>
    ${[0, 0.25, 0.5, 0.75].map((part) => html`<i key=${part} style=${{ left: `${part * 100}%` }}>${duration(length * part, length)}</i>`)}
    <i class="axis-end">${duration(length)}</i>
  </span>`;
}

/** @param {{name: string, state: string, record: Api.TaskRecord|undefined, scale: Scale, run: Api.RunSnapshot}} props */
function Row({ name, state, record, scale, run }) {
  const [open, setOpen] = useState(false);
  const calls = record ? record.done + record.failed + record.skipped : 0;
  const mapped = Boolean(record?.strip || record?.total);
  const figure = record?.total ? `${number(calls)} / ${number(record.total)}` : calls > 1 ? `${number(calls)}×` : "";
  return html`<div class="fall-group">
    <div class="fall-row" role="row" data-task=${name}>
      <span role="cell" class="fall-name">
        <button type="button" class="fall-open" aria-expanded=${open} aria-label=${t("steps.open", { task: name })}
          onClick=${() => setOpen(!open)}><${Icon} name=${open ? "down" : "right"} /></button>
        <span class=${`tone-${tone(state)}`} title=${t(`state.${state}`)}><${Shape} state=${state} /><span class="unseen">
          ${t(`state.${state}`)}</span></span>
        <b title=${name}>${name}</b>
      </span>
      <span role="cell" class="fall-count">${figure}${record && record.failed > 0 ? html` <a class="tone-bad"
        href=${link(`/runs/${run.number}/items`, { status: "failed", step: name })}>
        ${t("count.failed", { n: record.failed })}</a>` : ""}</span>
      <span role="cell" class="fall-lane">${record && html`<${Span} record=${record} state=${state} scale=${scale} mapped=${mapped} />`}</span>
    </div>
    ${open && html`<${Calls} name=${name} record=${record} scale=${scale} run=${run} />`}
  </div>`;
}

/** @param {number} at @param {Scale} scale */
const share = (at, scale) => Math.min(Math.max((at - scale.from) / (scale.to - scale.from), 0), 1);

/** @param {{record: Api.TaskRecord, state: string, scale: Scale, mapped: boolean}} props */
function Span({ record, state, scale, mapped }) {
  if (record.started_at === null) return null;
  const left = share(record.started_at, scale);
  const right = share(record.ended_at ?? scale.to, scale);
  const length = (record.ended_at ?? scale.to) - record.started_at;
  const place = { left: `${left * 100}%`, width: `max(${(right - left) * 100}%, 3px)` };
  return html`<span class=${`fall-bar tone-${tone(state)}${mapped ? " mapped" : ""}${record.ended_at === null ? " open" : ""}`}
    style=${place} title=${duration(length)}></span>
    ${record.strip && html`<${Density} strip=${record.strip} scale=${scale} />`}
    <${Took} left=${left} right=${right} text=${duration(length)} />`;
}

/** How long it took: behind its bar, before it where there is no room, or on it. @param {{left: number, right: number, text: string}} props */
function Took({ left, right, text }) {
  if (right <= 0.86) return html`<span class="fall-took" style=${{ left: `${right * 100}%` }}>${text}</span>`;
  if (left >= 0.14) return html`<span class="fall-took" style=${{ right: `${(1 - left) * 100}%` }}>${text}</span>`;
  return html`<span class="fall-took inside" style=${{ right: `${(1 - right) * 100}%` }}>${text}</span>`;
}

/** When the items of a map ended, as columns; the failed stand below, in their own colour and direction. @param {{strip: Api.Strip, scale: Scale}} props */
function Density({ strip, scale }) {
  const most = Math.max(...strip.done.map((done, place) => done + strip.failed[place]), 1);
  const left = share(strip.start, scale) * 100;
  const width = Math.max((share(strip.start + strip.width * strip.done.length, scale) * 100 - left) / strip.done.length, 0.15);
  const done = strip.done.reduce((sum, count) => sum + count, 0), failed = strip.failed.reduce((sum, count) => sum + count, 0);
  return html`<svg class="density" viewBox="0 0 100 24" preserveAspectRatio="none" role="img" aria-label=${t("steps.density", { done, failed })}>
    ${strip.done.map((count, place) => count > 0 && html`<rect key=${`d${place}`} class="good" x=${left + place * width}
      width=${width * 0.9} y=${18 - (16 * count) / most} height=${(16 * count) / most} />`)}
    ${strip.failed.map((count, place) => count > 0 && html`<rect key=${`f${place}`} class="bad" x=${left + place * width}
      width=${width * 0.9} y="19" height=${2 + (3 * count) / most} />`)}
  </svg>`;
}

/** @param {{name: string, record: Api.TaskRecord|undefined, scale: Scale, run: Api.RunSnapshot}} props */
function Calls({ name, record, scale, run }) {
  /** @type {Api.Asked<{items: Api.Item[], next_cursor: string|null}>} */
  const page = useAsked(`/runs/${run.run_id}/items`, { query: { step: name, limit: CALLS }, every: ACTIVE.has(run.status) ? 3 : 0, when: !ACTIVE.has(run.status) && run.position });
  if (!page.value) return html`<${Waiting} ...${page} rows=${2} />`;
  return html`<div class="fall-calls">
    ${record?.error && html`<p class="error-line">${record.error}</p>`}
    ${page.value.items.length === 0 && html`<p class="hint">${t("steps.nocalls")}</p>`}
    ${page.value.items.map((item, place) => {
      const end = item.ended_at ?? seconds(item.at) ?? scale.to;
      const left = share(end - item.took, scale), right = share(end, scale);
      return html`<a key=${item.position} class="fall-row fall-call" href=${link(`/runs/${run.number}/items`, { step: name, item: item.position })}>
        <span class="fall-name"><span class=${`tone-${tone(item.status)}`}><${Shape} state=${item.status} /></span>
          <span title=${item.key || given(item)}>${item.key ? html`<${Middle} text=${item.key} />` : (given(item) ? html`<small class="mono">${given(item)}</small>` : t("steps.call", { n: place + 1 }))}</span></span>
        <span class="fall-count">${duration(item.took)}</span>
        <span class="fall-lane"><span class=${`fall-bar thin tone-${tone(item.status)}`}
          style=${{ left: `${left * 100}%`, width: `max(${(right - left) * 100}%, 3px)` }}></span></span>
      </a>`;
    })}
    ${page.value.next_cursor && html`<p class="hint"><a href=${link(`/runs/${run.number}/items`, { step: name })}>${t("steps.allcalls")}</a></p>`}
  </div>`;
}
