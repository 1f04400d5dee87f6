// The frame around every screen: where one can go, whether the gateway is there, and the key where one is asked for.
import { html, signal, useEffect, useErrorBoundary, useLayoutEffect, useRef } from "../core/view.js";
import { access, reach } from "../core/api.js";
import { glance, useGlances } from "../core/glance.js";
import { chosenLanguage, theme } from "../core/preferences.js";
import { go, place, shown, link } from "../core/router.js";
import { language, number, t } from "../core/words.js";
import { Question } from "../parts/actions.js";
import { Notes } from "../parts/dialog.js";
import { Icon } from "../parts/icons.js";
import { Page } from "../parts/layout.js";
import { Empty, Reach } from "../parts/states.js";
import { KeyForm } from "../parts/keyform.js";

/** @typedef {{path: string, title: string, icon: string, place?: number, figure?: (glance: any) => number}} Entry */

/** @type {Api.Signal<Entry[]>} */
export const entries = signal([
  { path: "/runs", title: "nav.runs", icon: "runs", figure: (glance) => glance.runs.RUNNING + glance.runs.CANCELLING },
  { path: "/workers", title: "nav.workers", icon: "workers", figure: (glance) => glance.workers_alive },
  { path: "/wheels", title: "nav.wheels", icon: "wheels" },
  { path: "/letters", title: "nav.letters", icon: "letters", figure: (glance) => glance.dead_letters },
  { path: "/llm", title: "nav.llm", icon: "terminal" },
  { path: "/metrics", title: "nav.metrics", icon: "metrics" },
  { path: "/settings", title: "nav.settings", icon: "settings" },
]);

export function Shell() {
  useLayoutEffect(() => { // keys count from the first picture on
    /** @param {KeyboardEvent} event */
    const press = (event) => {
      const target = /** @type {HTMLElement} */ (event.target);
      if (event.key !== "/" || event.ctrlKey || event.metaKey || target.closest("input, textarea, select, dialog")) return;
      event.preventDefault();
      const found = () => /** @type {HTMLElement|null} */ (document.querySelector("main [data-search], main input[type=search]"));
      if (!found()) go("/runs"); // where there is nothing to search, runs are
      setTimeout(() => found()?.focus(), found() ? 0 : 150);
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, []);
  return html`
    <a class="skip" href="#main"
      onClick=${(/** @type {Event} */ event) => (event.preventDefault(), document.getElementById("main")?.focus())}>
      ${t("shell.skip")}</a>
    <${Side} />
    <main id="main" tabindex="-1"><${Reach} /><${Screen} /></main>
    <${Question} /><${Notes} />`;
}

function Screen() {
  const [broken, mended] = useErrorBoundary((error) => console.error(error));
  const found = shown.value;
  useEffect(() => {
    if (broken) mended();
  }, [place.value.path]);
  if (access.value !== "open") return html`<${Door} />`;
  if (broken) return html`<${Page} title=${t("problem.title")}><${Empty} title=${t("problem.broken")}
    text=${String(broken?.message ?? broken)} icon="warn"><button class="button" onClick=${mended}>
    ${t("action.again")}</button><//><//>`;
  if (!found) return html`<${Page} title=${t("problem.missing")}><${Empty} title=${t("problem.nowhere")} icon="search">
    <a class="button" href=${link("/runs")}>${t("nav.runs")}</a><//><//>`;
  return html`<${found.view} ...${found.props} />`;
}

/** Asks for a key, where there is none or it is refused. */
function Door() {
  return html`<div class="door"><section class="card">
    <div class="blank-mark"><${Icon} name="key" /></div>
    <h1>${t(access.value === "refused" ? "door.refused" : "door.title")}</h1>
    <p class="hint">${t(access.value === "refused" ? "door.refused.text" : "door.text")}</p>
    <${KeyForm} />
  </section></div>`;
}

function Side() {
  useGlances();
  const here = place.value.path;
  const menu = useRef(/** @type {HTMLElement|null} */ (null));
  useEffect(() => menu.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" }), [here, entries.value]);
  return html`<header class="side">
    <a class="brand" href=${link("/runs")}><span class="brand-mark" aria-hidden="true" lang="ja">続</span><span class="brand-name">Tsuzuki</span></a>
    <nav class="menu" ref=${menu} aria-label=${t("shell.menu")}>
      ${entries.value.map((entry) => {
        const figure = glance.value.value && entry.figure ? entry.figure(glance.value.value) : 0;
        return html`<a key=${entry.path} href=${link(entry.path)}
          aria-current=${here === entry.path || here.startsWith(`${entry.path}/`) || (entry.path === "/runs" && here === "/start") ? "page" : undefined}
          data-nav=${entry.path}>
          <${Icon} name=${entry.icon} /><span>${t(entry.title)}</span>${figure > 0 && html`<b class="menu-figure">
            ${number(figure, { notation: "compact" })}</b>`}
        </a>`;
      })}
    </nav>
    <div class="side-foot">
      <p class=${`pulse pulse-${reach.value}`} data-pulse=${reach.value} title=${t(`pulse.${reach.value}`)}>
        <i aria-hidden="true"></i><span>${t(`pulse.${reach.value}`)}</span></p>
      <div class="switches"><${LanguageSwitch} /><${ThemeSwitch} /></div>
    </div>
  </header>`;
}

function LanguageSwitch() {
  const other = language.value === "ja" ? "en" : "ja";
  return html`<button class="button bare" lang=${other} data-switch="language"
    aria-label=${other === "ja" ? "日本語に切り替える" : "EN: switch to English"} onClick=${() => (chosenLanguage.value = other)}>
    ${other === "ja" ? "日本語" : "EN"}</button>`;
}

function ThemeSwitch() {
  const dark = theme.value === "auto" ? matchMedia("(prefers-color-scheme: dark)").matches : theme.value === "dark";
  return html`<button class="button bare" data-switch="theme" aria-label=${t(dark ? "shell.light" : "shell.dark")}
    title=${t(dark ? "shell.light" : "shell.dark")} onClick=${() => (theme.value = dark ? "light" : "dark")}>
    <${Icon} name=${dark ? "sun" : "moon"} /></button>`;
}
