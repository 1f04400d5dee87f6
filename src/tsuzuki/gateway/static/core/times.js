// Times and durations, as people read them: relative, local or UTC, by Intl.
import { html, signal } from "./view.js";
import { timeStyle } from "./preferences.js";
import { language, number, t } from "./words.js";

/** The time now (Unix seconds), anew every second while the page is seen. */
export const now = signal(Date.now() / 1000);
setInterval(() => {
  if (!document.hidden) now.value = Date.now() / 1000;
}, 1000);
document.addEventListener("visibilitychange", () => (now.value = Date.now() / 1000));

/** Reads a time as the API writes it. @param {string|number|null|undefined} at @returns {number|null} */
export function seconds(at) {
  if (at === null || at === undefined || at === "") return null;
  const value = typeof at === "number" ? at : Date.parse(at) / 1000;
  return Number.isFinite(value) ? value : null;
}

/** @param {number} at @param {string} style */
export function clockTime(at, style) {
  const utc = style === "utc";
  const parts = /** @type {const} */ ({ dateStyle: "medium", timeStyle: "medium" });
  const text = new Intl.DateTimeFormat(language.value, { ...parts, timeZone: utc ? "UTC" : undefined }).format(at * 1000);
  return utc ? `${text} UTC` : text;
}

/** @param {number} at */
function relative(at) {
  const ago = now.value - at;
  if (Math.abs(ago) < 2) return t("time.now");
  /** @type {[Intl.RelativeTimeFormatUnit, number][]} */
  const units = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];
  const [unit, length] = units.find(([, size]) => Math.abs(ago) >= size) ?? units[3];
  return new Intl.RelativeTimeFormat(language.value, { numeric: "always", style: "short" }).format(-Math.round(ago / length), unit);
}

/** A moment in time; the other ways to write it are its tooltip. @param {{at: string|number|null|undefined}} props */
export function Time({ at }) {
  const value = seconds(at);
  if (value === null) return html`<span class="none">–</span>`;
  const shown = timeStyle.value === "relative" ? relative(value) : clockTime(value, timeStyle.value);
  const title = `${clockTime(value, "local")}\n${clockTime(value, "utc")}`;
  return html`<time datetime=${new Date(value * 1000).toISOString()} title=${title}>${shown}</time>`;
}

/** Gives the time of day to the millisecond, for lists of many moments. @param {number} at */
export function preciseTime(at) {
  const time = new Date(at * 1000);
  if (timeStyle.value === "utc") return time.toISOString().slice(11, 23);
  const pad = (/** @type {number} */ value, width = 2) => String(value).padStart(width, "0");
  return `${pad(time.getHours())}:${pad(time.getMinutes())}:${pad(time.getSeconds())}.${pad(time.getMilliseconds(), 3)}`;
}

/** @param {number} value @param {string} unit @param {number} [digits] */
const unit = (value, unit, digits = 0) =>
  number(value, { style: "unit", unit, unitDisplay: language.value === "ja" ? "short" : "narrow", maximumFractionDigits: digits, minimumFractionDigits: 0 });

/** Return a duration in its two largest units. @param {number|null|undefined} value seconds @param {number|null} [scale] the longest on the same axis: below a minute all have one unit */
export function duration(value, scale = value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const length = Math.max(value, 0), most = Math.max(scale ?? 0, length);
  if (length === 0) return unit(0, most > 0 && most < 1 ? "millisecond" : "second");
  if (length < 1 && most >= 1) return unit(length, "second", 2);
  if (length < 1) return unit(length * 1000, "millisecond", length < 0.01 ? 1 : 0);
  if (length < 60) return unit(length, "second", length < 10 ? 1 : 0);
  const whole = Math.round(length);
  if (whole < 3600) return `${unit(Math.floor(whole / 60), "minute")} ${unit(whole % 60, "second")}`;
  if (whole < 86400) return `${unit(Math.floor(whole / 3600), "hour")} ${unit(Math.floor((whole % 3600) / 60), "minute")}`;
  return `${unit(Math.floor(whole / 86400), "day")} ${unit(Math.floor((whole % 86400) / 3600), "hour")}`;
}

/** How long something has taken; it goes on while there is no end. @param {{from: string|number|null, to?: string|number|null}} props */
export function Elapsed({ from, to = null }) {
  const start = seconds(from);
  if (start === null) return html`<span class="none">–</span>`;
  const length = (seconds(to) ?? Math.max(now.value, start)) - start;
  // Times of runs are whole seconds: below one, nobody knows more.
  return html`<span>${typeof from === "string" && length < 1 ? t("time.moment") : duration(length)}</span>`;
}
