// The store at a glance, asked for once for all who show a part of it.
import { signal, useEffect } from "./view.js";
import { Problem, access, ask } from "./api.js";
import { repeat } from "./live.js";
import { apiKey } from "./preferences.js";

const EVERY = 2; // seconds

/** The last answer, and what went wrong since. */
export const glance = signal(/** @type {{value: Api.Glance|null, problem: Problem|null}} */ ({ value: null, problem: null }));

/** Keeps looking; the frame of the page does, for as long as it is there. */
export function useGlances() {
  const key = apiKey.value, open = access.value === "open";
  useEffect(() => {
    if (!open) return undefined;
    return repeat(EVERY, async (stopped) => {
      try {
        glance.value = { value: await ask("/overview", { signal: stopped }), problem: null };
      } catch (error) {
        if (!(error instanceof Problem)) throw error;
        glance.value = { ...glance.value, problem: error };
      }
    });
  }, [key, open]);
}
