// The dashboard: its routes, the pages of applications, and the first picture.
import { html, render } from "./core/view.js";
import { addRoute } from "./core/router.js";
import { joinApplications } from "./core/applications.js";
import { Shell } from "./screens/shell.js";
import { LettersScreen } from "./screens/letters.js";
import { ModelsScreen } from "./screens/llm.js";
import { MetricsScreen } from "./screens/metrics.js";
import { RunScreen } from "./screens/run.js";
import { RunsScreen } from "./screens/runs.js";
import { SettingsScreen } from "./screens/settings.js";
import { StartScreen } from "./screens/start.js";
import { WheelsScreen } from "./screens/wheels.js";
import { WorkersScreen } from "./screens/workers.js";

addRoute("/runs", RunsScreen);
addRoute("/runs/:run", RunScreen);
addRoute("/runs/:run/:tab", RunScreen);
addRoute("/start", StartScreen);
addRoute("/workers", WorkersScreen);
addRoute("/wheels", WheelsScreen);
addRoute("/letters", LettersScreen);
addRoute("/llm", ModelsScreen);
addRoute("/metrics", MetricsScreen);
addRoute("/settings", SettingsScreen);

const place = document.getElementById("app");
if (place) render(html`<${Shell} />`, place);

// Applications come when they come: what the engine has is there already.
joinApplications();
