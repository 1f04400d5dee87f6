// Settings: language, theme and times of this browser, the key of this session, and what is set on the gateway.
import { html, useState } from "../core/view.js";
import { useAsked } from "../core/live.js";
import { chosenLanguage, theme, timeStyle } from "../core/preferences.js";
import { language, t, word } from "../core/words.js";
import japanese, { values } from "../words/settings-ja.js";
import { CommandLine } from "../parts/command.js";
import { KeyForm } from "../parts/keyform.js";
import { Card, Page } from "../parts/layout.js";
import { Waiting } from "../parts/states.js";
import { Table } from "../parts/table.js";

export function SettingsScreen() {
  return html`<${Page} title=${t("nav.settings")}>
    <div class="pair">
      <${Card} title=${t("settings.look")}>
        <${Choice} name="language" chosen=${chosenLanguage} values=${["auto", "ja", "en"]} />
        <${Choice} name="theme" chosen=${theme} values=${["auto", "light", "dark"]} />
        <${Choice} name="times" chosen=${timeStyle} values=${["relative", "local", "utc"]} />
      <//>
      <${Card} title=${t("settings.key")}><p class="hint">${t("settings.key.text")}</p><${KeyForm} /><//>
    </div>
    <${Effective} />
  <//>`;
}

/** @param {{name: string, chosen: Api.Signal<string>, values: string[]}} props */
function Choice({ name, chosen, values }) {
  return html`<fieldset class="choice"><legend>${t(`settings.${name}`)}</legend>
    ${values.map((value) => html`<label key=${value} class="radio"><input type="radio" name=${name} value=${value}
      checked=${chosen.value === value} onChange=${() => (chosen.value = value)} />${t(`settings.${name}.${value}`)}</label>`)}
  </fieldset>`;
}

function Effective() {
  const [changed, setChanged] = useState(false);
  /** @type {Api.Asked<Api.SettingView[]>} */
  const found = useAsked("/config");
  const health = useAsked("/health");
  const rows = (found.value ?? []).filter((one) => !changed || one.from !== "default" || one.refusal);
  const only = html`<label class="check"><input type="checkbox" checked=${changed} onChange=${() => setChanged(!changed)} />
    ${t("settings.changed")}</label>`;
  return html`<${Card} title=${t("settings.effective")} actions=${only} flush>
    ${!found.value ? html`<${Waiting} ...${found} />` : rows.length ? html`<${Table} label=${t("settings.effective")}
      columns=${columns()} rows=${rows} rowKey=${(/** @type {Api.SettingView} */ row) => row.name} />`
      : html`<p class="hint card-note">${t("settings.unchanged")}</p>`}
  <//>
  <${CommandLine} line="tsuzuki config" />
  <p class="hint">Tsuzuki ${/** @type {any} */ (health.value)?.version ?? ""}</p>`;
}

/** @param {Api.SettingView} row */
const meaning = (row) => (language.value === "ja" && japanese[row.name.replace("TSUZUKI_", "")]) || row.means;

/** A default that is said in words. @param {Api.SettingView} row */
const shown = (row) => (language.value === "ja" && row.from === "default" && values[row.value]) || row.value;

const columns = () => [
  { name: "name", title: t("column.setting"), class: "cell-run", cell: (/** @type {Api.SettingView} */ row) =>
    html`<code class="wordy">${row.name}</code><span class="means">${meaning(row)}</span>${row.refusal &&
    html`<span class="error-line">${row.refusal}</span>`}` },
  { name: "value", title: t("column.value"), cell: (/** @type {Api.SettingView} */ row) => html`<code class="wordy">${shown(row)}</code>` },
  { name: "from", title: t("column.from"), cell: (/** @type {Api.SettingView} */ row) => (row.from === "default"
    ? html`<span class="none">${t("settings.default")}</span>` : html`<span class="label">${word(`settings.from.${row.from}`) ?? row.from}</span>`) },
];
