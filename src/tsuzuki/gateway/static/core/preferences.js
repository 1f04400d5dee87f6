// What a person has chosen in this browser: language, theme, how times are shown; and the API key, for this session only.
import { effect, signal } from "./view.js";

/** @param {string} name @param {string[]} allowed @param {string} otherwise */
function kept(name, allowed, otherwise) {
  const found = read(localStorage, name);
  const value = signal(allowed.includes(found) ? found : otherwise);
  effect(() => write(localStorage, name, value.value === otherwise ? "" : value.value));
  // What is chosen in one tab holds in all.
  addEventListener("storage", ({ key, newValue }) => {
    if (key === `tsuzuki.${name}`) value.value = allowed.includes(newValue ?? "") ? String(newValue) : otherwise;
  });
  return value;
}

// A browser may forbid storage altogether: then choices last as long as the page.
/** @param {Storage} storage @param {string} name */
function read(storage, name) {
  try {
    return storage.getItem(`tsuzuki.${name}`) ?? "";
  } catch {
    return "";
  }
}

/** @param {Storage} storage @param {string} name @param {string} value */
function write(storage, name, value) {
  try {
    if (value) storage.setItem(`tsuzuki.${name}`, value);
    else storage.removeItem(`tsuzuki.${name}`);
  } catch {
    // kept in memory alone
  }
}

/** `auto`: as the server says, or the browser. */
export const chosenLanguage = kept("language", ["auto", "ja", "en"], "auto");
/** `auto`: as the system says. */
export const theme = kept("theme", ["auto", "light", "dark"], "auto");
/** How times are shown. */
export const timeStyle = kept("times", ["relative", "local", "utc"], "relative");

/** The API key: in this tab, until it is closed. */
export const apiKey = signal(read(sessionStorage, "key"));
effect(() => write(sessionStorage, "key", apiKey.value));

effect(() => {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const show = () => {
    document.documentElement.dataset.theme = theme.value === "auto" ? (dark.matches ? "dark" : "light") : theme.value;
  };
  show();
  dark.addEventListener("change", show);
  return () => dark.removeEventListener("change", show);
});
