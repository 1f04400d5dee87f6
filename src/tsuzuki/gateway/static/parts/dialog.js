// Windows above the page: native dialogs, which keep the focus and close with Escape.
import { html, signal, useEffect, useId, useRef } from "../core/view.js";
import { t } from "../core/words.js";
import { Icon } from "./icons.js";

/** @param {{title: string, close: () => void, side?: boolean, wide?: boolean, children?: any, foot?: any}} props `side`: at the edge, full height */
export function Dialog({ title, close, side = false, wide = false, children, foot }) {
  const element = useRef(/** @type {HTMLDialogElement|null} */ (null));
  const name = useId();
  useEffect(() => {
    const dialog = element.current;
    if (dialog && !dialog.open) dialog.showModal();
  }, []);
  const beside = (/** @type {MouseEvent} */ event) => event.target === element.current && close();
  return html`<dialog ref=${element} class=${`dialog${side ? " edge" : ""}${wide ? " wide" : ""}`} aria-labelledby=${name} onClose=${close} onClick=${beside}>
    <div class="dialog-frame">
      <header class="dialog-head">
        <h2 id=${name}>${title}</h2>
        <button class="button bare" aria-label=${t("action.close")} onClick=${close}><${Icon} name="close" /></button>
      </header>
      <div class="dialog-body">${children}</div>
      ${foot && html`<footer class="dialog-foot">${foot}</footer>`}
    </div>
  </dialog>`;
}

/** @type {import("../vendor/signals.js").Signal<{id: number, text: string, tone: string}[]>} */
const notes = signal([]);
let count = 0;

/** Tells something in passing. @param {string} text @param {"good"|"bad"} [tone] */
export function tell(text, tone = "good") {
  const id = (count += 1);
  notes.value = [...notes.value.slice(-3), { id, text, tone }];
  setTimeout(() => (notes.value = notes.value.filter((note) => note.id !== id)), tone === "bad" ? 9000 : 4500);
}

/** What was told in passing. */
export function Notes() {
  return html`<div class="notes" role="status" aria-live="polite">
    ${notes.value.map((note) => html`<p key=${note.id} class=${`note tone-${note.tone}`}><${Icon} name=${note.tone === "bad" ? "warn" : "done"} />${note.text}</p>`)}
  </div>`;
}
