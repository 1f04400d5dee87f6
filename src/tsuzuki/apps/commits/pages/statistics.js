// Additions and deletions by month and author: a chart, the figures, and a filter that is remembered for each project.
import { Card, Copy, Empty, Table, ask, go, html, number, place, t, useAsked, useEffect, useState } from "../../static/parts.js";
import { API, Frame, Until } from "./frame.js";

const COLOURS = ["#3b6fd4", "#e2803a", "#2f9e77", "#c2486b", "#8a63c7", "#b0932e", "#3aa0b8", "#7c6a5c"];
const GREY = "#9aa3af";
const FEW = 12;
const WIDTH = 1000, HEIGHT = 300, LEFT = 60, FOOT = 24;

/** What was chosen for a project the last time. @param {string} context */
function remembered(context) {
  try {
    return JSON.parse(localStorage.getItem(`tsuzuki.commits.authors.${context}`) ?? "[]");
  } catch {
    return [];
  }
}

export function Statistics() {
  const context = place.value.query.project ?? "";
  const [authors, setAuthors] = useState(/** @type {string[]} */ (remembered(context)));
  const [merges, setMerges] = useState(true);
  useEffect(() => setAuthors(remembered(context)), [context]);
  const projects = useAsked(`${API}/projects`);
  const query = { ...(context ? { project_id: context } : {}), ...(authors.length ? { author: authors } : {}), merges };
  const names = useAsked(`${API}/authors`, { query: context ? { project_id: context } : {} });
  const found = useAsked(`${API}/statistics`, { every: 30, query });
  const choose = (/** @type {string} */ name) => {
    const chosen = !name ? [] : authors.includes(name) ? authors.filter((each) => each !== name) : [...authors, name];
    localStorage.setItem(`tsuzuki.commits.authors.${context}`, JSON.stringify(chosen));
    setAuthors(chosen);
  };
  const everybody = names.value ?? [];
  const pick = (/** @type {any} */ event) => {
    const name = event.target.value;
    if (!everybody.includes(name) || authors.includes(name)) return;
    event.target.value = "";
    choose(name);
  };
  return html`<${Frame} current="statistics" actions=${html`<${CopyTable} query=${query} />`}>
    <div class="toolbar">
      <select style=${{ flex: "0 1 240px" }} aria-label=${t("commits.project")} value=${context} onChange=${(/** @type {any} */ event) => go("/apps/commits/statistics", event.target.value ? { project: event.target.value } : {})}>
        <option value="">${t("commits.all")}</option>
        ${(projects.value ?? []).map((/** @type {any} */ each) => html`<option key=${each.project_id} value=${each.project_id}>${each.name}</option>`)}
      </select>
      <label class="check"><input type="checkbox" checked=${merges} onChange=${() => setMerges(!merges)} /> ${t("commits.merges")}</label>
      <button class=${`button${authors.length ? "" : " primary"}`} onClick=${() => choose("")}>${t("commits.everyone")}</button>
      ${(everybody.length > FEW ? authors : everybody).map((/** @type {string} */ name) => html`<button key=${name} aria-pressed=${authors.includes(name)}
        class=${`button${authors.includes(name) ? " primary" : ""}`} onClick=${() => choose(name)}>${name}</button>`)}
      ${everybody.length > FEW && html`<input type="text" list="commits-authors" style=${{ flex: "0 1 220px" }} aria-label=${t("commits.author")} placeholder=${t("commits.addAuthor")} onInput=${pick} />
        <datalist id="commits-authors">${everybody.map((/** @type {string} */ name) => html`<option key=${name} value=${name} />`)}</datalist>`}
    </div>
    ${!found.value ? html`<${Until} problem=${found.problem} again=${found.again} />` : !found.value.rows.length ? html`<${Empty} title=${t(everybody.length ? "commits.noneFit" : "commits.noCommits")} text=${t(everybody.length ? "commits.noneFitText" : "commits.noCommitsText")} />`
      : html`<${Card} title=${`+${number(found.value.totals.additions)} −${number(found.value.totals.deletions)}`}><${Picture} found=${found.value} /><//>
        <${Card} flush><${Figures} found=${found.value} /><//>`}
  <//>`;
}

/** @param {{query: any}} props */
function CopyTable({ query }) {
  const [text, setText] = useState("");
  const name = JSON.stringify(query);
  useEffect(() => {
    let gone = false;
    ask(`${API}/statistics`, { query: { ...query, format: "tsv" } }).then((told) => gone || setText(told), () => {});
    return () => void (gone = true);
  }, [name]);
  return html`<span title=${t("commits.copy")}><${Copy} text=${text} /></span>`;
}

/** Additions above the line, deletions below it, stacked by author. @param {{found: any}} props */
function Picture({ found }) {
  const top = found.authors.slice(0, COLOURS.length);
  const shown = found.authors.length > top.length ? [...top, t("commits.others")] : top;
  const colour = (/** @type {number} */ at) => (at < top.length ? COLOURS[at] : GREY);
  const months = found.months.map((/** @type {string} */ month) => {
    const rows = found.rows.filter((/** @type {any} */ row) => row.month === month);
    return { month, parts: shown.map((/** @type {string} */ name, /** @type {number} */ at) => {
      const own = rows.filter((/** @type {any} */ row) => (at < top.length ? row.author === name : !top.includes(row.author)));
      const sum = (/** @type {string} */ field) => own.reduce((/** @type {number} */ all, /** @type {any} */ row) => all + row[field], 0);
      return { name, added: sum("additions"), deleted: sum("deletions") };
    }) };
  });
  const highest = (/** @type {string} */ field) => Math.max(...months.map((/** @type {any} */ each) => each.parts.reduce((/** @type {number} */ all, /** @type {any} */ part) => all + part[field], 0)));
  const up = highest("added"), down = highest("deleted"), room = HEIGHT - FOOT, scale = room / Math.max(up + down, 1);
  const slot = (WIDTH - LEFT) / months.length, width = Math.min(slot * 0.72, 48), every = Math.ceil(months.length / 12);
  const bars = months.flatMap((/** @type {any} */ each, /** @type {number} */ at) => {
    const x = LEFT + slot * (at + 0.5) - width / 2;
    let above = 0, below = 0;
    return each.parts.flatMap((/** @type {any} */ part, /** @type {number} */ who) => {
      const told = html`<title>${`${each.month} ${part.name}: +${number(part.added)} −${number(part.deleted)}`}</title>`;
      const one = html`<rect x=${x} width=${width} y=${(up - above - part.added) * scale} height=${part.added * scale} fill=${colour(who)}>${told}</rect>`;
      const other = html`<rect x=${x} width=${width} y=${(up + below) * scale} height=${part.deleted * scale} fill=${colour(who)} fill-opacity="0.5">${told}</rect>`;
      above += part.added;
      below += part.deleted;
      return [one, other];
    });
  });
  const labels = months.map((/** @type {any} */ each, /** @type {number} */ at) => at % every === 0 && html`<text x=${LEFT + slot * (at + 0.5)} y=${HEIGHT - 6} text-anchor="middle">${each.month}</text>`);
  return html`<svg viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label=${t("commits.statistics")} font-size="12" fill="currentColor">
      <line x1=${LEFT} x2=${WIDTH} y1=${up * scale} y2=${up * scale} stroke="currentColor" stroke-opacity="0.4" />
      <text x=${LEFT - 8} y="12" text-anchor="end">+${number(up)}</text>${down > 0 && html`<text x=${LEFT - 8} y=${room} text-anchor="end">−${number(down)}</text>`}
      ${bars}${labels}
    </svg>
    <p class="legend">${shown.map((/** @type {string} */ name, /** @type {number} */ at) => html`<span key=${name} class="legend-entry"><svg width="11" height="11" aria-hidden="true">
      <rect width="11" height="11" rx="2" fill=${colour(at)} /></svg> ${name}</span>`)}</p>`;
}

/** @param {{found: any}} props */
function Figures({ found }) {
  const figure = (/** @type {string} */ name, /** @type {string} */ field) => ({ name: field, title: t(`commits.${name}`), class: "figure", cell: (/** @type {any} */ row) => number(row[field]) });
  const columns = [
    { name: "month", title: t("commits.month"), cell: (/** @type {any} */ row) => row.month },
    { name: "author", title: t("commits.author"), cell: (/** @type {any} */ row) => row.author },
    figure("count", "commits"), figure("additions", "additions"), figure("deletions", "deletions"), figure("missing", "missing_stats"),
  ];
  const rows = [...found.rows].reverse();
  return html`<${Table} label=${t("commits.statistics")} columns=${columns} rows=${rows} rowKey=${(/** @type {any} */ row) => `${row.month} ${row.author}`} />`;
}
