// A field to search by.
import { html, useEffect, useRef, useState } from "../core/view.js";

/** A field whose text counts a moment after the last key. @param {{value: string, label: string, set: (text: string) => void, more?: any}} props */
export function LateInput({ value, label, set, more = {} }) {
  const [text, setText] = useState(value);
  const timer = useRef(/** @type {any} */ (0));
  const told = useRef(value);
  useEffect(() => {
    if (value === told.current) return; // it is from here: what was typed since counts more
    clearTimeout(timer.current);
    setText((told.current = value));
  }, [value]);
  useEffect(() => () => clearTimeout(timer.current), []); // whoever has left searches no more
  const change = (/** @type {any} */ event) => {
    const typed = event.currentTarget.value;
    setText(typed);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => set((told.current = typed.trim())), 250);
  };
  return html`<input type="text" placeholder=${label} aria-label=${label} autocomplete="off" maxlength="200" ...${more}
    value=${text} onInput=${change} />`;
}
