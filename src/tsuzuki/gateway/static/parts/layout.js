// The frame of a page: its title, what one can do there, and its content; tabs and cards.
import { html, useEffect, useRef } from "../core/view.js";
import { link } from "../core/router.js";

/** @param {{title: any, above?: any, actions?: any, children?: any, name?: string}} props `name`: the title of the window where the title is more than text */
export function Page({ title, above, actions, children, name }) {
  useEffect(() => {
    document.title = `${name ?? title} · Tsuzuki`;
  }, [name, title]);
  return html`<div class="page">
    ${above && html`<nav class="crumbs" aria-label=${String(name ?? title)}>${above}</nav>`}
    <header class="page-head"><h1>${title}</h1>${actions && html`<div class="page-actions">${actions}</div>`}</header>
    ${children}
  </div>`;
}

/** @param {{title?: any, actions?: any, children?: any, flush?: boolean}} props `flush`: its content reaches the edge */
export function Card({ title, actions, children, flush = false }) {
  return html`<section class=${`card${flush ? " flush" : ""}`}>
    ${title && html`<header class="card-head"><h2>${title}</h2>${actions}</header>`}
    ${children}
  </section>`;
}

/**
 * Tabs that are places: each has an address.
 * @param {{label: string, tabs: {name: string, title: any, href: string}[], current: string}} props
 */
export function Tabs({ label, tabs, current }) {
  const bar = useRef(/** @type {HTMLElement|null} */ (null));
  useEffect(() => bar.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" }), [current]);
  return html`<nav class="tabs" aria-label=${label} ref=${bar}>
    ${tabs.map((tab) => html`<a key=${tab.name} href=${tab.href} aria-current=${tab.name === current ? "page" : undefined}
      data-tab=${tab.name}>${tab.title}</a>`)}
  </nav>`;
}

/** One name and its value. @param {{name: string, children?: any}} props */
export function Fact({ name, children }) {
  return html`<div class="fact"><dt>${name}</dt><dd>${children}</dd></div>`;
}

/** A link to a run by its id or number. @param {{run: string|number, children?: any}} props */
export function RunLink({ run, children }) {
  return html`<a href=${link(`/runs/${run}`)}>${children ?? `#${run}`}</a>`;
}
