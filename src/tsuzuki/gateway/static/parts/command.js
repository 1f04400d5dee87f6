// The command line of an action, ready to be copied.
import { html, useState } from "../core/view.js";
import { t } from "../core/words.js";
import { Icon } from "./icons.js";
import { tell } from "./dialog.js";

/** Copies text. @param {string} text */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    tell(t("copy.failed"), "bad");
    return false;
  }
}

/** @param {{text: string, label?: string, bare?: boolean}} props */
export function Copy({ text, label = t("action.copy"), bare = true }) {
  const [copied, setCopied] = useState(false);
  const press = async () => {
    if (!(await copy(text))) return;
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return html`<button type="button" class=${`button ${bare ? "bare" : ""}`} onClick=${press} aria-label=${label} title=${label}>
    <${Icon} name=${copied ? "done" : "copy"} />${!bare && label}
  </button>`;
}

/** @param {{line: string}} props */
export function CommandLine({ line }) {
  return html`<div class="command"><${Icon} name="terminal" label=${t("command.label")} /><code tabindex="0"
    aria-label=${t("command.label")}>${line}</code><${Copy} text=${line} /></div>`;
}
