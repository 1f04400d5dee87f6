// A live log: follows its end, can be paused, searched and copied, and leads to what failed.
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../core/view.js";
import { t } from "../core/words.js";
import { preciseTime } from "../core/times.js";
import { copy } from "./command.js";
import { tell } from "./dialog.js";
import { Icon } from "./icons.js";
import { Empty } from "./states.js";
import { useWindow } from "./window.js";

const LINE = 22;
const BEYOND = 30;
const LEVELS = ["debug", "info", "warning", "error"];
const RANK = /** @type {Record<string, number>} */ ({ debug: 0, info: 1, warning: 2, error: 3, critical: 3 });

/**
 * @param {{lines: Api.LogLine[], size: number, live: boolean, label: string}} props `size` grows with `lines`, which is one array; a line whose time nobody knows has 0 for it
 */
export function LogPanel({ lines, size, live, label }) {
  const [search, setSearch] = useState("");
  const [level, setLevel] = useState(0);
  const [paused, setPaused] = useState(0); // the number of lines when it was paused; 0: it is not
  const [jump, setJump] = useState(-1);
  const watched = useRef(live); // whoever watched a run to its end sees the end, also where that comes with the last lines
  watched.current ||= live;
  const upTo = paused || size;
  const shown = useMemo(() => sought(lines, upTo, search, level), [lines, upTo, search, level]);
  const failed = () => {
    const next = shown.findIndex((line, place) => place > jump && RANK[line.level] >= 3);
    const found = next < 0 ? shown.findIndex((line) => RANK[line.level] >= 3) : next;
    if (found < 0) return tell(t("logs.noFailure"));
    if (live) setPaused(upTo);
    return setJump(found);
  };
  const anyFailed = useMemo(() => lines.some((line) => RANK[line.level] >= 3), [lines, size]);
  const copyAll = async () => {
    if (await copy(shown.map(plain).join("\n"))) tell(t("logs.copied", { n: shown.length }));
  };
  return html`<div class="log">
    <div class="toolbar" role="toolbar" aria-label=${t("logs.tools")}>
      <label class="search"><${Icon} name="search" /><input type="search" placeholder=${t("logs.search")}
        aria-label=${t("logs.search")} value=${search}
        onInput=${(/** @type {any} */ event) => setSearch(event.currentTarget.value)} /></label>
      <select aria-label=${t("logs.level")} value=${String(level)}
        onChange=${(/** @type {any} */ event) => setLevel(Number(event.currentTarget.value))}>
        ${LEVELS.map((name, rank) => html`<option key=${name} value=${String(rank)}>${t(`level.${name}`)}</option>`)}
      </select>
      ${(live || paused > 0) && html`<button class="button" aria-pressed=${paused > 0} onClick=${() => setPaused(paused ? 0 : Math.max(size, 1))}>
        <${Icon} name=${paused ? "play" : "pause"} />${t(paused ? "logs.resume" : "logs.pause")}</button>`}
      ${anyFailed && html`<button class="button" onClick=${failed}><${Icon} name="jump" />${t("logs.failure")}</button>`}
      <button class="button" onClick=${copyAll}><${Icon} name="copy" />${t("action.copy")}</button>
      <span class="toolbar-note" role="status">
        ${paused && size > paused ? t("logs.waiting", { n: size - paused }) : t("logs.count", { n: shown.length })}</span>
    </div>
    ${size === 0 ? html`<${Empty} title=${t(live ? "logs.none.live" : "logs.none")} icon="terminal" />`
      : !shown.length ? html`<${Empty} title=${t("logs.nothing")} icon="search" />`
      : html`<${Lines} lines=${shown} follows=${watched.current && !paused} size=${size} live=${live} jump=${jump} label=${label} pause=${() => setPaused(size)} />`}
  </div>`;
}

/** @param {Api.LogLine[]} lines @param {number} upTo @param {string} search @param {number} level */
function sought(lines, upTo, search, level) {
  const words = search.trim().toLowerCase();
  if (!words && !level) return lines.slice(0, upTo);
  const found = [];
  for (let place = 0; place < Math.min(upTo, lines.length); place += 1) {
    const line = lines[place];
    if ((RANK[line.level] ?? 1) >= level && (!words || plain(line).toLowerCase().includes(words))) found.push(line);
  }
  return found;
}

/** @param {Api.LogLine} line */
const plain = (line) => `${line.at ? `${new Date(line.at * 1000).toISOString()} ` : ""}${line.level.toUpperCase()} ${source(line)}${line.text}`;
/** @param {Api.LogLine} line */
const source = (line) => (line.name ? `${line.name}${line.key ? `[${line.key}]` : ""}: ` : "");

/** @param {{lines: Api.LogLine[], size: number, follows: boolean, live: boolean, jump: number, label: string, pause: () => void}} props */
function Lines({ lines, size, follows, live, jump, label, pause }) {
  const { frame, height, first, last, scrolled } = useWindow(LINE, BEYOND, 480);
  const rows = useMemo(() => lines.flatMap((line) => line.text.split("\n").map((text, part) => ({ line, text, part }))), [lines]);
  useLayoutEffect(() => {
    if (follows && frame.current) frame.current.scrollTop = frame.current.scrollHeight;
  }, [live ? rows : size, follows]);
  useEffect(() => {
    const place = rows.findIndex((row) => row.line === lines[jump]);
    if (place >= 0 && frame.current) frame.current.scrollTop = Math.max(place * LINE - height / 3, 0);
  }, [jump]);
  /** Whoever scrolls up wants to read. @param {WheelEvent} event */
  const wheel = (event) => live && follows && event.deltaY < 0 && pause();
  return html`<div class="log-frame" ref=${frame} tabindex="0" role="log" aria-live="off" aria-label=${label} onScroll=${scrolled} onWheel=${wheel}>
    <div class="log-space" style=${{ height: `${rows.length * LINE}px` }}>
      ${rows.slice(first, last).map(({ line, text, part }, place) => html`<div key=${`${line.number}.${part}`}
        class=${`log-line level-${line.level}${line === lines[jump] ? " found" : ""}`}
        style=${{ transform: `translateY(${(first + place) * LINE}px)` }}>
        ${line.at > 0 && html`<span class="log-time">${part ? "" : preciseTime(line.at)}</span>`}<span class="log-level">
          ${part ? "" : line.level.toUpperCase()}</span><span class="log-source">${part ? "" : source(line)}</span>
          <span class="log-text">${text}</span>
      </div>`)}
    </div>
  </div>`;
}
