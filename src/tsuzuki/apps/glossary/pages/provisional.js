// The provisional glossary: each definition is changed in place, asked for again, or removed.
import { Card, Empty, Icon, Table, Waiting, ask, html, number, t, useAsked, useEffect, useRef, useState } from "../../static/parts.js";
import { TermCard } from "./card.js";
import { Some, act, typed } from "./frame.js";

/** @param {{id: string, at: string, active: boolean, changed: () => void}} props */
export function Provisional({ id, at, active, changed }) {
  const asked = useAsked(`${at}/provisional`, { every: active ? 2 : 10 });
  const [shown, setShown] = useState("");
  const [busy, setBusy] = useState("");
  if (!asked.value) return html`<${Waiting} problem=${asked.problem} again=${asked.again} />`;
  if (!asked.value.length) return html`<${Empty} title=${t("glossary.noEntries")} text=${t("glossary.noEntriesText")} />`;
  const again = () => (asked.again(), changed());
  const regenerate = async (/** @type {any} */ row) => {
    setBusy(row.term_name);
    await act(() => ask(`${at}/provisional/${row.id}/regenerate`, { method: "POST" }), t("glossary.regenerated", { term: row.term_name }));
    setBusy("");
    again();
  };
  const remove = (/** @type {any} */ row) => act(() => ask(`${at}/provisional/${row.id}`, { method: "DELETE" })).then(again);
  const columns = [
    { name: "term", title: t("glossary.term"), cell: (/** @type {any} */ row) => html`<button class="button bare" onClick=${() => setShown(row.term_name)}>${row.term_name}</button>${row.aliases.length > 0 && html`<br /><small>${row.aliases.join(", ")}</small>`}` },
    { name: "definition", title: t("glossary.definition"), cell: (/** @type {any} */ row) => html`<${Definition} row=${row} at=${`${at}/provisional/${row.id}`} done=${asked.again} />` },
    { name: "do", title: html`<span class="unseen">${t("glossary.actions")}</span>`, class: "cell-act", cell: (/** @type {any} */ row) => html`
      <button class="button small" disabled=${busy !== ""} aria-busy=${busy === row.term_name} aria-label=${`${t("glossary.regenerate")} ${row.term_name}`} onClick=${() => regenerate(row)}><${Icon} name="again" />${t(busy === row.term_name ? "glossary.regenerating" : "glossary.regenerate")}</button>
      <button class="button bare" aria-label=${`${t("glossary.remove")} ${row.term_name}`} title=${t("glossary.remove")} onClick=${() => remove(row)}><${Icon} name="bin" /></button>` },
  ];
  const show = (/** @type {any[]} */ rows) => html`<${Card} flush><${Table} label=${t("glossary.tab.provisional")} columns=${columns} rows=${rows} rowKey=${(/** @type {any} */ row) => row.term_name} /><//>`;
  return html`<${Some} rows=${asked.value} text=${(/** @type {any} */ row) => `${row.term_name} ${row.definition}`} show=${show} />
    ${shown && html`<${TermCard} id=${id} at=${at} term=${shown} close=${() => setShown("")} />`}`;
}

/** A definition, which becomes a field where it is changed; `at` is the address of the entry. @param {{row: any, at: string, done: () => void}} props */
export function Definition({ row, at, done }) {
  const [draft, setDraft] = useState(/** @type {string|null} */ (null));
  const [sure, setSure] = useState("");
  const field = useRef(/** @type {HTMLElement|null} */ (null));
  const edit = useRef(/** @type {HTMLElement|null} */ (null));
  const changing = useRef(false);
  useEffect(() => {
    if (draft !== null) field.current?.focus();
    else if (changing.current) edit.current?.focus(); // whoever uses keys goes on where it began
    changing.current = draft !== null;
  }, [draft === null]);
  const begin = () => (setDraft(row.definition), setSure(String(row.confidence)));
  const save = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const confidence = Number(sure);
    if (await act(() => ask(at, { method: "PATCH", body: { definition: draft, confidence } }), t("glossary.saved"))) {
      setDraft(null);
      done();
    }
  };
  const keys = (/** @type {any} */ event) => {
    if (event.isComposing) return;
    if (event.key === "Escape") setDraft(null);
    else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void event.currentTarget.form.requestSubmit();
  };
  if (draft === null) return html`<div class="glossary-long">${row.definition}${" "}<small>${t("glossary.confidence")} ${number(row.confidence, { style: "percent" })}${row.by_person && html`${" · "}<span title=${t("glossary.byPersonText")}>${t("glossary.byPerson")}</span>`}${row.kept && html`${" · "}<span title=${t("glossary.keptText")}>${t("glossary.kept")}</span>`}</small>
    <button ref=${edit} class="button bare" aria-label=${`${t("glossary.edit")} ${row.term_name}`} onClick=${begin}>${t("glossary.edit")}</button></div>`;
  return html`<form class="glossary-long" onSubmit=${save}>
    <textarea ref=${field} required maxlength="10000" aria-label=${`${t("glossary.definition")} ${row.term_name}`} value=${draft} onInput=${typed(setDraft)} onKeyDown=${keys}></textarea>
    <div class="toolbar">
      <label class="check">${t("glossary.confidence")} <input type="text" inputmode="decimal" required pattern="0?[.][0-9]+|0|1|1[.]0+" title="0 – 1" style=${{ width: "6em" }} value=${sure} onInput=${typed(setSure)} /></label>
      <button class="button primary small">${t("glossary.save")}</button><button type="button" class="button small" onClick=${() => setDraft(null)}>${t("glossary.leave")}</button>
    </div>
  </form>`;
}
