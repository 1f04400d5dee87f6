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
        for (const application of found) if (application.module) void join(application);
      },
      (error) => {
        if (!(error instanceof Problem)) throw error; // no key yet, or no gateway: there are no pages to add
      },
    );
  });
}

/** @param {Api.Application} application */
async function join(application) {
  learn({ en: { [`app.${application.name}`]: application.title.en }, ja: { [`app.${application.name}`]: application.title.ja } });
  try {
    const module = await import(address(String(application.module)).href);
    module.register(registry(application));
  } catch (error) {
    console.error(`the pages of ${application.name} cannot be shown`, error);
  }
}

/** Everything of an application lies under its own name. @param {Api.Application} application @returns {Registry} */
function registry({ name }) {
  const home = `/apps/${name}`;
  const full = (/** @type {string} */ path) => (path === "/" || path === "" ? home : `${home}${path}`);
  return {
    route: (path, view) => addRoute(full(path), view),
    nav: ({ path, title, icon = "app" }) => {
      const entry = { path: full(path), title: title || `app.${name}`, icon };
      const last = entries.value.length - 1; // settings stay last
      entries.value = [...entries.value.slice(0, last), entry, entries.value[last]];
    },
    dictionary: (words) => learn(words),
  };
}
