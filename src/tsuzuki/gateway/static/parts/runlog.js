// The log of one run, read a page at a time and followed while the run goes on.
import { html, useEffect, useMemo } from "../core/view.js";
import { ask } from "../core/api.js";
import { Pager } from "../core/pager.js";
import { repeat } from "../core/live.js";
import { t } from "../core/words.js";
import { LogPanel } from "./logpanel.js";
import { Failure, Stale } from "./states.js";

const PAGE = 1000;
const EVERY = 1; // second

/** @param {{run: string, live: boolean}} props the run's id or number; whether more may come */
export function RunLog({ run, live }) {
  /** @type {Pager<Api.LogLine>} */
  const pager = useMemo(
    () =>
      new Pager(async (after) => {
        const page = await ask(`/runs/${encodeURIComponent(run)}/logs`, { query: { after: after ?? 0, limit: PAGE } });
        // A page that is not full is the end for now; what comes later goes on after it.
        pager.cursor = page.next_after;
        return { items: page.items, next: page.items.length === PAGE ? page.next_after : null };
      }),
    [run],
  );
  useEffect(() => () => pager.close(), [pager]);
  useEffect(() => repeat(live ? EVERY : 0, () => pager.wake(Infinity)), [pager, live]);
  const problem = pager.problem.value;
  if (problem && !pager.size.value) return html`<${Failure} problem=${problem} again=${() => pager.wake(Infinity)} />`;
  return html`<${Stale} problem=${problem} /><${LogPanel} lines=${pager.rows.value} size=${pager.size.value} live=${live} label=${t("tab.logs")} />`;
}
