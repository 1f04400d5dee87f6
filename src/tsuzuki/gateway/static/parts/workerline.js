// The command line that starts a worker on the store that this gateway has.
import { html } from "../core/view.js";
import { commands } from "../core/commands.js";
import { useAsked } from "../core/live.js";
import { CommandLine } from "./command.js";

/** @param {{tag?: string, sync?: boolean}} props a tag that it takes; whether it is to sync wheels */
export function WorkerLine({ tag = "default", sync = false }) {
  /** @type {Api.Asked<Api.SettingView[]>} */
  const config = useAsked("/config");
  if (!config.value && !config.problem) return null;
  return html`<${CommandLine} line=${commands.worker(tag, sync, storeWords(config.value ?? []))} />`;
}

/** Names the store, where a worker would not find it by itself. @param {Api.SettingView[]} settings */
function storeWords(settings) {
  const given = (/** @type {string} */ name) => settings.find((one) => one.name === name && one.from !== "default")?.value;
  const backend = given("TSUZUKI_BACKEND") ?? given("TSUZUKI_NATS_URL"), folder = given("TSUZUKI_DATA_DIR");
  return backend ? ["--backend", backend] : folder ? ["--data-dir", folder] : [];
}
