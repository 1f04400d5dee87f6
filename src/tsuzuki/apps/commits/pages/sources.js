// Connections and their projects; a project with its branches, to be collected or removed.
import { Bar, Card, Confirm, Empty, RunLink, Table, Time, act, ask, half, html, number, t, useAsked, useEffect, useState } from "../../static/parts.js";
import { API, Frame, Old, Until, sent, to } from "./frame.js";

export function Sources() {
  const connections = useAsked(`${API}/connections`, { every: 10 });
  const projects = useAsked(`${API}/projects`, { every: 10 });
  if (!connections.value || !projects.value) return html`<${Frame} current="sources"><${Until} problem=${connections.problem ?? projects.problem} again=${connections.again} /><//>`;
  const again = () => (connections.again(), projects.again());
  const columns = [
    { name: "name", title: t("commits.project"), cell: (/** @type {any} */ row) => html`<a href=${to(`/projects/${row.project_id}`)}>${row.name}</a> ${row.connection_id === null && html`<small class="tone-warn">${t("commits.unconnected")}</small>`}` },
    { name: "collected", title: t("commits.collected"), class: "figure", cell: (/** @type {any} */ row) => number(row.collected_branches) },
  ];
  return html`<${Frame} current="sources">
    <${Card} title=${t("commits.connections")} flush><${Connections} connections=${connections.value} again=${again} /><//>
    <${Connect} again=${again} />
    <${Card} title=${t("commits.projects")} flush>
      ${projects.value.length ? html`<${Table} label=${t("commits.projects")} columns=${columns} rows=${projects.value} rowKey=${(/** @type {any} */ row) => row.project_id} />`
        : html`<${Empty} title=${t("commits.noProjects")} text=${t("commits.noProjectsText")} />`}
    <//>
  <//>`;
}

/** @param {{connections: any[], again: () => void}} props */
function Connections({ connections, again }) {
  const [removing, setRemoving] = useState(/** @type {any} */ (null));
  const sync = async (/** @type {any} */ row) => {
    await act(() => ask(`${API}/connections/${row.connection_id}/sync`, { method: "POST" }), t("commits.sync"));
    again();
  };
  const columns = [
    { name: "address", title: t("commits.address"), cell: (/** @type {any} */ row) => row.address },
    { name: "token", title: t("commits.token"), cell: (/** @type {any} */ row) => t(`commits.token.${row.token_from}`) },
    { name: "do", title: "", class: "cell-act", cell: (/** @type {any} */ row) => html`<button class="button" onClick=${() => sync(row)}>${t("commits.sync")}</button>
      <button class="button bare" onClick=${() => setRemoving(row)}>${t("commits.remove")}</button>` },
  ];
  const remove = async () => {
    await sent(`${API}/connections/${removing.connection_id}`, { method: "DELETE" });
    again();
  };
  return html`${connections.length === 0 ? html`<${Empty} title=${t("commits.noConnections")} text=${t("commits.noConnectionsText")} />` : html`<${Table} label=${t("commits.connections")} columns=${columns} rows=${connections} rowKey=${(/** @type {any} */ row) => row.connection_id} />`}
    ${removing && html`<${Confirm} title=${removing.address} button=${t("commits.remove")} danger send=${remove} close=${() => setRemoving(null)}>
      <p>${t("commits.removeConnection")}</p><//>`}`;
}

/** The token leaves the page once it is sent, and never comes back. @param {{again: () => void}} props */
function Connect({ again }) {
  const [address, setAddress] = useState("");
  const [token, setToken] = useState("");
  const send = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const where = /^\w+:\/\//.test(address) ? { base_url: address, token: token || null } : { path: address };
    if (await act(() => ask(`${API}/connections`, { method: "POST", body: where }))) {
      setAddress("");
      setToken("");
      again();
    }
  };
  return html`<form class="toolbar" onSubmit=${send}>
    <input type="text" style=${{ flex: "2 1 240px" }} aria-label=${t("commits.address")} placeholder=${t("commits.addressHint")} value=${address} required onInput=${(/** @type {any} */ event) => setAddress(event.target.value)} />
    <input type="password" style=${{ flex: "1 1 140px" }} autocomplete="off" aria-label=${t("commits.token")} placeholder=${t("commits.tokenHint")} value=${token} onInput=${(/** @type {any} */ event) => setToken(event.target.value)} />
    <button class="button primary">${t("commits.connect")}</button>
  </form>`;
}

/** @param {{id: string}} props */
export function Project({ id }) {
  const projects = useAsked(`${API}/projects`);
  const [busy, setBusy] = useState(false);
  const branches = useAsked(`${API}/projects/${id}/branches`, { every: busy ? 3 : 60 }); // each time the source is asked
  const [removing, setRemoving] = useState(/** @type {any} */ (null));
  const [run, setRun] = useState("");
  const [span, setSpan] = useState({ since: "", until: "" });
  // A source that cannot be asked keeps nobody from seeing, and removing, what is stored.
  const kept = useAsked(branches.problem && !branches.value ? `${API}/projects/${id}/branches` : null, { query: { stored_only: true } });
  const rows = branches.value ?? kept.value;
  if (!rows || (!branches.value && !rows.length)) return html`<${Frame} current="sources"><${Until} problem=${branches.problem} again=${branches.again} /><//>`;
  const known = (projects.value ?? []).find((/** @type {any} */ each) => String(each.project_id) === id);
  const alone = known?.connection_id === null;
  const collect = (/** @type {any} */ what) => () => act(() => ask(`${API}/collect`, { method: "POST", body: { project_id: Number(id), ...what, ...span } }), t("commits.begun")).then((begun) => begun && (setBusy(true), setRun(/** @type {any} */ (begun).run_id)));
  const remove = async () => {
    await sent(`${API}/projects/${id}/branches`, { method: "DELETE", query: { name: removing.branch_name, confirm: removing.commits } });
    branches.value ? branches.again() : kept.again();
  };
  const columns = [
    { name: "branch", title: t("commits.branch"), cell: (/** @type {any} */ row) => html`${row.branch_name} ${row.exists === false && !alone && html`<small class="tone-warn">${t("commits.gone")}</small>`}` },
    { name: "stored", title: t("commits.stored"), class: "figure", cell: (/** @type {any} */ row) => number(row.commits) },
    { name: "newest", title: t("commits.newest"), cell: (/** @type {any} */ row) => (row.last_collect_time ? html`<${Time} at=${Date.parse(row.last_collect_time) / 1000} />` : "") },
    { name: "do", title: "", class: "cell-act", cell: (/** @type {any} */ row) => html`${row.exists && html`<button class="button" onClick=${collect({ branches: [row.branch_name] })}>${t("commits.collect")}</button>`}
      ${row.commits > 0 && html`<button class="button bare" onClick=${() => setRemoving(row)}>${t("commits.remove")}</button>`}` },
  ];
  return html`<${Frame} current="sources" title=${known?.name} actions=${!alone && html`<button class="button primary" onClick=${collect({ all: true })}>${t("commits.collectAll")}</button>`}>
    ${alone && html`<p class="notice tone-warn" role="status">${t("commits.unconnectedText")}</p>`}
    ${!alone && html`<${Days} span=${span} choose=${setSpan} />`}
    ${run && html`<${Outcome} key=${run} id=${run} over=${() => (setBusy(false), branches.again())} />`}
    <${branches.value ? Old : Unasked} problem=${branches.problem} again=${branches.again} />
    <${Card} flush><${Table} label=${t("commits.branch")} columns=${columns} rows=${rows} rowKey=${(/** @type {any} */ row) => row.branch_name} /><//>
    ${removing && html`<${Confirm} title=${removing.branch_name} button=${t("commits.remove")} danger send=${remove} close=${() => setRemoving(null)}>
      <p>${t("commits.removeBranch", { n: number(removing.commits) })}</p><//>`}
  <//>`;
}

/** Why a source cannot be asked. @param {{problem: any, again: () => void}} props */
const Unasked = ({ problem, again }) => problem && html`<div class="notice tone-bad" role="alert"><p>${half(problem.message)}</p><button class="button" onClick=${again}>${t("action.again")}</button></div>`;

/** Which days to collect. @param {{span: Record<string, string>, choose: (span: any) => void}} props */
function Days({ span, choose }) {
  const day = (/** @type {string} */ name) => html`<label>${t(`commits.${name}`)} <input type="date" value=${span[name]} onInput=${(/** @type {any} */ event) => choose({ ...span, [name]: event.target.value })} /></label>`;
  return html`<p class="toolbar">${day("since")} ${day("until")} <small>${t("commits.spanText")}</small></p>`;
}

/** How a collection goes, and why branches failed: it was only begun when the button was pressed. @param {{id: string, over: () => void}} props */
function Outcome({ id, over }) {
  const [ended, setEnded] = useState(false);
  const run = useAsked(`/runs/${id}`, { every: ended ? 0 : 1 });
  const terminal = ["COMPLETED", "FAILED", "CANCELLED"].includes(run.value?.status);
  useEffect(() => void (terminal && (setEnded(true), over())), [terminal]);
  const result = useAsked(terminal && run.value.status === "COMPLETED" ? `/runs/${id}/result` : null);
  if (!run.value) return html`<${Old} problem=${run.problem} />`;
  const failed = Object.entries(result.value?.failed ?? {});
  const found = /** @type {number[]} */ (Object.values(result.value?.new_commits ?? {})).reduce((all, each) => all + each, 0);
  const { done, failed: lost } = run.value.counts, total = run.value.params?.branches?.length ?? done + lost;
  return html`<${Card} title=${t(!terminal ? "commits.collecting" : `commits.ended.${run.value.status === "COMPLETED" && lost > 0 ? "some" : run.value.status}`)} actions=${html`<${RunLink} run=${run.value.number}>${t("commits.run", { n: run.value.number })}<//>`}>
    <${Bar} done=${done} failed=${lost} total=${total} label=${t("commits.collect")} />
    <p>${number(done + lost)} / ${number(total)} · ${t("commits.failed")} ${number(lost)}${result.value ? ` · ${t("commits.new")} ${number(found)}` : ""}</p>
    ${failed.length > 0 && html`<div class="notice tone-bad" role="alert"><div>${failed.map(([name, why]) => html`<p key=${name}><strong>${name}</strong> ${half(String(why))}</p>`)}</div></div>`}
    ${run.value.error && html`<p class="notice tone-bad" role="alert">${run.value.error.message ?? String(run.value.error)}</p>`}
  <//>`;
}
