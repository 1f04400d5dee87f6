// The dashboard: its routes, the pages of applications, and the first picture.
import { html, render, signal } from "./core/view.js";
import { addRoute } from "./core/router.js";
import { joinApplications } from "./core/applications.js";
import { Shell } from "./screens/shell.js";
import { Loading } from "./parts/states.js";
import { RunsScreen } from "./screens/runs.js";
import { RunScreen } from "./screens/run.js";

/** Screens that are not part of the first picture. @type {(() => Promise<unknown>)[]} */
const later = [];

/** A screen whose module comes when it is wanted, or when nothing else is to be done. @param {() => Promise<Record<string, any>>} bring @param {string} name */
function lazy(bring, name) {
  const view = signal(/** @type {any} */ (null));
  const load = () => bring().then((module) => (view.value = module[name]));
  later.push(load);
  return (/** @type {any} */ props) => {
    if (view.value) return html`<${view.value} ...${props} />`;
    void load().catch(() => setTimeout(load, 2000)); // the gateway may be away
    return html`<div class="page"><${Loading} /></div>`;
  };
}

addRoute("/runs", RunsScreen);
addRoute("/runs/:run", RunScreen);
addRoute("/runs/:run/:tab", RunScreen);
addRoute("/start", lazy(() => import("./screens/start.js"), "StartScreen"));
addRoute("/workers", lazy(() => import("./screens/workers.js"), "WorkersScreen"));
addRoute("/wheels", lazy(() => import("./screens/wheels.js"), "WheelsScreen"));
addRoute("/llm", lazy(() => import("./screens/llm.js"), "ModelsScreen"));
addRoute("/letters", lazy(() => import("./screens/letters.js"), "LettersScreen"));
addRoute("/metrics", lazy(() => import("./screens/metrics.js"), "MetricsScreen"));
addRoute("/settings", lazy(() => import("./screens/settings.js"), "SettingsScreen"));

const place = document.getElementById("app");
if (place) render(html`<${Shell} />`, place);

// Applications come when they come: what the engine has is there already.
joinApplications();
// Whoever loses the gateway can go on looking at what is there.
setTimeout(() => later.forEach((load) => void load().catch(() => {})), 1500);
