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
  const result = `/runs/${run.run_id}/result`;
  const params = async () => (await ask(`/runs/${run.run_id}`, { query: { include: "params" } })).params;
  const labels = run.tags.filter((tag) => tag !== run.tag);
  return html`<div class="pair">
      ${run.params_truncated ? html`<${Large} label=${t("params.params")} hint=${t("params.large.params")} read=${params} />`
        : html`<${Value} label=${t("params.params")} value=${run.params} />`}
      ${run.result_blob || run.result_truncated ? html`<${Large} label=${t("params.result")} hint=${t("params.large")}
        read=${() => ask(result)} path=${result} file=${`run-${run.number}.json`} />` : run.status === "COMPLETED" ? html`<${Value} label=${t("params.result")}
        value=${run.result} />` : html`<div class="value"><div class="value-head"><span>${t("params.result")}</span></div>
        <p class="hint value-body">${t("params.none")}</p></div>`}
    </div>
    ${!run.params_truncated && html`<h3>${t("params.again")}</h3>
    <${CommandLine} line=${commands.submit({ flow: run.flow_name, params: run.params, tag: run.tag === "default" ? "" : run.tag, tags: labels })} />`}`;
}

/**
 * A value that is too large to come with the run.
 * @param {{label: string, hint: string, read: () => Promise<any>, path?: string, file?: string}} props
 */
function Large({ label, hint, read, path, file }) {
  const [value, setValue] = useState(/** @type {any} */ (undefined));
  const show = async () => {
    try {
      setValue(await read());
    } catch (error) {
      tell(String(/** @type {Error} */ (error).message), "bad");
    }
  };
  if (value !== undefined) return html`<${Value} label=${label}
    value=${typeof value === "string" && value.length > 100_000 ? `${value.slice(0, 100_000)}… (${bytes(value.length)})` : value} />`;
  return html`<div class="value"><div class="value-head"><span>${label}</span></div><div class="value-body">
    <p class="hint">${hint}</p><p><button class="button" onClick=${show}>
    ${t("params.show")}</button> ${path && !apiKey.value && html`<a class="button" href=${address(path).href}
    download=${file}>${t("params.download")}</a>`}</p></div></div>`;
}
