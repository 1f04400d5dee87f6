// Events: the journal of a run, fact by fact.
import { html, useEffect, useMemo, useRef, useState } from "../core/view.js";
import { ask } from "../core/api.js";
import { commands } from "../core/commands.js";
import { Pager } from "../core/pager.js";
import { clockTime, preciseTime } from "../core/times.js";
import { number, t, word } from "../core/words.js";
import { CommandLine } from "../parts/command.js";
import { Dialog } from "../parts/dialog.js";
import { Stale, Waiting } from "../parts/states.js";
import { LongTable } from "../parts/table.js";
import { Value } from "../parts/value.js";
import { useGrowth } from "./run-items.js";

const PAGE = 1000;
/** @type {Record<string, string>} */
const TONES = {
  Submitted: "active", Claimed: "active", Released: "warn", ResumeAsked: "active",
  StepFailed: "bad", ItemFailed: "bad", RunCompleted: "good", RunFailed: "bad",
  CancelAsked: "warn", CancelSeen: "warn", RunCancelled: "warn",
};

/** @param {{run: Api.RunSnapshot}} props */
export function EventsTab({ run }) {
  const [open, setOpen] = useState(/** @type {Api.Fact|null} */ (null));
  const wanted = useRef(200);
  const names = useMemo(() => /** @type {Map<string, string>} */ (new Map()), [run.run_id]);
  /** @type {Pager<Api.Fact>} */
  const pager = useMemo(
    () =>
      new Pager(async (after) => {
        const page = await ask(`/runs/${run.run_id}/facts`, { query: { after: after ?? 0, limit: PAGE } });
        const last = page.items.at(-1)?.position;
        if (last) pager.cursor = last;
        for (const fact of page.items) if (fact.map) names.set(fact.step, fact.name); // the facts of its items do not name it
        return { items: page.items, next: page.next_after };
      }),
    [run.run_id],
  );
  useEffect(() => () => pager.close(), [pager]);
  useGrowth(pager, run.position, wanted);
  const need = (/** @type {number} */ rows) => {
    wanted.current = rows;
    if (!pager.ended.value) void pager.reach(rows);
  };
  const problem = pager.problem.value;
  if (!pager.size.value) return html`<${Waiting} problem=${problem} again=${() => pager.reach(200)} />`;
  return html`<${Stale} problem=${problem} />
    <${LongTable} narrow="52px 118px minmax(0, 1fr)" label=${t("tab.events")} columns=${columns(names)} rows=${pager.rows.value}
      size=${pager.size.value} total=${run.position} rowKey=${(/** @type {Api.Fact} */ row) => row.position} need=${need}
      open=${setOpen} selected=${open?.position ?? null} />
    ${open && html`<${Dialog} side title=${`${kindOf(open)} · ${number(open.position)}`} close=${() => setOpen(null)}>
      <${Value} label=${t("events.fact")} value=${open} /><//>`}
    <${CommandLine} line=${commands.events(run.number)} />`;
}

/** What a fact is about, in a line. @param {Api.Fact} fact @param {Map<string, string>} names those of maps, by their step */
function about(fact, names) {
  const who = [fact.name || names.get(fact.step ?? ""), fact.key && `[${fact.key}]`].filter(Boolean).join("");
  return [who, fact.worker, fact.by, fact.reason, fact.error && `${fact.error.type}: ${fact.error.message}`].filter(Boolean).join(" · ");
}

/** @param {Api.Fact} fact */
const kindOf = (fact) => word(`events.${fact.kind}`) ?? fact.kind;

/** @param {Map<string, string>} names */
const columns = (names) => [
  { name: "position", title: t("column.position"), width: "72px", class: "figure", cell: (/** @type {Api.Fact} */ row) => number(row.position) },
  { name: "kind", title: t("column.kind"), width: "130px", cell: (/** @type {Api.Fact} */ row) =>
    html`<span class=${`fact-kind tone-${TONES[row.kind] ?? "quiet"}`} title=${row.kind}>${kindOf(row)}</span>` },
  { name: "about", title: t("column.about"), width: "minmax(0, 1fr)", cell: (/** @type {Api.Fact} */ row) => html`<span class="clip">
    ${about(row, names)}</span>` },
  { name: "attempt", title: t("column.attempt"), width: "84px", class: "figure wide-only", cell: (/** @type {Api.Fact} */ row) => number(row.attempt ?? 1) },
  { name: "at", title: t("column.at"), width: "120px", class: "wide-only", cell: (/** @type {Api.Fact} */ row) =>
    html`<time title=${clockTime(row.at, "local")}>${preciseTime(row.at)}</time>` },
];
