// A long list that is read a page at a time, as far as somebody scrolls.
import { batch, signal } from "./view.js";
import { Problem } from "./api.js";

/**
 * @template T
 */
export class Pager {
  /** @param {(cursor: any) => Promise<{items: T[], next: any}>} fetchPage gives a page; `next` null: that was all for now */
  constructor(fetchPage) {
    this.fetchPage = fetchPage;
    this.rows = signal(/** @type {T[]} */ ([]));
    this.size = signal(0);
    this.ended = signal(false);
    this.problem = signal(/** @type {Problem|null} */ (null));
    this.loading = signal(false);
    /** @type {any} */
    this.cursor = null;
    this.wanted = 0;
    this.woken = false;
    this.closed = false;
  }

  /** Reads on until so many rows are there, or there are no more. @param {number} rows */
  async reach(rows) {
    this.wanted = Math.max(this.wanted, rows);
    if (this.loading.value) return;
    this.loading.value = true;
    try {
      while (!this.ended.value && this.size.value < this.wanted && !this.closed) await this.next();
      this.problem.value = null;
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      this.problem.value = error;
    } finally {
      this.loading.value = false;
    }
  }

  async next() {
    this.woken = false;
    const page = await this.fetchPage(this.cursor);
    if (this.closed) return;
    batch(() => {
      // One array for all pages: a copy of 100,000 rows with each page would be felt.
      for (const row of page.items) this.rows.peek().push(row);
      this.size.value = this.rows.peek().length;
      this.ended.value = page.next === null && !this.woken; // what was woken for may have come after this page was read
      if (page.next !== null) this.cursor = page.next;
    });
  }

  /** There may be more by now: reads on from where it was. @param {number} rows */
  wake(rows) {
    this.woken = true;
    this.ended.value = false;
    return this.reach(rows);
  }

  close() {
    this.closed = true;
  }
}
