// Wheels: code for the workers; dropped here, listed with their tags, deleted, who did it, and who has installed what.
import { html, useRef, useState } from "../core/view.js";
import { Problem, ask } from "../core/api.js";
import { commands } from "../core/commands.js";
import { useAsked } from "../core/live.js";
import { address } from "../core/place.js";
import { apiKey } from "../core/preferences.js";
import { Time } from "../core/times.js";
import { bytes, t } from "../core/words.js";
import { CommandLine } from "../parts/command.js";
import { Confirm, tell } from "../parts/dialog.js";
import { Icon } from "../parts/icons.js";
import { Card, Page } from "../parts/layout.js";
import { Empty, Explained, Stale, Waiting } from "../parts/states.js";
import { Table } from "../parts/table.js";
import { WorkerLine } from "../parts/workerline.js";


export function WheelsScreen() {
  const [asking, setAsking] = useState(/** @type {Api.Wheel|null} */ (null));
  /** @type {Api.Asked<Api.Wheel[]>} */
  const wheels = useAsked("/wheels", { every: 3 });
  /** @type {Api.Asked<Api.WheelEvent[]>} */
  const history = useAsked("/wheels/history", { every: 5, query: { limit: 50 } });
  const changed = () => (wheels.again(), history.again());
  const rows = wheels.value ?? [];
  let content;
  if (!wheels.value) content = html`<${Waiting} ...${wheels} />`;
  else if (!rows.length) content = html`<${Empty} title=${t("wheels.none")} text=${t("wheels.none.text")} icon="wheels">
    <${CommandLine} line=${commands.wheel("upload", "FILE.whl")} /><//>`;
  else content = html`<${Table} label=${t("nav.wheels")} columns=${columns(setAsking)} rows=${rows}
    rowKey=${(/** @type {Api.Wheel} */ wheel) => wheel.name} />`;
  return html`<${Page} title=${t("nav.wheels")}>
    <p class="lead">${t("wheels.lead")}</p>
    <${Upload} done=${changed} />
    <${Stale} problem=${wheels.value ? wheels.problem : null} />
    ${content}
    <${Installed} />
    <${History} events=${history.value ?? []} />
    ${asking && html`<${Delete} wheel=${asking} close=${() => setAsking(null)} done=${changed} />`}
  <//>`;
}

/** Where a wheel is dropped or chosen. @param {{done: () => void}} props */
function Upload({ done }) {
  const input = useRef(/** @type {HTMLInputElement|null} */ (null));
  const [tags, setTags] = useState("");
  const [over, setOver] = useState(false);
  const [busy, setBusy] = useState("");
  const [wrong, setWrong] = useState(/** @type {Problem|null} */ (null));
  const send = async (/** @type {File|undefined} */ file) => {
    if (!file || busy) return;
    const form = new FormData();
    form.set("tags", tags);
    form.set("wheel", file, file.name);
    setBusy(file.name);
    setWrong(null);
    try {
      const kept = await ask("/wheels", { method: "POST", body: form });
      tell(t("wheels.done", { name: kept.name }));
      done();
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      setWrong(error);
    }
    setBusy("");
  };
  const drop = (/** @type {DragEvent} */ event) => {
    event.preventDefault();
    setOver(false);
    send(event.dataTransfer?.files[0]);
  };
  const enter = (/** @type {DragEvent} */ event) => (event.preventDefault(), setOver(true));
  return html`<section class=${`card drop-zone${over ? " over" : ""}`} data-drop="wheel" aria-label=${t("wheels.upload")}
    aria-busy=${Boolean(busy)} onDragOver=${enter} onDragLeave=${() => setOver(false)} onDrop=${drop}>
    <${Icon} name="wheels" />
    <p><b>${busy ? t("wheels.busy", { name: busy }) : t("wheels.drop")}</b></p>
    <div class="drop-fields">
      <div class="field"><label for="wheel-tags">${t("wheels.tags")}</label>
        <input id="wheel-tags" type="text" autocomplete="off" placeholder=${t("wheels.tags.text")} value=${tags}
          onInput=${(/** @type {any} */ event) => setTags(event.currentTarget.value)} /></div>
      <button class="button primary" disabled=${Boolean(busy)} onClick=${() => input.current?.click()}>
        <${Icon} name="plus" />${t("wheels.choose")}</button>
      <input ref=${input} type="file" accept=".whl" hidden aria-label=${t("wheels.choose")}
        onChange=${(/** @type {any} */ event) => (send(event.currentTarget.files[0]), (event.currentTarget.value = ""))} />
    </div>
    ${wrong && html`<${Explained} problem=${wrong} />`}
  </section>`;
}

/** @param {string[]} tags */
const labels = (tags) => (tags.length
  ? html`<span class="labels">${tags.map((tag) => html`<span key=${tag} class="label tag">${tag}</span>`)}</span>`
  : html`<span class="none">${t("wheels.everyone")}</span>`);

/** @param {(wheel: Api.Wheel) => void} remove */
const columns = (remove) => [
  { name: "wheel", title: t("column.wheel"), class: "cell-run", cell: (/** @type {Api.Wheel} */ wheel) => html`<b>${wheel.package}</b>${" "}
    <span class="run-number">${wheel.version}</span><br /><span class="hint wordy">${wheel.name}</span>` },
  { name: "tags", title: t("wheels.tags"), cell: (/** @type {Api.Wheel} */ wheel) => labels(wheel.tags) },
  { name: "size", title: t("column.size"), class: "figure", cell: (/** @type {Api.Wheel} */ wheel) => bytes(wheel.size_bytes) },
  { name: "digest", title: "SHA-256", cell: (/** @type {Api.Wheel} */ wheel) => html`<code title=${wheel.sha256_hex}>${wheel.sha256_hex.slice(0, 12)}</code>` },
  { name: "at", title: t("column.at"), class: "cell-time", cell: (/** @type {Api.Wheel} */ wheel) => html`<${Time} at=${wheel.modified} />` },
  { name: "act", title: html`<span class="unseen">${t("column.actions")}</span>`, class: "cell-act", cell: (/** @type {Api.Wheel} */ wheel) => {
    const [load, drop] = [`${t("wheels.download")} ${wheel.name}`, `${t("wheels.delete")} ${wheel.name}`];
    return html`${!apiKey.value && html`<a class="button bare" href=${address(`/wheels/${encodeURIComponent(wheel.name)}`).href} download=${wheel.name}
      aria-label=${load} title=${load}><${Icon} name="jump" /></a>`}
      <button class="button bare" data-verb="delete" aria-label=${drop} title=${drop} onClick=${() => remove(wheel)}><${Icon} name="bin" /></button>`;
  } },
];

/** What each worker that syncs has installed. */
function Installed() {
  /** @type {Api.Asked<Api.Worker[]>} */
  const workers = useAsked("/workers", { every: 3 });
  const rows = (workers.value ?? []).filter((worker) => worker.wheel_sync.enabled);
  return html`<${Card} title=${t("wheels.workers")} flush=${rows.length > 0}>
    ${rows.length ? html`<${Table} label=${t("wheels.workers")} columns=${installedColumns()} rows=${rows}
      rowKey=${(/** @type {Api.Worker} */ worker) => worker.worker_id} />` : html`<p class="hint">${t("wheels.workers.none")}</p>
      <${WorkerLine} sync />`}
  <//>`;
}

const installedColumns = () => [
  { name: "worker", title: t("column.worker"), class: "cell-run", cell: (/** @type {Api.Worker} */ worker) => html`<b class="wordy">${worker.worker_id}</b>` },
  { name: "tags", title: t("column.tags"), cell: (/** @type {Api.Worker} */ worker) => labels(worker.tags) },
  { name: "installed", title: t("column.installed"), cell: (/** @type {Api.Worker} */ worker) => html`<span class="wordy">
    ${worker.wheel_sync.installed_wheels.join(", ") || "–"}</span>
    ${worker.wheel_sync.skipped_incompatible.length > 0 && html`<br /><span class="hint wordy">
      ${t("wheels.skipped", { names: worker.wheel_sync.skipped_incompatible.join(", ") })}</span>`}` },
  { name: "sync", title: t("column.sync"), cell: (/** @type {Api.Worker} */ worker) => html`<span class="label"
    data-sync=${worker.wheel_sync.last_result}>${t(`wheels.sync.${worker.wheel_sync.last_result}`)}</span>
    ${worker.wheel_sync.last_error && html`<br /><span class="error-line" title=${worker.wheel_sync.last_error}>${worker.wheel_sync.last_error}</span>`}` },
  { name: "at", title: t("column.at"), class: "cell-time", cell: (/** @type {Api.Worker} */ worker) => (worker.wheel_sync.last_synced_at
    ? html`<${Time} at=${worker.wheel_sync.last_synced_at} />` : html`<span class="none">–</span>`) },
];

/** @param {{events: Api.WheelEvent[]}} props */
function History({ events }) {
  return html`<${Card} title=${t("wheels.history")} flush=${events.length > 0}>
    ${events.length ? html`<${Table} label=${t("wheels.history")} columns=${historyColumns()} rows=${events}
      rowKey=${(/** @type {Api.WheelEvent} */ event) => event.event_id} />` : html`<p class="hint">${t("wheels.history.none")}</p>`}
  <//>`;
}

const historyColumns = () => [
  { name: "at", title: t("column.at"), class: "cell-time", cell: (/** @type {Api.WheelEvent} */ event) => html`<${Time} at=${event.occurred_at} />` },
  { name: "action", title: t("column.action"), cell: (/** @type {Api.WheelEvent} */ event) => html`<span class="label">${t(`wheels.action.${event.action}`)}</span>` },
  { name: "wheel", title: t("column.wheel"), class: "cell-run", cell: (/** @type {Api.WheelEvent} */ event) => html`<span class="wordy">${event.wheel_name}</span>` },
  { name: "tags", title: t("wheels.tags"), cell: (/** @type {Api.WheelEvent} */ event) => labels(event.tags) },
  { name: "by", title: t("column.by"), cell: (/** @type {Api.WheelEvent} */ event) => html`<span class="wordy">
    ${[event.actor.tenant_id, event.source.remote_addr].filter(Boolean).join(" · ") || "–"}</span>` },
];

/** @param {{wheel: Api.Wheel, close: () => void, done: () => void}} props */
function Delete({ wheel, close, done }) {
  const send = async () => {
    await ask(`/wheels/${encodeURIComponent(wheel.name)}`, { method: "DELETE" });
    tell(t("wheels.delete.done"));
    done();
  };
  return html`<${Confirm} title=${t("wheels.delete.title")} button=${t("wheels.delete")} danger send=${send} close=${close}>
    <p>${t("wheels.delete.text")}</p>
    <p><b class="wordy">${wheel.name}</b> ${labels(wheel.tags)}</p>
    <${CommandLine} line=${commands.wheel("delete", wheel.name)} />
  <//>`;
}
