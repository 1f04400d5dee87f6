// Params and result: what went in and what came out.
import { html, useState } from "../core/view.js";
import { ask } from "../core/api.js";
import { address } from "../core/place.js";
import { apiKey } from "../core/preferences.js";
import { commands } from "../core/commands.js";
import { bytes, t } from "../core/words.js";
import { CommandLine } from "../parts/command.js";
import { tell } from "../parts/dialog.js";
import { Value } from "../parts/value.js";

/** @param {{run: Api.RunSnapshot}} props */
export function ParamsTab({ run }) {
  const labels = run.tags.filter((tag) => tag !== run.tag);
  return html`<div class="pair">
      <${Value} label=${t("params.params")} value=${run.params} />
      ${run.result_blob ? html`<${Large} run=${run} />` : run.status === "COMPLETED" ? html`<${Value} label=${t("params.result")}
        value=${run.result} />` : html`<div class="value"><div class="value-head"><span>${t("params.result")}</span></div>
        <p class="hint value-body">${t("params.none")}</p></div>`}
    </div>
    <h3>${t("params.again")}</h3>
    <${CommandLine} line=${commands.submit({ flow: run.flow_name, params: run.params, tag: run.tag === "default" ? "" : run.tag, tags: labels })} />`;
}

/** A result that is too large to come with the run. @param {{run: Api.RunSnapshot}} props */
function Large({ run }) {
  const [value, setValue] = useState(/** @type {any} */ (undefined));
  const path = `/runs/${run.run_id}/result`;
  const show = async () => {
    try {
      setValue(await ask(path));
    } catch (error) {
      tell(String(/** @type {Error} */ (error).message), "bad");
    }
  };
  if (value !== undefined) return html`<${Value} label=${t("params.result")}
    value=${typeof value === "string" && value.length > 100_000 ? `${value.slice(0, 100_000)}… (${bytes(value.length)})` : value} />`;
  return html`<div class="value"><div class="value-head"><span>${t("params.result")}</span></div><div class="value-body">
    <p class="hint">${t("params.large")}</p><p><button class="button" onClick=${show}>
    ${t("params.show")}</button> ${!apiKey.value && html`<a class="button" href=${address(path).href}
    download=${`run-${run.number}.json`}>${t("params.download")}</a>`}</p></div></div>`;
}
