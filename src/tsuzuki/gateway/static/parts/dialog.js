// Windows above the page: native dialogs, which keep the focus and close with Escape.
import { html, signal, useId, useLayoutEffect, useRef, useState } from "../core/view.js";
import { Problem } from "../core/api.js";
import { half, t } from "../core/words.js";
import { Icon } from "./icons.js";
import { Explained } from "./states.js";

/** @param {{title: string, close: () => void, side?: boolean, children?: any, foot?: any}} props `side`: at the edge, full height */
export function Dialog({ title, close, side = false, children, foot }) {
  const element = useRef(/** @type {HTMLDialogElement|null} */ (null));
  const name = useId();
  // Before anybody sees it: a key that is pressed in this moment is for the dialog.
  useLayoutEffect(() => {
    const dialog = element.current;
    if (dialog && !dialog.open) dialog.showModal();
  }, []);
  const beside = (/** @type {MouseEvent} */ event) => event.target === element.current && close();
  return html`<dialog ref=${element} class=${`dialog${side ? " edge" : ""}`} aria-labelledby=${name} onClose=${close} onClick=${beside}>
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

/**
 * Asks once more before something is done; what went wrong is told in place.
 * @param {{title: string, button: string, danger?: boolean, may?: boolean, send: () => Promise<unknown>, close: () => void, children?: any}} props
 */
export function Confirm({ title, button, danger = false, may = true, send, close, children }) {
  const [busy, setBusy] = useState(false);
  const [wrong, setWrong] = useState(/** @type {Problem|null} */ (null));
  const confirm = async () => {
    setBusy(true);
    try {
      await send();
      close();
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      setWrong(error);
      setBusy(false);
    }
  };
  const foot = html`<button class="button" onClick=${close}>${t("action.back")}</button>
    <button class=${`button ${danger ? "danger" : "primary"}`} disabled=${busy || !may} onClick=${confirm}>${button}</button>`;
  return html`<${Dialog} title=${title} close=${close} foot=${foot}>${children}${wrong && html`<${Explained} problem=${wrong} />`}<//>`;
}

/** @type {Api.Signal<{id: number, text: string, tone: string}[]>} */
const notes = signal([]);
let count = 0;

/** Tells something in passing. @param {string} text @param {"good"|"bad"} [tone] */
export function tell(text, tone = "good") {
  const id = (count += 1);
  notes.value = [...notes.value.slice(-3), { id, text, tone }];
  setTimeout(() => (notes.value = notes.value.filter((note) => note.id !== id)), tone === "bad" ? 9000 : 4500);
}

/**
 * Does something, and tells in passing where it cannot be done: then it gives null.
 * @param {() => Promise<any>} work @param {string} [done] @param {(text: string) => string} [said] what the gateway says, for who reads
 */
export async function act(work, done, said = half) {
  try {
    const answer = await work();
    if (done) tell(done);
    return answer;
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    tell(error.status ? said(error.message) : t("problem.unreachable"), "bad");
    return null;
  }
}

/** What was told in passing. */
export function Notes() {
  return html`<div class="notes" role="status" aria-live="polite">
    ${notes.value.map((note) => html`<p key=${note.id} class=${`note tone-${note.tone}`}>
      <${Icon} name=${note.tone === "bad" ? "warn" : "done"} />${note.text}</p>`)}
  </div>`;
}
