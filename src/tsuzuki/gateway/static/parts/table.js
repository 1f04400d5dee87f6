// Tables: a plain one that becomes cards on a narrow screen, and one that shows a window of a hundred thousand rows.
import { html, useEffect, useState } from "../core/view.js";
import { number, t } from "../core/words.js";
import { useWindow } from "./window.js";

/**
 * @template T
 * @typedef {{name: string, title: any, cell: (row: T) => any, class?: string, width?: string}} Column
 */

/**
 * A table; each cell carries its column's title, for narrow screens.
 * @template T
 * @param {{columns: Column<T>[], rows: T[], rowKey: (row: T) => string|number, label: string, rowClass?: (row: T) => string}} props
 */
export function Table({ columns, rows, rowKey, label, rowClass }) {
  return html`<div class="table-frame" onKeyDown=${walk}><table class="table" aria-label=${label}>
    <thead><tr>${columns.map((column) => html`<th key=${column.name} scope="col" class=${column.class}>${column.title}</th>`)}</tr></thead>
    <tbody>
      ${rows.map((row) => html`<tr key=${rowKey(row)} class=${rowClass?.(row)} data-row=${rowKey(row)}>
        ${columns.map((column) => html`<td key=${column.name} class=${column.class}
          data-title=${typeof column.title === "string" ? column.title : ""}>${column.cell(row)}</td>`)}
      </tr>`)}
    </tbody>
  </table></div>`;
}

/** Arrow keys, Home and End lead from row to row, by the first thing in each that one can use. @param {any} event */
function walk(event) {
  const row = event.target.closest("tbody tr");
  if (!row || !event.target.matches("a, button, input[type=checkbox]")) return;
  const rows = [...row.parentElement.children];
  const place = rows.indexOf(row);
  const target = /** @type {Record<string, number>} */ ({ ArrowDown: place + 1, ArrowUp: place - 1, Home: 0, End: rows.length - 1 })[event.key];
  const link = rows[target]?.querySelector("a, button");
  if (!link) return;
  event.preventDefault();
  link.focus();
}

const ROW = 34;
const BEYOND = 12; // rows above and below what is seen

/**
 * A window on a long list: only the rows that are seen exist. `need` is told how many rows should be there;
 * `narrow` are the columns of a narrow screen, where those that are `wide-only` are left out.
 * @template T
 * @param {{columns: Column<T>[], rows: T[], size: number, total?: number|null, label: string, rowKey: (row: T) => string|number,
 *   narrow?: string, need?: (rows: number) => void, open?: (row: T) => void, selected?: string|number|null}} props
 */
export function LongTable({ columns, rows, size, total, label, rowKey, need, open, selected, narrow }) {
  const shown = useWindow(ROW, BEYOND, 600);
  const { frame, height, first } = shown;
  const [active, setActive] = useState(0);
  const whole = Math.max(total ?? size, size);
  const last = Math.min(shown.last, whole);
  useEffect(() => need?.(shown.end + 200), [shown.end, size]);
  const layout = { gridTemplateColumns: columns.map((column) => column.width ?? "minmax(0, 1fr)").join(" ") };
  const seen = rows.slice(first, Math.min(last, size));
  const missing = Array.from({ length: Math.max(last - Math.max(first, size), 0) }, (_, place) => Math.max(first, size) + place);

  /** @param {KeyboardEvent} event */
  const press = (event) => {
    const page = Math.max(Math.floor(height / ROW) - 1, 1);
    const moves = /** @type {Record<string, number>} */ ({ ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -active, End: whole - 1 - active });
    if (event.key === "Enter" && rows[active]) {
      event.preventDefault(); // the dialog that opens has the focus at once: the same Enter would close it again
      open?.(rows[active]);
    }
    if (!(event.key in moves)) return;
    event.preventDefault();
    const target = Math.min(Math.max(active + moves[event.key], 0), Math.max(whole - 1, 0));
    setActive(target);
    const element = frame.current;
    if (!element) return;
    if (target * ROW < element.scrollTop) element.scrollTop = target * ROW;
    else if ((target + 2) * ROW > element.scrollTop + height) element.scrollTop = (target + 2) * ROW - height;
  };

  return html`<div class="long" role="table" aria-label=${label} aria-rowcount=${whole} aria-colcount=${columns.length}
    style=${narrow ? { "--narrow": narrow } : undefined}>
    <div class="long-head" role="rowgroup"><div role="row" class="long-row" style=${layout}>
      ${columns.map((column) => html`<span key=${column.name} role="columnheader" class=${column.class}>${column.title}</span>`)}
    </div></div>
    <div class="long-frame" ref=${frame} tabindex="0" role="rowgroup" aria-label=${label}
      onScroll=${shown.scrolled} onKeyDown=${press}>
      <div class="long-space" role="presentation" style=${{ height: `${whole * ROW}px` }}>
        ${seen.map((row, place) => html`<div key=${rowKey(row)} role="row" aria-rowindex=${first + place + 1}
          class=${`long-row${open ? " opens" : ""}${first + place === active ? " active" : ""}${selected === rowKey(row) ? " selected" : ""}`}
          style=${{ ...layout, transform: `translateY(${(first + place) * ROW}px)` }} onClick=${() => (setActive(first + place), open?.(row))}>
          ${columns.map((column) => html`<span key=${column.name} role="cell" class=${column.class}>${column.cell(row)}</span>`)}
        </div>`)}
        ${missing.map((place) => html`<div key=${`missing ${place}`} class="long-row missing" aria-hidden="true"
          style=${{ transform: `translateY(${place * ROW}px)` }}><i></i></div>`)}
      </div>
    </div>
    <p class="long-foot">${t("table.shown", { n: size, total: number(whole) })}</p>
  </div>`;
}
