// A window on a long list: only the rows that are seen, and a few around them, exist.
import { useLayoutEffect, useRef, useState } from "../core/view.js";

/**
 * Knows which rows a frame shows: `first` and those before `last`, with some `beyond` them; what is seen ends before `end`.
 * @param {number} row how high one is @param {number} beyond how many above and below what is seen @param {number} guess how high the frame is at first
 */
export function useWindow(row, beyond, guess) {
  const frame = useRef(/** @type {HTMLDivElement|null} */ (null));
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(guess);
  useLayoutEffect(() => {
    const element = frame.current;
    if (!element) return undefined;
    const watch = new ResizeObserver(() => setHeight(element.clientHeight));
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  const end = Math.ceil((top + height) / row);
  /** @param {any} event */
  const scrolled = (event) => setTop(event.currentTarget.scrollTop);
  return { frame, height, end, first: Math.max(Math.floor(top / row) - beyond, 0), last: end + beyond, scrolled };
}
