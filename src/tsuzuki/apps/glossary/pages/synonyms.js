// Groups of synonyms: one term of each stands in the glossary, the others are its aliases.
import { Card, Empty, Icon, Waiting, ask, html, t, useAsked, useState } from "../../static/parts.js";
import { act, typed } from "./frame.js";
import { AddText } from "./terms.js";

/** @param {{at: string}} props */
export function Synonyms({ at }) {
  const own = `${at}/synonym-groups`;
  const asked = useAsked(own, { every: 10 });
  if (!asked.value) return html`<${Waiting} problem=${asked.problem} again=${asked.again} />`;
  const send = (/** @type {string} */ path, /** @type {string} */ method, /** @type {any} */ body) => act(() => ask(`${own}${path}`, { method, body })).then((told) => (asked.again(), told));
  return html`<p class="lead">${t("glossary.lead.synonyms")}</p>
    <${NewGroup} send=${send} />
    ${asked.value.items.length ? asked.value.items.map((/** @type {any} */ group) => html`<${Group} key=${group.id} group=${group} send=${send} />`) : html`<${Empty} title=${t("glossary.noGroups")} />`}`;
}

/** @param {{send: (path: string, method: string, body?: any) => Promise<any>}} props */
function NewGroup({ send }) {
  const [primary, setPrimary] = useState("");
  const [others, setOthers] = useState("");
  const make = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const members = [primary, ...others.split(/[,、，]/)].map((text) => text.trim()).filter(Boolean);
    if ((await send("", "POST", { primary_term_text: primary.trim(), member_texts: [...new Set(members)] })) === null) return;
    setPrimary("");
    setOthers("");
  };
  return html`<form class="toolbar" onSubmit=${make}>
    <input type="text" style=${{ flex: "1 1 160px" }} required maxlength="200" autocomplete="off" aria-label=${t("glossary.primary")} placeholder=${t("glossary.primary")} value=${primary} onInput=${typed(setPrimary)} />
    <input type="text" style=${{ flex: "2 1 220px" }} required autocomplete="off" aria-label=${t("glossary.others")} placeholder=${t("glossary.othersHint")} value=${others} onInput=${typed(setOthers)} />
    <button class="button">${t("glossary.makeGroup")}</button>
  </form>`;
}

/** @param {{group: any, send: (path: string, method: string, body?: any) => Promise<any>}} props */
function Group({ group, send }) {
  const others = group.members.filter((/** @type {any} */ member) => member.term_text !== group.primary_term_text);
  const remove = html`<button class="button bare" aria-label=${`${t("glossary.remove")} ${group.primary_term_text}`} title=${t("glossary.remove")} onClick=${() => send(`/${group.id}`, "DELETE")}><${Icon} name="bin" /></button>`;
  return html`<${Card} title=${group.primary_term_text} actions=${remove}>
    <ul>${others.map((/** @type {any} */ member) => html`<li key=${member.id} class="toolbar"><span>${member.term_text}</span>
      <button class="button small" aria-label=${`${t("glossary.makePrimary")} ${member.term_text}`} onClick=${() => send(`/${group.id}`, "PATCH", { primary_term_text: member.term_text })}>${t("glossary.makePrimary")}</button>
      <button class="button bare" aria-label=${`${t("glossary.remove")} ${member.term_text}`} title=${t("glossary.remove")} onClick=${() => send(`/${group.id}/members/${member.id}`, "DELETE")}><${Icon} name="bin" /></button></li>`)}</ul>
    <${AddText} label=${t("glossary.synonym")} button=${t("glossary.addTerm")} send=${(/** @type {string} */ text) => send(`/${group.id}/members`, "POST", { term_text: text })} />
  <//>`;
}
