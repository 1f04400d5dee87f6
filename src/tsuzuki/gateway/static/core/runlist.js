// The live list of runs: pages by cursor, changes by `updated_after`; a row keeps its place while it changes.
import { batch, signal } from "./view.js";
import { Problem, ask } from "./api.js";
import { paged } from "./place.js";
import { keep, recall, repeat } from "./live.js";
import { stateOf } from "./shapes.js";

/** @typedef {import("./types.js").RunSummary} RunSummary */
/** @typedef {{status: string[], flow: string, tag: string, label: string, text: string, since: number, from: number, to: number}} Filters */

const PAGE = 50;
const NEWS = 200;
const EVERY = 1.5; // seconds
const WHOLE = 6; // so many looks for changes, then one at the first page: it tells of runs that were removed or left by who held them
const MOST_PAGES = 10;
export const MOST_CHOSEN = 2000;

export class RunList {
  /** @param {Filters} filters */
  constructor(filters) {
    this.filters = filters;
    this.rows = signal(/** @type {Api.RunSummary[]} */ ([]));
    this.problem = signal(/** @type {Problem|null} */ (null));
    this.loading = signal(true);
    this.cursor = signal(/** @type {string|null} */ (null));
    this.again = () => {};
    this.newest = 0;
    this.looks = 0;
    this.name = `list ${JSON.stringify(filters)}`;
    const before = recall(this.name);
    if (before) {
      this.rows.value = before.rows;
      this.cursor.value = before.cursor;
      this.newest = before.newest;
      this.loading.value = false;
    }
  }

  /** Begins to look; gives what ends it. */
  open() {
    const stop = repeat(EVERY, (stopped) => this.look(stopped), (again) => (this.again = () => ((this.looks = 0), again())));
    return () => {
      stop();
      if (!this.loading.value) keep(this.name, { rows: this.rows.value, cursor: this.cursor.value, newest: this.newest });
    };
  }

  /** @param {AbortSignal} stopped */
  async look(stopped) {
    try {
      if (this.loading.value) await this.first(stopped);
      else if (this.looks % WHOLE === 0) await this.whole(stopped);
      await this.news(stopped);
      this.looks += 1;
      this.problem.value = null;
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      this.problem.value = error;
    }
  }

  /** What every question says; statuses are looked at here when changes are asked for, because a run leaves its own. */
  get query() {
    const { flow, tag, label, text } = this.filters;
    return { flow, tag, label, text };
  }

  /** @param {AbortSignal} stopped */
  async first(stopped) {
    const head = await ask(paged("/runs", { limit: 1 }), { signal: stopped });
    const page = await this.page("", stopped);
    batch(() => {
      this.newest = Math.max(head.items[0]?.updated_at ?? 0, this.since);
      this.rows.value = page.items;
      this.cursor.value = page.next_cursor;
      this.loading.value = false;
      this.looks = 1;
    });
  }

  get since() {
    return this.filters.since ? Date.now() / 1000 - this.filters.since : this.filters.from;
  }

  /** @param {string} cursor @param {AbortSignal} [stopped] @param {number} [limit] @returns {Promise<{items: Api.RunSummary[], next_cursor: string|null}>} */
  page(cursor, stopped, limit = PAGE) {
    const query = { ...this.query, status: this.filters.status, updated_after: this.since || undefined, updated_before: this.filters.to || undefined, limit, cursor };
    return ask(paged("/runs", query), { signal: stopped });
  }

  /** Reads all pages, up to a number of runs. */
  async all() {
    while (this.cursor.value !== null && this.rows.value.length < MOST_CHOSEN) await this.more(NEWS);
  }

  /** Reads the next page. */
  async more(limit = PAGE) {
    if (this.cursor.value === null) return;
    const page = await this.page(this.cursor.value, undefined, limit);
    const known = new Set(this.rows.value.map((run) => run.run_id));
    batch(() => {
      this.rows.value = [...this.rows.value, ...page.items.filter((run) => !known.has(run.run_id))];
      this.cursor.value = page.next_cursor;
    });
  }

  /** @param {AbortSignal} stopped */
  async news(stopped) {
    /** @type {Map<string, Api.RunSummary>} */
    const changed = new Map();
    let cursor = "";
    for (let pages = 0; pages < MOST_PAGES; pages += 1) {
      const page = await ask(paged("/runs", { ...this.query, updated_after: this.newest, limit: NEWS, cursor }), { signal: stopped });
      for (const run of page.items) if (!changed.has(run.run_id)) changed.set(run.run_id, run);
      if (page.next_cursor === null) break;
      cursor = page.next_cursor;
    }
    if (changed.size) this.merge(changed);
  }

  /** @param {Map<string, Api.RunSummary>} changed */
  merge(changed) {
    const wanted = new Set(this.filters.status);
    const { to } = this.filters;
    const fits = (/** @type {Api.RunSummary} */ run) => (!wanted.size || wanted.has(run.status) || wanted.has(stateOf(run))) && (!to || run.updated_at <= to);
    const stay = this.rows.value.map((run) => {
      const newer = changed.get(run.run_id) ?? run;
      changed.delete(run.run_id);
      this.newest = Math.max(this.newest, newer.updated_at);
      return newer;
    });
    for (const run of changed.values()) this.newest = Math.max(this.newest, run.updated_at);
    const added = [...changed.values()].filter(fits).sort((one, other) => other.number - one.number);
    this.rows.value = [...added, ...stay.filter(fits)];
  }

  /** Drops rows that are gone, and sees the others as they are: who held them may have left without a word. @param {AbortSignal} stopped */
  async whole(stopped) {
    const page = await this.page("", stopped);
    const there = new Map(page.items.map((run) => [run.run_id, run]));
    const oldest = page.next_cursor === null ? 0 : Math.min(...page.items.map((run) => run.updated_at));
    const kept = this.rows.value.filter((run) => there.has(run.run_id) || run.updated_at < oldest);
    this.rows.value = kept.map((run) => there.get(run.run_id) ?? run);
  }

  /** Takes rows out at once that were removed here. @param {Set<string>} gone */
  drop(gone) {
    this.rows.value = this.rows.value.filter((run) => !gone.has(run.run_id));
  }
}
