// The name of a project and the language model that its next run asks.
import { Card, ask, html, t, useState } from "../../static/parts.js";
import { act, typed } from "./frame.js";

const FIELDS = ["name", "llm_provider", "llm_model", "llm_base_url"];
const PROVIDERS = ["offline", "openai", "anthropic", "gemini", "ollama", "lmstudio", "llama.cpp", "vllm", "local"];

/** @param {{at: string, project: any, changed: () => void}} props */
export function Settings({ at, project, changed }) {
  const [draft, setDraft] = useState(/** @type {Record<string, string>} */ (Object.fromEntries(FIELDS.map((name) => [name, project[name]]))));
  const [models, setModels] = useState(/** @type {string[]} */ ([]));
  const save = (/** @type {Event} */ event) => {
    event.preventDefault();
    void act(() => ask(at, { method: "PATCH", body: draft }), t("glossary.saved")).then(changed);
  };
  const look = async () => setModels((await act(() => ask("/api/ollama/models", { query: { base_url: draft.llm_base_url } })))?.models ?? []);
  const field = (/** @type {string} */ name, /** @type {any} */ more = {}) => html`<div class="field" key=${name}><label for=${`glossary-${name}`}>${t(`glossary.setting.${name}`)}</label>
    <input id=${`glossary-${name}`} type="text" autocomplete="off" value=${draft[name]} placeholder=${name === "name" ? "" : t("glossary.asSet")} ...${more} onInput=${typed((text) => setDraft({ ...draft, [name]: text }))} /></div>`;
  return html`<${Card} title=${t("glossary.tab.settings")}><form class="fields" onSubmit=${save}>
    <p class="hint">${t("glossary.nextRun")}</p>
    ${field("name", { required: true, maxlength: 200 })}
    <div class="field"><label for="glossary-llm_provider">${t("glossary.setting.llm_provider")}</label>
      <select id="glossary-llm_provider" value=${draft.llm_provider} onChange=${typed((name) => setDraft({ ...draft, llm_provider: name }))}>
        <option value="">${t("glossary.asSet")}</option>
        ${[...new Set([...PROVIDERS, draft.llm_provider])].filter(Boolean).map((name) => html`<option key=${name} value=${name}>${name}</option>`)}
      </select></div>
    ${field("llm_model", { list: "glossary-models", maxlength: 200 })}
    ${field("llm_base_url", { maxlength: 1000 })}
    <datalist id="glossary-models">${models.map((name) => html`<option key=${name} value=${name}></option>`)}</datalist>
    ${models.length > 0 && html`<p class="labels">${models.map((name) => html`<button key=${name} type="button" class="button small" onClick=${() => setDraft({ ...draft, llm_model: name })}>${name}</button>`)}</p>`}
    <div class="form-foot"><button class="button primary">${t("glossary.save")}</button>
      ${draft.llm_provider === "ollama" && html`<button type="button" class="button" onClick=${look}>${t("glossary.models")}</button>`}</div>
  </form><//>`;
}
