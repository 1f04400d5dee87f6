// The projects with how much each has; one is made, copied and removed here.
import { Card, CommandLine, Confirm, Empty, Icon, Page, Stale, Table, Waiting, ask, go, html, number, t, useAsked, useState } from "../../static/parts.js";
import { API, HOME, act, said, sent, to, typed } from "./frame.js";

const COUNTS = ["document", "term", "provisional", "issue", "refined"];

export function Projects() {
  const asked = useAsked(API, { every: 3 });
  const [copying, setCopying] = useState(/** @type {any} */ (null));
  const [removing, setRemoving] = useState(/** @type {any} */ (null));
  if (!asked.value) return html`<${Page} title=${t("app.glossary")}><${Waiting} problem=${asked.problem} again=${asked.again} /><//>`;
  const columns = [
    { name: "name", title: t("glossary.project"), cell: (/** @type {any} */ row) => row.damaged ? html`${row.name}<br /><small class="tone-bad">${said(row.damaged)}</small>` : html`<a href=${to(`/projects/${row.id}`)}>${row.name}</a>` },
    ...COUNTS.map((name) => ({ name, title: t(`glossary.count.${name}`), class: "figure", cell: (/** @type {any} */ row) => (row.damaged ? "–" : number(row[`${name}_count`])) })),
    { name: "do", title: html`<span class="unseen">${t("glossary.actions")}</span>`, class: "cell-act", cell: (/** @type {any} */ row) => html`
      <button class="button bare" disabled=${row.damaged !== null} aria-label=${`${t("glossary.clone")} ${row.name}`} title=${t("glossary.clone")} onClick=${() => setCopying(row)}><${Icon} name="copies" /></button>
      <button class="button bare" aria-label=${`${t("glossary.remove")} ${row.name}`} title=${t("glossary.remove")} onClick=${() => setRemoving(row)}><${Icon} name="bin" /></button>` },
  ];
  const remove = () => sent(() => ask(`${API}/${removing.id}`, { method: "DELETE" })).then(asked.again);
  return html`<${Page} title=${t("app.glossary")}>
    <${Stale} problem=${asked.problem} />
    <${Card} title=${t("glossary.new")}><${Create} /><//>
    ${asked.value.length ? html`<${Card} title=${t("glossary.projects")} flush><${Table} label=${t("glossary.projects")} columns=${columns} rows=${asked.value} rowKey=${(/** @type {any} */ row) => row.id} /><//>`
      : html`<${Empty} title=${t("glossary.none")} text=${t("glossary.noneText")} icon="app"><${CommandLine} line="tsuzuki glossary generate -i docs -o glossary.md" /><//>`}
    ${copying && html`<${Clone} project=${copying} done=${asked.again} close=${() => setCopying(null)} />`}
    ${removing && html`<${Confirm} title=${removing.name} button=${t("glossary.remove")} danger send=${remove} close=${() => setRemoving(null)}><p>${t("glossary.removeProject")}</p><//>`}
  <//>`;
}

function Create() {
  const [name, setName] = useState("");
  const send = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const made = await act(() => ask(API, { method: "POST", body: { name } }));
    if (made) go(`${HOME}/projects/${made.id}`);
  };
  return html`<form class="toolbar" onSubmit=${send}>
    <input type="text" style=${{ flex: "1 1 260px" }} required maxlength="200" autocomplete="off" aria-label=${t("glossary.name")} placeholder=${t("glossary.nameHint")} value=${name} onInput=${typed(setName)} />
    <button class="button primary">${t("glossary.create")}</button>
  </form>`;
}

/** @param {{project: any, done: () => void, close: () => void}} props */
function Clone({ project, done, close }) {
  const [name, setName] = useState(`${project.name} 2`);
  const send = () => sent(() => ask(`${API}/${project.id}/clone`, { method: "POST", body: { new_name: name } })).then(done);
  return html`<${Confirm} title=${`${t("glossary.clone")}: ${project.name}`} button=${t("glossary.clone")} may=${name.trim() !== ""} send=${send} close=${close}>
    <p>${t("glossary.cloneText")}</p>
    <input type="text" maxlength="200" autocomplete="off" aria-label=${t("glossary.newName")} value=${name} onInput=${typed(setName)} />
  <//>`;
}
