// Terms with category and notes, and beside them the lists of excluded and of required terms.
import { Card, Empty, Icon, Table, Tabs, Time, Waiting, ask, html, place, t, useAsked, useState } from "../../static/parts.js";
import { TermCard } from "./card.js";
import { CATEGORIES, Some, act, to, typed } from "./frame.js";
import { Notes } from "./noting.js";

/** @param {{id: string, at: string, active: boolean, changed: () => void}} props */
export function Terms({ id, at, active, changed }) {
  const list = ["excluded", "required"].includes(place.value.query.list) ? place.value.query.list : "found";
  const tabs = ["found", "excluded", "required"].map((name) => ({ name, title: t(`glossary.terms.${name}`), href: to(`/projects/${id}/terms`, { list: name === "found" ? "" : name }) }));
  return html`<${Tabs} label=${t("glossary.tab.terms")} tabs=${tabs} current=${list} />
    ${list === "found" ? html`<${Found} id=${id} at=${at} active=${active} changed=${changed} />` : html`<${Listed} key=${list} at=${`${at}/${list}-terms`} list=${list} active=${active} changed=${changed} />`}`;
}

/** @param {{label: string, button: string, send: (text: string) => Promise<any>}} props `send` gives null where it was refused */
export function AddText({ label, button, send }) {
  const [text, setText] = useState("");
  const add = async (/** @type {Event} */ event) => {
    event.preventDefault();
    if ((await send(text)) !== null) setText("");
  };
  return html`<form class="toolbar" onSubmit=${add}>
    <input type="text" style=${{ flex: "1 1 200px" }} required maxlength="200" autocomplete="off" aria-label=${label} placeholder=${label} value=${text} onInput=${typed(setText)} />
    <button class="button">${button}</button>
  </form>`;
}

/** @param {{id: string, at: string, active: boolean, changed: () => void}} props */
function Found({ id, at, active, changed }) {
  const asked = useAsked(`${at}/terms`, { every: active ? 2 : 10 });
  const [shown, setShown] = useState("");
  if (!asked.value) return html`<${Waiting} problem=${asked.problem} again=${asked.again} />`;
  const again = () => (asked.again(), changed());
  const send = (/** @type {string} */ path, /** @type {string} */ method, /** @type {any} */ body) => act(() => ask(`${at}${path}`, { method, body })).then((told) => (again(), told));
  const save = (/** @type {any} */ row) => async (/** @type {string} */ user_notes) => {
    await ask(`${at}/terms/${row.id}`, { method: "PATCH", body: { user_notes } });
    asked.again(); // a term that was only required has a number of its own now
  };
  const columns = [
    { name: "term", title: t("glossary.term"), cell: (/** @type {any} */ row) => html`<button class="button bare" onClick=${() => setShown(row.term_text)}>${row.term_text}</button>
      ${row.required && html`<span class="label tag">${t("glossary.required")}</span>`}` },
    { name: "category", title: t("glossary.category"), cell: (/** @type {any} */ row) => html`<select aria-label=${`${t("glossary.category")} ${row.term_text}`} value=${row.category ?? ""}
      onChange=${typed((category) => void send(`/terms/${row.id}`, "PATCH", { category: category || null }))}>
      <option value="">–</option>${CATEGORIES.map((name) => html`<option key=${name} value=${name}>${t(`glossary.category.${name}`)}</option>`)}</select>` },
    { name: "notes", title: t("glossary.notes"), cell: (/** @type {any} */ row) => html`<${Notes} value=${row.user_notes} label=${`${t("glossary.notes")} ${row.term_text}`} save=${save(row)} />` },
    { name: "do", title: html`<span class="unseen">${t("glossary.actions")}</span>`, class: "cell-act", cell: (/** @type {any} */ row) => html`
      ${!row.required && html`<button class="button small" aria-label=${`${t("glossary.require")} ${row.term_text}`} onClick=${() => send("/required-terms", "POST", { term_text: row.term_text })}>${t("glossary.require")}</button>${" "}`}
      <button class="button small" aria-label=${`${t("glossary.exclude")} ${row.term_text}`} onClick=${() => send("/excluded-terms", "POST", { term_text: row.term_text })}>${t("glossary.exclude")}</button>
      <button class="button bare" aria-label=${`${t("glossary.remove")} ${row.term_text}`} title=${t("glossary.remove")} onClick=${() => send(`/terms/${row.id}`, "DELETE", undefined)}><${Icon} name="bin" /></button>` },
  ];
  const show = (/** @type {any[]} */ rows) => html`<${Card} flush><${Table} label=${t("glossary.tab.terms")} columns=${columns} rows=${rows} rowKey=${(/** @type {any} */ row) => row.term_text} /><//>`;
  return html`<${AddText} label=${t("glossary.newTerm")} button=${t("glossary.addTerm")} send=${(/** @type {string} */ text) => send("/terms", "POST", { term_text: text })} />
    ${asked.value.length ? html`<${Some} rows=${asked.value} text=${(/** @type {any} */ row) => `${row.term_text} ${row.user_notes}`} show=${show} />` : html`<${Empty} title=${t("glossary.noTerms")} text=${t("glossary.noTermsText")} />`}
    ${shown && html`<${TermCard} id=${id} at=${at} term=${shown} close=${() => setShown("")} />`}`;
}

/** A list of texts: excluded or required. @param {{at: string, list: string, active: boolean, changed: () => void}} props */
function Listed({ at, list, active, changed }) {
  const asked = useAsked(at, { every: active ? 2 : 10 });
  if (!asked.value) return html`<${Waiting} problem=${asked.problem} again=${asked.again} />`;
  const again = () => (asked.again(), changed());
  const add = (/** @type {string} */ text) => act(() => ask(at, { method: "POST", body: { term_text: text } })).then((told) => (again(), told));
  const columns = [
    { name: "term", title: t("glossary.term"), cell: (/** @type {any} */ row) => row.term_text },
    { name: "source", title: t("glossary.source"), cell: (/** @type {any} */ row) => t(`glossary.source.${row.source}`) },
    { name: "added", title: t("glossary.added"), cell: (/** @type {any} */ row) => html`<${Time} at=${Date.parse(row.created_at) / 1000} />` },
    { name: "do", title: html`<span class="unseen">${t("glossary.actions")}</span>`, class: "cell-act", cell: (/** @type {any} */ row) => html`<button class="button bare" aria-label=${`${t("glossary.remove")} ${row.term_text}`} title=${t("glossary.remove")}
      onClick=${() => act(() => ask(`${at}/${row.id}`, { method: "DELETE" })).then(again)}><${Icon} name="bin" /></button>` },
  ];
  const show = (/** @type {any[]} */ rows) => html`<${Card} flush><${Table} label=${t(`glossary.terms.${list}`)} columns=${columns} rows=${rows} rowKey=${(/** @type {any} */ row) => row.id} /><//>`;
  return html`<p class="lead">${t(`glossary.lead.${list}`)}</p>
    <${AddText} label=${t("glossary.newTerm")} button=${t(list === "excluded" ? "glossary.exclude" : "glossary.require")} send=${add} />
    ${asked.value.items.length ? html`<${Some} rows=${asked.value.items} text=${(/** @type {any} */ row) => row.term_text} show=${show} />` : html`<${Empty} title=${t("glossary.noListed")} />`}`;
}
