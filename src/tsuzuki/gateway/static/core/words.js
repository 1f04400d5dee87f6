// Words in the language of who reads: dictionaries with equal keys, and `t`, which looks them up.
import { computed, effect, signal } from "./view.js";
import { chosenLanguage } from "./preferences.js";
import en from "../words/en.js";
import ja from "../words/ja.js";

/** @type {Record<string, Record<string, string>>} */
const dictionaries = { en: { ...en }, ja: { ...ja } };

/** How often words were added: who shows a word looks again. */
const learned = signal(0);

const said = document.documentElement.dataset.language ?? "";
const browser = navigator.languages.map((tag) => tag.slice(0, 2)).find((tag) => tag in dictionaries);

/** The language now: what a person chose, else what the server says, else the browser's. */
export const language = computed(() => (chosenLanguage.value === "auto" ? said || browser || "en" : chosenLanguage.value));
effect(() => {
  document.documentElement.lang = language.value;
});

/**
 * Gives the words of a key; `{name}` is filled in, `{n|one|many}` chooses by a number.
 * @param {string} key
 * @param {Record<string, unknown>} [values]
 */
export function t(key, values = {}) {
  const text = dictionaries[language.value]?.[key] ?? dictionaries.en[key] ?? key;
  return text.replace(/\{(\w+)(?:\|([^|}]*)\|([^}]*))?\}/g, (_, name, one, many) => {
    if (one !== undefined) return Number(values[name]) === 1 ? one : many;
    const value = values[name];
    return typeof value === "number" ? number(value) : String(value ?? "");
  });
}

/** Gives the words of a key where there are any. @param {string} key @returns {string|undefined} */
export const word = (key) => (learned.value, dictionaries[language.value]?.[key] ?? dictionaries.en[key]);

/** Of a text in both languages, Japanese first, that of who reads; any other as it is. @param {string} text */
export function half(text) {
  const at = text.indexOf(" / ");
  return at < 0 ? text : language.value === "ja" ? text.slice(0, at) : text.slice(at + 3);
}

/** Adds the words of an application. @param {Record<string, Record<string, string>>} words by language */
export function learn(words) {
  for (const [tongue, added] of Object.entries(words)) Object.assign((dictionaries[tongue] ??= {}), added);
  learned.value += 1;
}

/** @type {Map<string, Intl.NumberFormat>} */
const formats = new Map();

/** Gives a number as people write it. @param {number} value @param {Intl.NumberFormatOptions} [options] */
export function number(value, options = {}) {
  const name = language.value + JSON.stringify(options);
  let format = formats.get(name);
  if (!format) formats.set(name, (format = new Intl.NumberFormat(language.value, options)));
  return format.format(value);
}

/** Gives a number of bytes. @param {number} value */
export function bytes(value) {
  const power = Math.min(Math.floor(Math.log(Math.max(value, 1)) / Math.log(1000)), 4);
  const unit = ["byte", "kilobyte", "megabyte", "gigabyte", "terabyte"][power];
  return number(value / 1000 ** power, { style: "unit", unit, unitDisplay: "short", maximumFractionDigits: power ? 1 : 0 });
}
