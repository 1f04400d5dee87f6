// The sessions, the newest first, and a form that starts one.
import { Card, CommandLine, Empty, Page, Stale, Table, Time, act, ask, go, html, t, useAsked, useRef, useState } from "../../static/parts.js";
import { API, Maker, State, Until, counts, progress, text, to, useOneAtATime } from "./frame.js";

export function Sessions() {
  const asked = useAsked(`${API}/sessions`, { every: 2 });
  if (!asked.value) return html`<${Page} title=${t("app.notes")}><${Until} problem=${asked.problem} again=${asked.again} /><//>`;
  const columns = [
    { name: "session", title: t("notes.session"), cell: (/** @type {any} */ row) => html`<a href=${to(`/sessions/${row.session_id}`)}>${row.source}</a><br /><small class="wordy">${[row.session_id, row.vault].filter(Boolean).join(" · ")}</small>` },
    { name: "created", title: t("notes.created"), cell: (/** @type {any} */ row) => html`<${Time} at=${Date.parse(row.created_at) / 1000} />` },
    { name: "state", title: t("notes.state"), cell: (/** @type {any} */ row) => html`<${State} state=${row.status} />` },
    { name: "progress", title: t("notes.progress"), cell: (/** @type {any} */ row) => html`${progress(row)}<small>${counts(row)}</small>` },
  ];
  return html`<${Page} title=${t("app.notes")}>
    <${Stale} problem=${asked.problem} />
    <${Card} title=${t("notes.import")}><${Import} /><//>
    ${asked.value.length
      ? html`<${Card} title=${t("notes.sessions")} flush><${Table} label=${t("notes.sessions")} columns=${columns} rows=${asked.value} rowKey=${(/** @type {any} */ row) => row.session_id} /><//>`
      : html`<${Empty} title=${t("notes.none")} text=${t("notes.noneText")} />`}
  <//>`;
}

/** How many bytes of an export are sent at a time: well below what the gateway takes. */
const PIECE = 2 * 1024 * 1024;
const LANGUAGES = ["ja", "en"];
const FORMATS = ["chatgpt", "claude", "markdown", "jsonl"];

/** Sends a file in pieces; gives the id of the upload. @param {File} file @param {(share: number) => void} told */
async function uploaded(file, told) {
  const { upload_id: id } = await ask(`${API}/uploads`, { method: "POST", body: { name: file.name } });
  for (let offset = 0; offset < file.size; offset += PIECE) {
    told(offset / file.size);
    const body = new FormData();
    body.append("piece", file.slice(offset, offset + PIECE), "piece");
    await ask(`${API}/uploads/${id}`, { method: "POST", query: { offset }, body });
  }
  return id;
}

const NOTHING = { export: "", vault: "", provider: "auto", llm: "", model: "", translate: "", chunk: false };

function Import() {
  const limits = useAsked(`${API}/limits`);
  const paths = limits.value?.paths === true; // with keys they are refused: whoever has one reads nothing else here
  const chooser = useRef(/** @type {HTMLInputElement|null} */ (null));
  const [file, setFile] = useState(/** @type {File|null} */ (null));
  const [asked, setAsked] = useState(/** @type {any} */ (NOTHING));
  const [share, setShare] = useState(/** @type {number|null} */ (null));
  const [busy, once] = useOneAtATime();
  const set = (/** @type {string} */ name) => (/** @type {any} */ event) => setAsked({ ...asked, [name]: event.target.type === "checkbox" ? event.target.checked : event.target.value });
  const empty = () => {
    setFile(null);
    setAsked(NOTHING);
    if (chooser.current) chooser.current.value = "";
  };
  const begin = async () => {
    const started = await act(async () => {
      const chosen = asked.llm === "offline" ? { ...asked, model: "", translate: "" } : asked; // what is not shown is not asked for
      const body = file ? { ...chosen, export: "", upload: await uploaded(file, setShare) } : chosen;
      return ask(`${API}/sessions`, { method: "POST", body });
    }, t("notes.begun"));
    setShare(null);
    if (!started) return;
    empty();
    go(`/apps/notes/sessions/${started.session_id}`);
  };
  const send = (/** @type {Event} */ event) => {
    event.preventDefault();
    void once(begin); // each session is paid for
  };
  return html`<form class="toolbar" onSubmit=${send}>
      <button type="button" class="button" onClick=${() => chooser.current?.click()}>${file ? file.name : t("notes.choose")}</button>
      <input ref=${chooser} type="file" hidden aria-label=${t("notes.file")} accept=".zip,.json,.jsonl,.md,.txt" onChange=${(/** @type {any} */ event) => setFile(event.target.files[0] ?? null)} />
      ${paths && !file && text(asked, "export", set("export"), { required: true })}
      ${paths && text(asked, "vault", set("vault"))}
      <select aria-label=${t("notes.provider")} value=${asked.provider} onChange=${set("provider")}><option value="auto">${t("notes.anyFormat")}</option>${FORMATS.map((name) => html`<option value=${name}>${name}</option>`)}</select>
      <${Maker} value=${asked.llm} set=${set("llm")} unsaid=${t("notes.llmAsSet")} />
      ${asked.llm !== "offline" && text(asked, "model", set("model"))}
      ${asked.llm !== "offline" && html`<select aria-label=${t("notes.translate")} value=${asked.translate} onChange=${set("translate")}><option value="">${t("notes.asItIs")}</option>${LANGUAGES.map((name) => html`<option value=${name}>${t(`notes.into.${name}`)}</option>`)}</select>`}
      <label><input type="checkbox" checked=${asked.chunk} onChange=${set("chunk")} /> ${t("notes.chunk")}</label>
      <button class="button primary" disabled=${busy || (!file && !paths)}>${share === null ? t("notes.start") : t("notes.sending", { n: Math.round(share * 100) })}</button>
    </form>
    <${CommandLine} line="tsuzuki notes import export.zip --out vault" />`;
}
