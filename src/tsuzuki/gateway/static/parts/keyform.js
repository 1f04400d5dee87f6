// The API key of this session.
import { html, useId, useState } from "../core/view.js";
import { access, ask } from "../core/api.js";
import { apiKey } from "../core/preferences.js";
import { t } from "../core/words.js";
import { tell } from "./dialog.js";
import { Icon } from "./icons.js";

/** Takes an API key; it is kept in this tab, until it is closed. @param {{done?: () => void}} props */
export function KeyForm({ done }) {
  const name = useId();
  const [text, setText] = useState("");
  const save = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (!text.trim()) return;
    apiKey.value = text.trim();
    access.value = "open";
    setText("");
    void ask("/overview").then(() => tell(t("settings.key.saved")), () => {}).then(done);
  };
  const forget = () => {
    apiKey.value = "";
    void ask("/overview").catch(() => {});
  };
  return html`<form class="key-form" onSubmit=${save}>
    <div class="field"><label for=${name}>${t("settings.key")}</label><input id=${name} name="key" type="password"
      autocomplete="off" spellcheck=${false} placeholder="tsz_…" value=${text}
      onInput=${(/** @type {any} */ event) => setText(event.currentTarget.value)} aria-describedby=${`${name}-state`} /></div>
    <p class="hint" id=${`${name}-state`}>${access.value === "open" ? t(apiKey.value ? "settings.key.set" : "settings.key.unset") : t("settings.key.text")}</p>
    <div class="form-foot"><button class="button primary"><${Icon} name="key" />${t("settings.key.use")}</button>${apiKey.value &&
      html`<button type="button" class="button" onClick=${forget}>${t("settings.key.forget")}</button>`}</div>
  </form>`;
}
