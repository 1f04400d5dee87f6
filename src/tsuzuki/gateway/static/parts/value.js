// A JSON value to look into: folded where it is long, copied whole.
import { html, useState } from "../core/view.js";
import { number, t } from "../core/words.js";
import { stringify } from "../core/exact.js";
import { Copy } from "./command.js";
import { Icon } from "./icons.js";

const MOST = 200; // entries that are shown before one asks for more

/** @param {{value: any, label?: string}} props */
export function Value({ value, label }) {
  const text = stringify(value, 2) ?? "null";
  return html`<div class="value">
    <div class="value-head"><span>${label}</span><${Copy} text=${text} /></div>
    <div class="value-body" tabindex="0" role="region" aria-label=${label}><${Branch} value=${value} depth=${0} /></div>
  </div>`;
}

/** @param {{value: any, depth: number, name?: string}} props */
function Branch({ value, depth, name }) {
  const [open, setOpen] = useState(depth < 2);
  const [most, setMost] = useState(MOST);
  const label = name === undefined ? null : html`<span class="value-name">${name}</span>`;
  if (value === null || typeof value !== "object") return html`<div class="value-line">${label}<${Leaf} value=${value} /></div>`;
  const list = Array.isArray(value);
  const entries = Object.entries(value);
  if (!entries.length) return html`<div class="value-line">${label}<span class="value-quiet">${list ? "[]" : "{}"}</span></div>`;
  return html`<div>
    <button type="button" class="value-line value-fold" aria-expanded=${open} onClick=${() => setOpen(!open)}>
      <${Icon} name=${open ? "down" : "right"} />${label}<span class="value-quiet">
        ${list ? t("value.list", { n: entries.length }) : t("value.object", { n: entries.length })}</span>
    </button>
    ${open && html`<div class="value-inner">
      ${entries.slice(0, most).map(([key, one]) => html`<${Branch} key=${key} value=${one} depth=${depth + 1}
        name=${list ? number(Number(key)) : key} />`)}
      ${entries.length > most && html`<button type="button" class="button small" onClick=${() => setMost(most + 1000)}>
        ${t("value.more", { n: entries.length - most })}</button>`}
    </div>`}
  </div>`;
}

/** @param {{value: any}} props */
function Leaf({ value }) {
  if (typeof value === "string") return html`<span class="value-text">${value === "" ? '""' : value}</span>`;
  return html`<span class=${value === null ? "value-quiet" : "value-number"}>${String(value)}</span>`;
}
