// Where a person is, kept in the hash of the address: it needs nothing of the server, and works behind any prefix.
import { computed, signal } from "./view.js";

/** @typedef {{path: string, query: Record<string, string>}} Place */
/** @typedef {{pattern: string[], view: any, title: string}} Route */

/** One place has one address, with or without a slash at its end. @param {string} path */
const plain = (path) => path.replace(/(.)\/+$/, "$1");

/** @returns {Place} */
function here() {
  const [path, query = ""] = location.hash.replace(/^#/, "").split("?");
  return { path: path === "" || path === "/" ? "/runs" : plain(path), query: Object.fromEntries(new URLSearchParams(query)) };
}

/** Where a person is. */
export const place = signal(here());

// Whoever goes back finds the page where it was left; whoever follows a link begins at the top.
history.scrollRestoration = "manual";
/** @type {Map<string, number>} */
const depths = new Map();
let hash = location.hash;
let followed = false;
addEventListener("click", (event) => {
  if (/** @type {Element} */ (event.target).closest?.("a[href^='#/']")) leave();
}, true);
addEventListener("scroll", () => depths.set(hash, scrollY), { passive: true });
addEventListener("hashchange", arrive);

function arrive() {
  if (location.hash === hash) return; // whoever went there by `go` has arrived
  const before = place.peek();
  const depth = followed ? 0 : depths.get(location.hash) ?? 0;
  const stays = followed && before.path === here().path;
  [hash, followed] = [location.hash, false];
  place.value = here();
  if (!stays) requestAnimationFrame(() => requestAnimationFrame(() => scrollTo(0, depth)));
}

function leave() {
  depths.set(hash, scrollY);
  followed = true;
}

/** Gives the address of a place; what is empty is left out. @param {string} path @param {Record<string, unknown>} [query] */
export function link(path, query = {}) {
  const kept = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const text = new URLSearchParams(kept.map(([name, value]) => [name, String(value)])).toString();
  return `#${plain(path)}${text ? `?${text}` : ""}`;
}

/** Goes to a place. @param {string} path @param {Record<string, unknown>} [query] @param {{replace?: boolean}} [how] */
export function go(path, query = {}, how = {}) {
  const target = link(path, query);
  if (target === location.hash) return;
  if (how.replace) {
    history.replaceState(null, "", target);
    hash = location.hash;
    place.value = here();
  } else {
    leave();
    location.hash = target;
    arrive(); // the browser tells of it later: what is asked for in the same moment goes on from there
  }
}

/** @type {Api.Signal<Route[]>} */
const routes = signal([]);

/** Adds a place: `/runs/:run` gives its view the prop `run`. @param {string} path @param {any} view @param {string} [title] key of words */
export function addRoute(path, view, title = "") {
  routes.value = [...routes.value, { pattern: path.split("/").slice(1), view, title }];
}

/** The view of the place where a person is, with its props; null: there is none. */
export const shown = computed(() => {
  const words = place.value.path.split("/").slice(1);
  for (const route of routes.value) {
    const props = matched(route.pattern, words);
    if (props) return { view: route.view, title: route.title, props };
  }
  return null;
});

/** @param {string[]} pattern @param {string[]} words @returns {Record<string, string>|null} */
function matched(pattern, words) {
  if (pattern.length !== words.length) return null;
  /** @type {Record<string, string>} */
  const props = {};
  for (const [number, part] of pattern.entries()) {
    if (part.startsWith(":")) props[part.slice(1)] = decoded(words[number]);
    else if (part !== words[number]) return null;
  }
  return props;
}

/** @param {string} text */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
