// Start a run: choose a flow, fill in the form that its parameters make, or begin with those of another run.
import { html, useMemo, useState } from "../core/view.js";
import { Problem, ask, onceKey } from "../core/api.js";
import { commands } from "../core/commands.js";
import { useAsked } from "../core/live.js";
import { go, link, place } from "../core/router.js";
import { t, word } from "../core/words.js";
import { CommandLine } from "../parts/command.js";
import { tell } from "../parts/dialog.js";
import { FormState, SchemaFields, wrongText } from "../parts/form.js";
import { Icon } from "../parts/icons.js";
import { Card, Page } from "../parts/layout.js";
import { Empty, Explained, Failure, Loading, Waiting } from "../parts/states.js";
import { WorkerLine } from "../parts/workerline.js";
import { YamlForm } from "./start-yaml.js";


/** The fields beside the params. */
const ROUTING = ["tag", "tags", "key", "priority"];

export function StartScreen() {
  const { flow = "", like = "", yaml = "" } = place.value.query;
  /** @type {Api.Asked<Api.FlowView[]>} */
  const flows = useAsked("/flows", { every: 10 });
  /** @type {Api.Asked<Api.RunSnapshot>} */
  const model = useAsked(like ? `/runs/${encodeURIComponent(like)}` : null, { query: { include: "params" } });
  const above = html`<a href=${link("/runs")}>${t("nav.runs")}</a>`;
  const brought = html`<a class="button" href=${link("/start", { yaml: 1 })}><${Icon} name="plus" />${t("yaml.open")}</a>`;
  const title = like ? t("start.like", { n: String(model.value?.number ?? like) }) : t("start.open");
  const waiting = (flows.loading && !flows.value) || (like && model.loading);
  const problem = flows.value ? model.problem : flows.problem;
  let content;
  if (problem) content = html`<${Failure} problem=${problem} again=${flows.again} />`;
  else if (waiting || !flows.value) content = html`<${Loading} />`;
  else if (yaml) content = html`<${YamlForm} />`;
  else if (model.value?.workflow_yaml_sha256) content = html`<${YamlLike} model=${model.value} />`;
  else content = html`<${Chosen} flows=${flows.value} name=${flow || model.value?.flow_name || ""} model=${model.value} />`;
  return html`<${Page} title=${title} above=${above} actions=${!like && !flow && !yaml && brought}>${content}<//>`;
}

/** A run that brought its flow begins with that text. @param {{model: Api.RunSnapshot}} props */
function YamlLike({ model }) {
  const graph = useAsked(`/runs/${model.run_id}/graph`);
  if (!graph.value) return html`<${Waiting} ...${graph} />`;
  return html`<${YamlForm} name=${model.flow_name} tag=${model.tag} text=${/** @type {any} */ (graph.value).workflow} />`;
}

/** @param {{flows: Api.FlowView[], name: string, model: Api.RunSnapshot|null}} props */
function Chosen({ flows, name, model }) {
  const found = flows.find((flow) => flow.name === name);
  if (!flows.length && !model) return html`<${NoFlows} />`;
  if (!name) return html`<${FlowList} flows=${flows} />`;
  const unknown = { name, doc: "", params: paramsSchema(model), tag: model?.tag ?? "default", tags: [], workers: [] };
  return html`<${StartForm} key=${`${name}|${model?.run_id}|${Boolean(found)}`} flow=${found ?? unknown} model=${model?.flow_name === name ? model : null} />`;
}

/** The tag of a flow's runs: its own, else one that its workers serve. @param {Api.FlowView} flow */
const tagOf = (flow) => (flow.tag !== "default" || flow.tags.includes("default") ? flow.tag : flow.tags[0] ?? "default");

/** Warn that no worker with the tag of a run would take it. @param {{flow: Api.FlowView, tag: string}} props */
function Unserved({ flow, tag }) {
  /** @type {Api.Asked<Api.Worker[]>} */
  const workers = useAsked("/workers", { every: 5, query: { include_hidden: "true" } });
  if (flow.tags.includes(tag) || !workers.value) return null;
  const served = workers.value.some((worker) => worker.tags.includes(tag));
  const text = served ? "start.unknown.served" : flow.workers.length ? "start.unserved" : "start.unknown";
  return html`<section class="notice tone-warn" role="status" data-unserved><${Icon} name="warn" /><div><p>
    ${t(text, { flow: flow.name, tag })}</p>${!served && html`<${WorkerLine} tag=${tag} />`}</div></section>`;
}

/** The tag of a flow's runs, and a warning where no worker serves it. @param {{flow: Api.FlowView}} props */
function FlowTag({ flow }) {
  const tag = tagOf(flow);
  return html`<span class="flow-tag"><span class="label tag" title=${t("filter.tag")}>${tag}</span>
    ${!flow.tags.includes(tag) && html`<span class="flow-warn"><${Icon} name="warn" />${t("start.noworker", { tag })}</span>`}</span>`;
}

/** The fields of a flow that nobody has published: those of the run that is its model. @param {Api.RunSnapshot|null} model */
function paramsSchema(model) {
  if (!model) return { type: "object", additionalProperties: {} };
  const types = /** @type {Record<string, string>} */ ({ string: "string", boolean: "boolean", number: "number", bigint: "integer" });
  const entries = Object.entries(model.params).map(([name, value]) => [name, types[typeof value] ? { type: types[typeof value] } : {}]);
  return { type: "object", properties: Object.fromEntries(entries), required: entries.map(([name]) => name) };
}

function NoFlows() {
  return html`<${Empty} title=${t("start.none")} text=${t("start.none.text")} icon="workers">
    <${WorkerLine} /><//>`;
}

/** What a flow does: in the words of its application, else in its own. @param {Api.FlowView} flow */
const docOf = (flow) => word(`flow.${flow.name}`) ?? flow.doc;

/** @param {{flows: Api.FlowView[]}} props */
function FlowList({ flows }) {
  const [text, setText] = useState("");
  const found = flows.filter((flow) => `${flow.name} ${docOf(flow)}`.toLowerCase().includes(text.toLowerCase()));
  return html`
    ${flows.length > 6 && html`<div class="toolbar"><label class="search"><${Icon} name="search" /><input type="search"
      aria-label=${t("start.search")} placeholder=${t("start.search")} value=${text}
      onInput=${(/** @type {any} */ event) => setText(event.currentTarget.value)} /></label></div>`}
    <ul class="flows">
      ${found.map((flow) => html`<li key=${flow.name}><a class="flow" href=${link("/start", { flow: flow.name })}>
        <b>${flow.name}</b><span>${docOf(flow) || t("start.nodoc")}</span><small>
          ${t("start.workers", { n: flow.workers.length })} <${FlowTag} flow=${flow} /></small>
      </a></li>`)}
    </ul>`;
}

/** @param {{flow: Api.FlowView, model: Api.RunSnapshot|null}} props */
function StartForm({ flow, model }) {
  const form = useMemo(() => new FormState(flow.params, model?.params), []);
  const [more, setMore] = useState({
    tag: model ? model.tag : tagOf(flow) === "default" ? "" : tagOf(flow),
    tags: (model?.tags ?? []).filter((tag) => tag !== model?.tag).join(", "),
    key: "",
    priority: model?.priority ? String(model.priority) : "",
    continues: false,
  });
  const changes = form.typed.value;
  const [refused, setRefused] = useState(/** @type {Record<string, string>} */ ({}));
  const [busy, setBusy] = useState(false);
  const [open, setOpen] = useState(false);
  const [wrong, setWrong] = useState(/** @type {{problem: Problem, changes: any, more: any}|null} */ (null));
  const once = useMemo(onceKey, [changes, more]);
  const { values } = form.read();
  const tags = more.tags.split(",").map((tag) => tag.trim()).filter(Boolean);
  const wish = { flow: flow.name, params: values, tag: more.tag === "default" ? "" : more.tag, tags, key: more.key };
  const told = wrong && wrong.changes === changes && wrong.more === more ? wrong.problem : null; // of what is typed now

  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const { values: params, fits } = form.check();
    const badly = more.priority.trim() !== "" && !/^[+-]?\d{1,10}$/.test(more.priority.trim());
    setRefused(badly ? { priority: t("form.whole") } : {});
    if (badly) setOpen(true);
    if (!fits || badly) return;
    setBusy(true);
    try {
      const body = {
        flow_name: flow.name,
        params,
        tag: more.tag || undefined,
        tags: tags.length ? tags : undefined,
        key: more.key || undefined,
        priority: more.priority.trim() ? Number(more.priority) : undefined,
        continues: more.continues ? model?.run_id : undefined,
      };
      const run = await ask("/runs", { method: "POST", body, headers: { "Idempotency-Key": once } });
      tell(t("start.done", { n: String(run.number) }));
      go(`/runs/${run.number}`);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      const left = form.refuse(error.fields);
      const fields = Object.fromEntries(left.map((one) => [ROUTING.find((name) => one.loc.includes(name)) ?? "", wrongText(one)]));
      setRefused(fields);
      if (Object.keys(fields).some(Boolean)) setOpen(true);
      setWrong({ problem: error, changes: form.typed.peek(), more });
      setBusy(false);
    }
  };
  const change = (/** @type {string} */ name) => (/** @type {any} */ event) => {
    const { type, checked, value } = event.currentTarget;
    setMore({ ...more, [name]: type === "checkbox" ? checked : value });
  };
  const plain = (/** @type {"tag"|"tags"|"key"|"priority"} */ name, /** @type {string} */ label, /** @type {any} */ extra = {}) =>
    html`<div class=${`field${refused[name] ? " wrong" : ""}`}><label for=${`start-${name}`}>${t(label)}</label><input id=${`start-${name}`} type="text"
    autocomplete="off" ...${extra} value=${more[name]} onInput=${change(name)} /><p class="hint">
    ${t(`start.${name}.text`)}</p>${refused[name] && html`<p class="wrong-text" role="alert">${refused[name]}</p>`}</div>`;

  const tag = more.tag.trim() || flow.tag;
  return html`<form class="start" onSubmit=${submit} novalidate>
    <${Unserved} flow=${flow} tag=${tag} />
    <${Card} title=${html`${flow.name} <span class="label tag" title=${t("filter.tag")}>${tag}</span>`} actions=${html`<a class="button bare" href=${link("/start")}>${t("start.other")}</a>`}>
      ${docOf(flow) && html`<p class="lead lines">${docOf(flow).replace(/^[ \t]+/gm, "")}</p>`}
      <${SchemaFields} form=${form} />
      <details class="fold" open=${open} onToggle=${(/** @type {any} */ event) => setOpen(event.currentTarget.open)}><summary>${t("start.more")}</summary><div class="fields two">
        ${plain("tag", "filter.tag")}${plain("tags", "start.tags")}${plain("key", "column.key")}${plain("priority", "start.priority", { inputmode: "numeric" })}</div>
        ${model && html`<label class="check"><input type="checkbox" checked=${more.continues} onChange=${change("continues")} />
          ${t("start.continues", { n: String(model.number) })}</label>`}
      </details>
      ${told && html`<${Explained} problem=${told}>${told.runId && html`<p><a href=${link(`/runs/${told.runId}`)}>${t("start.holder")}</a></p>`}<//>`}
      <${CommandLine} line=${commands.submit(wish)} />
      <div class="form-foot"><button class="button primary" disabled=${busy}><${Icon} name="play" />${t("start.submit")}</button></div>
    <//>
  </form>`;
}
