// A field for notes that saves itself: a moment after the last key, and when one leaves it.
import { Problem, html, t, useEffect, useRef, useState } from "../../static/parts.js";
import { said } from "./frame.js";

const PAUSE = 600; // milliseconds

/** @param {{value: string, label: string, save: (text: string) => Promise<unknown>}} props */
export function Notes({ value, label, save }) {
  const [text, setText] = useState(value);
  const [told, setTold] = useState("");
  const kept = useRef({ text: value, saved: value, timer: /** @type {any} */ (0), work: Promise.resolve(), save });
  kept.current.save = save;
  const flush = () => {
    const now = kept.current;
    clearTimeout(now.timer);
    now.work = now.work.then(async () => {
      const wanted = now.text;
      if (wanted === now.saved) return;
      setTold(t("glossary.saving"));
      try {
        await now.save(wanted);
        now.saved = wanted;
        if (now.text === wanted) setTold(t("glossary.saved"));
      } catch (error) {
        if (!(error instanceof Problem)) throw error;
        setTold(`${t("glossary.notSaved")} ${error.status ? said(error.message) : t("problem.unreachable")}`);
      }
    });
  };
  const change = (/** @type {any} */ event) => {
    const now = kept.current;
    now.text = event.currentTarget.value;
    setText(now.text);
    setTold("");
    clearTimeout(now.timer);
    now.timer = setTimeout(flush, PAUSE);
  };
  useEffect(() => {
    const now = kept.current;
    if (now.text !== now.saved) return; // what is being written counts more than what comes
    now.text = now.saved = value;
    setText(value);
  }, [value]);
  useEffect(() => flush, []);
  return html`<div class="glossary-notes">
    <textarea rows="1" maxlength="10000" aria-label=${label} value=${text} onInput=${change} onBlur=${flush}></textarea>
    <small role="status">${told}</small>
  </div>`;
}
