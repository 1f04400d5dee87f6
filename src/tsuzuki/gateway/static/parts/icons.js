// Small pictures, drawn with the colour of the text beside them.
import { html } from "../core/view.js";

/** @type {Record<string, string[]>} paths on a grid of 16 */
const PATHS = {
  runs: ["M2.5 4h11M2.5 8h11M2.5 12h7"],
  workers: ["M3 5.5h10v7H3z", "M6 5.5V3h4v2.5", "M6.5 9h3"],
  wheels: ["M2.5 5.5L8 2.5l5.5 3v5L8 13.5l-5.5-3z", "M2.5 5.5L8 8.5l5.5-3M8 8.5v5"],
  letters: ["M2.5 4h11v8.5h-11z", "M2.5 5l5.5 4 5.5-4"],
  metrics: ["M2.5 13.5h11", "M4.5 11V7.5M8 11V3M11.5 11V6"],
  settings: ["M3 4.5h6M12 4.5h1M3 8h1.5M7.5 8H13M3 11.5h5M11 11.5h2", "M10.5 3v3M6 6.5v3M9.5 10v3"],
  app: ["M3 3h4v4H3zM9 3h4v4H9zM3 9h4v4H3zM9 9h4v4H9z"],
  plus: ["M8 3v10M3 8h10"],
  search: ["M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9z", "M10.5 10.5L14 14"],
  close: ["M4 4l8 8M12 4l-8 8"],
  copy: ["M5.5 5.5V3h7.5v7.5h-2.5", "M3 5.5h7.5V13H3z"],
  done: ["M3.5 8.5l3 3 6-7"],
  play: ["M5 3.5v9l7-4.5z"],
  pause: ["M5.5 3.5v9M10.5 3.5v9"],
  stop: ["M4 4h8v8H4z"],
  again: ["M13 8a5 5 0 1 1-1.5-3.6", "M13 2.5v3h-3"],
  bin: ["M3 4.5h10M6.5 4.5V3h3v1.5M4.5 4.5l.5 8.5h6l.5-8.5"],
  down: ["M4 6l4 4 4-4"],
  right: ["M6 4l4 4-4 4"],
  jump: ["M8 2.5v8M4.5 7L8 10.5 11.5 7M3 13.5h10"],
  eye: ["M1.5 8S4 3.5 8 3.5 14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8z", "M8 9.7a1.7 1.7 0 1 0 0-3.4 1.7 1.7 0 0 0 0 3.4z"],
  hide: ["M1.5 8S4 3.5 8 3.5 14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8z", "M3 13L13 3"],
  terminal: ["M2 3h12v10H2z", "M4.5 6l2 2-2 2M8 10.5h3.5"],
  sun: ["M8 10.7a2.7 2.7 0 1 0 0-5.4 2.7 2.7 0 0 0 0 5.4z", "M8 1.5v1.5M8 13v1.5M1.5 8H3M13 8h1.5M3.4 3.4l1 1M11.6 11.6l1 1M3.4 12.6l1-1M11.6 4.4l1-1"],
  moon: ["M13 9.5A5.5 5.5 0 0 1 6.5 3a5.5 5.5 0 1 0 6.5 6.5z"],
  copies: ["M3 5h8v8H3z", "M5.5 5V3H13v7.5h-2", "M7 7.5v3M5.5 9h3"],
  key: ["M10.5 8.5a3 3 0 1 0-2.6-1.5L3 12v1.5h2V12h1.5v-1.5H8l.4-.6a3 3 0 0 0 2.1-1.4z", "M11 5h.01"],
  warn: ["M8 2.5L14 13H2z", "M8 6.5v3M8 11.3v.1"],
};

/** @param {{name: string, label?: string}} props without a label it is decoration */
export function Icon({ name, label }) {
  return html`<svg class="icon" viewBox="0 0 16 16" role=${label ? "img" : undefined} aria-label=${label} aria-hidden=${label ? undefined : "true"}>
    ${(PATHS[name] ?? []).map((path) => html`<path d=${path} />`)}
  </svg>`;
}

/** Shapes of states: no two that mean different things look alike without colour. @type {Record<string, {fill?: string, line?: string}>} */
const SHAPES = {
  PENDING: { line: "M8 3.2a4.8 4.8 0 1 0 0 9.6 4.8 4.8 0 0 0 0-9.6z" },
  RUNNING: { fill: "M8 2a6 6 0 0 1 0 12V2z", line: "M8 2.7a5.3 5.3 0 1 0 0 10.6A5.3 5.3 0 0 0 8 2.7z" },
  CANCELLING: { line: "M2.9 2.9h10.2v10.2H2.9zM5.8 5.8h4.4v4.4H5.8z" },
  COMPLETED: { fill: "M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13zm3.8 4.6l-4.5 5a.8.8 0 0 1-1.1 0L4.1 9l1.1-1.1 1.5 1.5 4-4.4z" },
  FAILED: { fill: "M5 1.5h6L14.5 5v6L11 14.5H5L1.5 11V5zm.6 3L4.5 5.6 6.9 8l-2.4 2.4 1.1 1.1L8 9.1l2.4 2.4 1.1-1.1L9.1 8l2.4-2.4-1.1-1.1L8 6.9z" },
  CANCELLED: { fill: "M3 1.5h10A1.5 1.5 0 0 1 14.5 3v10a1.5 1.5 0 0 1-1.5 1.5H3A1.5 1.5 0 0 1 1.5 13V3A1.5 1.5 0 0 1 3 1.5zM4.5 7.2v1.6h7V7.2z" },
  COMPLETED_WITH_FAILURES: { fill: "M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13zM7.1 4h1.8v5H7.1zM7.1 10.2h1.8V12H7.1z" },
  SKIPPED: { fill: "M3 3l5 5-5 5zM8 3l5 5-5 5z" },
  IDLE: { line: "M8 3.2a4.8 4.8 0 1 0 0 9.6 4.8 4.8 0 0 0 0-9.6z" },
  INTERRUPTED: { fill: "M4 2.5h2.8v11H4zM9.2 2.5H12v11H9.2z" },
  DISCONNECTED: { fill: "M8 1.8L15 14H1zM7.2 6v4h1.6V6zm0 5v1.6h1.6V11z" },
};
const SAME = { SUCCEEDED: "COMPLETED", done: "COMPLETED", failed: "FAILED", skipped: "SKIPPED", STOPPED_GRACEFUL: "CANCELLED", LOST: "DISCONNECTED" };

/** The shape of a state. @param {{state: string}} props */
export function Shape({ state }) {
  const name = /** @type {Record<string, string>} */ (SAME)[state] ?? state;
  const shape = SHAPES[name] ?? SHAPES.PENDING;
  return html`<svg class=${`shape shape-${name.toLowerCase()}`} viewBox="0 0 16 16" aria-hidden="true">
    ${shape.line && html`<path class="line" d=${shape.line} />`} ${shape.fill && html`<path class="fill" fill-rule="evenodd" d=${shape.fill} />`}
  </svg>`;
}
