// Graph: the tasks of a YAML flow from left to right, each after those it waits for, in their states.
import { html } from "../core/view.js";
import { useAsked } from "../core/live.js";
import { t } from "../core/words.js";
import { Shape } from "../parts/icons.js";
import { Card } from "../parts/layout.js";
import { Empty, Waiting } from "../parts/states.js";
import { tone } from "../parts/status.js";
import { Copy } from "../parts/command.js";
import { taskState } from "./run-steps.js";

const WIDE = 168, HIGH = 44, GAP_X = 64, GAP_Y = 22, EDGE = 12;

/** @param {{run: Api.RunSnapshot}} props */
export function GraphTab({ run }) {
  /** @type {Api.Asked<{nodes: Api.GraphNode[], workflow: string|null}>} */
  const graph = useAsked(`/runs/${run.run_id}/graph`);
  if (!graph.value) return html`<${Waiting} ...${graph} />`;
  const { nodes, workflow } = graph.value;
  return html`
    ${nodes.length ? html`<${Picture} nodes=${nodes} states=${Object.fromEntries(Object.keys(run.tasks).map((name) => [name, taskState(run, name)]))} />` : html`<${Empty} title=${t("graph.none")}
      text=${t("graph.none.text")} />`}
    ${workflow && html`<${Card} title=${t("graph.text")} actions=${html`<${Copy} text=${workflow} />`} flush><pre class="code"
      tabindex="0">${workflow}</pre><//>`}`;
}

/** @param {Api.GraphNode[]} nodes */
function placed(nodes) {
  const rows = /** @type {Record<number, number>} */ ({});
  /** @type {Map<string, {x: number, y: number, node: Api.GraphNode}>} */
  const places = new Map();
  for (const node of nodes) {
    const row = (rows[node.stage] = (rows[node.stage] ?? -1) + 1);
    places.set(node.name, { x: EDGE + node.stage * (WIDE + GAP_X), y: row, node });
  }
  const most = Math.max(...Object.values(rows)) + 1;
  for (const place of places.values()) {
    const free = most - (rows[place.node.stage] + 1); // stages with fewer tasks stand in the middle
    place.y = EDGE + (place.y + free / 2) * (HIGH + GAP_Y);
  }
  const stages = Math.max(...nodes.map((node) => node.stage)) + 1;
  return { places, width: stages * (WIDE + GAP_X) - GAP_X + 2 * EDGE, height: most * (HIGH + GAP_Y) - GAP_Y + 2 * EDGE };
}

/** @param {{nodes: Api.GraphNode[], states: Record<string, string>}} props */
function Picture({ nodes, states }) {
  const { places, width, height } = placed(nodes);
  const edges = nodes.flatMap((node) => node.needs.map((need) => ({ from: places.get(need), to: places.get(node.name), name: `${need} ${node.name}`, need })));
  const state = (/** @type {string} */ name) => states[name] ?? "PENDING";
  return html`<div class="graph" tabindex="0" role="region" aria-label=${t("tab.graph")}><div class="graph-space"
    style=${{ width: `${width}px`, height: `${height}px` }}>
    <svg width=${width} height=${height} viewBox=${`0 0 ${width} ${height}`} aria-hidden="true">
      ${edges.map(({ from, to, name, need }) => {
        if (!from || !to) return null;
        const x1 = from.x + WIDE, y1 = from.y + HIGH / 2, x2 = to.x, y2 = to.y + HIGH / 2, bend = (x2 - x1) / 2;
        return html`<path key=${name} class=${`edge tone-${tone(state(need))}`}
          d=${`M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`} />`;
      })}
    </svg>
    <ol>${[...places.values()].map(({ x, y, node }) => html`<li key=${node.name} class=${`node tone-${tone(state(node.name))}`}
      data-node=${node.name} data-state=${state(node.name)} title=${node.callable}
      style=${{ left: `${x}px`, top: `${y}px`, width: `${WIDE}px`, height: `${HIGH}px` }}>
      <${Shape} state=${state(node.name)} /><b>${node.name}</b><small>${node.mapped ? t("graph.mapped") : ""}<span class="unseen">
        ${t(`state.${state(node.name)}`)}${node.needs.length ? ` · ${t("graph.after", { names: node.needs.join(", ") })}` : ""}</span></small>
    </li>`)}</ol>
  </div></div>`;
}
