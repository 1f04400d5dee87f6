// Start a run that brings its flow as YAML: a new text, or that of another run.
import { html, useState } from "../core/view.js";
import { Problem, ask, onceKey } from "../core/api.js";
import { commands } from "../core/commands.js";
import { go } from "../core/router.js";
import { t } from "../core/words.js";
import { CommandLine } from "../parts/command.js";
import { tell } from "../parts/dialog.js";
import { Icon } from "../parts/icons.js";
import { Card } from "../parts/layout.js";
import { Explained } from "../parts/states.js";

/** How a message names the line that is shown before it. */
const PLACE = /^line \d+(, column \d+)?: /;
const EXAMPLE = `version: 1
flow:
  graph: |
    load >> report
tasks:
  load:   {callable: "mypkg.tasks:load"}
  report: {callable: "mypkg.tasks:report", inputs: {rows: "$node.load.output"}}
`;

/** @param {{name?: string, tag?: string, text?: string}} props */
export function YamlForm({ name: first = "", tag: route = "default", text: given = EXAMPLE }) {
  const [name, setName] = useState(first);
  const [tag, setTag] = useState(route);
  const [text, setText] = useState(given);
  const [once, setOnce] = useState(onceKey);
  const [wrong, setWrong] = useState(/** @type {Problem|null} */ (null));
  const set = (/** @type {(text: string) => void} */ put) => (/** @type {any} */ event) => (put(event.currentTarget.value), setOnce(onceKey()), setWrong(null));
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const form = new FormData();
    form.set("workflow", new File([text], "flow.yaml", { type: "application/yaml" }));
    form.set("flow_name", name.trim() || "workflow");
    form.set("tag", tag.trim() || "default");
    try {
      const run = await ask("/runs/yaml", { method: "POST", body: form, headers: { "Idempotency-Key": once } });
      tell(t("start.done", { n: String(run.number ?? "") }));
      go(`/runs/${run.number ?? run.run_id}/graph`);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      setWrong(error);
    }
  };
  return html`<form class="start" onSubmit=${submit}><${Card} title=${t("yaml.title")}>
    <p class="lead">${t("yaml.text")}</p>
    <div class="fields two">
      <div class="field"><label for="yaml-name">${t("yaml.name")}</label><input id="yaml-name" type="text" autocomplete="off"
        value=${name} onInput=${set(setName)} /></div>
      <div class="field"><label for="yaml-tag">${t("filter.tag")}</label><input id="yaml-tag" type="text" autocomplete="off"
        value=${tag} onInput=${set(setTag)} /></div>
    </div>
    <div class="field"><label for="yaml-text">YAML</label><textarea id="yaml-text" rows="14" spellcheck=${false} value=${text}
      onInput=${set(setText)}></textarea></div>
    ${wrong && html`<${Explained} problem=${wrong} listed=${wrong.fields.length > 0}><ul>
      ${wrong.fields.map((one) => html`<li key=${one.msg}>${one.line ? `${t("yaml.line", { n: one.line })}: ${one.msg.replace(PLACE, "")}` : one.msg}</li>`)}</ul><//>`}
    <${CommandLine} line=${commands.submitYaml(name.trim() || "workflow", tag === "default" ? "" : tag)} />
    <div class="form-foot"><button class="button primary"><${Icon} name="play" />${t("start.submit")}</button></div>
  <//></form>`;
}
