// The pages of applications: modules that the gateway lists, each of which registers its places and words.
import { effect } from "./view.js";
import { Problem, access, ask } from "./api.js";
import { address } from "./place.js";
import { addRoute } from "./router.js";
import { learn } from "./words.js";
import { entries } from "../screens/shell.js";

/**
 * What an application gets to register its pages with.
 * @typedef {{route: (path: string, view: any) => void, nav: (entry: {path: string, title: string, icon?: string}) => void,
 *   dictionary: (words: {en: Record<string, string>, ja: Record<string, string>}) => void}} Registry
 */

/** Brings the pages of all applications in, once somebody may see them. */
export function joinApplications() {
  let joined = false;
  effect(() => {
    if (joined || access.value !== "open") return;
    void ask("/apps").then(
      (/** @type {Api.Application[]} */ found) => {
        if (joined) return;
        joined = true;
        for (const [place, application] of found.entries()) if (application.module) void join(application, place);
      },
      (error) => {
        if (!(error instanceof Problem)) throw error; // no key yet, or no gateway: there are no pages to add
      },
    );
  });
}

/** @param {Api.Application} application @param {number} place */
async function join(application, place) {
  learn({ en: { [`app.${application.name}`]: application.title.en }, ja: { [`app.${application.name}`]: application.title.ja } });
  try {
    const module = await import(address(String(application.module)).href);
    module.register(registry(application, place));
  } catch (error) {
    console.error(`the pages of ${application.name} cannot be shown`, error);
  }
}

/** Everything of an application lies under its own name. @param {Api.Application} application @param {number} place @returns {Registry} */
function registry({ name }, place) {
  const home = `/apps/${name}`;
  const full = (/** @type {string} */ path) => (path === "/" || path === "" ? home : `${home}${path}`);
  return {
    route: (path, view) => addRoute(full(path), view),
    nav: ({ path, title, icon = "app" }) => {
      const entry = { path: full(path), title: title || `app.${name}`, icon, place };
      const own = entries.value.filter((each) => each.place === undefined); // settings stay last
      const others = entries.value.filter((each) => each.place !== undefined);
      // In the order of the gateway's list, whichever module came first.
      entries.value = [...own.slice(0, -1), ...[...others, entry].sort((one, other) => (one.place ?? 0) - (other.place ?? 0)), own[own.length - 1]];
    },
    dictionary: (words) => learn(words),
  };
}
