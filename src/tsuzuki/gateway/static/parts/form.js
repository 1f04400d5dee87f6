// A form made from a JSON schema: the state of it, and its fields.
import { html, signal, useEffect, useId, useRef, useState } from "../core/view.js";
import { t } from "../core/words.js";
import { fieldsOf, read, written } from "./schema.js";

/** @typedef {import("./schema.js").Field} Field */

/** What is typed into a form, and the values that it makes. */
export class FormState {
  /** @param {any} schema @param {Record<string, any>} [initial] values that are filled in */
  constructor(schema, initial = {}) {
    this.fields = fieldsOf(schema ?? {});
    this.typed = signal(/** @type {Record<string, string|boolean>} */ ({}));
    this.problems = signal(/** @type {Record<string, string>} */ ({}));
    for (const field of this.fields) {
      const given = field.path.reduce((/** @type {any} */ at, name) => at?.[name], initial);
      this.typed.value[field.name] = written(field, given === undefined ? field.fallback : given);
    }
  }

  /** @param {Field} field @param {string|boolean} text */
  type(field, text) {
    this.typed.value = { ...this.typed.value, [field.name]: text };
    if (this.problems.value[field.name]) this.problems.value = { ...this.problems.value, [field.name]: "" };
  }

  /** Gives the values, without those that are as the flow has them anyway; and what does not fit, by field. */
  read() {
    /** @type {Record<string, any>} */
    const values = {};
    /** @type {Record<string, string>} */
    const problems = {};
    for (const field of this.fields) {
      const typed = this.typed.value[field.name];
      if (!field.required && typed === written(field, field.fallback)) continue;
      const { value, problem } = read(field, typed);
      if (problem) problems[field.name] = t(problem);
      else if (value !== undefined) put(values, field.path, value);
    }
    return { values, problems, fits: !Object.keys(problems).length };
  }

  /** Shows what the gateway found wrong. @param {{loc: (string|number)[], msg: string}[]} found */
  refuse(found) {
    /** @type {Record<string, string>} */
    const problems = {};
    for (const one of found) {
      const place = one.loc.map(String);
      const field = this.fields.find((each) => place.join(".").endsWith(each.name)) ?? this.fields.find((each) => place.includes(each.path[0]));
      if (field) problems[field.name] = one.msg;
    }
    this.problems.value = problems;
    return Object.keys(problems).length > 0;
  }
}

/** @param {Record<string, any>} values @param {string[]} path @param {any} value */
function put(values, path, value) {
  const at = path.slice(0, -1).reduce((inner, name) => (inner[name] ??= {}), values);
  at[path[path.length - 1]] = value;
}

/** The fields of a form. @param {{form: FormState}} props */
export function SchemaFields({ form }) {
  if (!form.fields.length) return html`<p class="hint">${t("form.none")}</p>`;
  return html`<div class="fields">${form.fields.map((field) => html`<${SchemaField} key=${field.name} field=${field} form=${form} />`)}</div>`;
}

/** @param {{field: Field, form: FormState}} props */
function SchemaField({ field, form }) {
  const name = useId();
  const problem = form.problems.value[field.name];
  const told = [field.text && `${name}-text`, problem && `${name}-problem`].filter(Boolean).join(" ") || undefined;
  const shared = { id: name, name: field.name, "aria-describedby": told, "aria-invalid": problem ? "true" : undefined, "aria-required": field.required };
  const input = html`<${Input} field=${field} shared=${shared} typed=${form.typed.value[field.name]}
    type=${(/** @type {string|boolean} */ text) => form.type(field, text)} />`;
  return html`<div class=${`field kind-${field.kind}${problem ? " wrong" : ""}`}>
    <label for=${name}>${field.title}${field.required && html`<span class="needed" title=${t("form.required")}> *</span>`}</label>
    ${input}
    ${field.text && html`<p class="hint" id=${`${name}-text`}>${field.text}</p>`}
    ${hintOf(field) && html`<p class="hint">${hintOf(field)}</p>`}
    ${problem && html`<p class="wrong-text" id=${`${name}-problem`} role="alert">${problem}</p>`}
  </div>`;
}

/** @param {Field} field */
function hintOf(field) {
  if (field.kind === "lines") return t("form.lines");
  if (field.kind === "json") return t("form.asJson");
  if (field.low !== undefined && field.high !== undefined) return t("form.between", { low: field.low, high: field.high });
  return "";
}

/** @param {{field: Field, shared: any, typed: string|boolean, type: (text: string|boolean) => void}} props */
function Input({ field, shared, typed, type }) {
  const change = (/** @type {any} */ event) => type(event.currentTarget.value);
  switch (field.kind) {
    case "switch":
      return html`<input ...${shared} type="checkbox" class="switch" checked=${typed === true}
        onChange=${(/** @type {any} */ event) => type(event.currentTarget.checked)} />`;
    case "choice":
      return html`<select ...${shared} value=${typed} onChange=${change}>
        ${!field.required && html`<option value="">–</option>`}
        ${field.choices.map((choice) => html`<option key=${JSON.stringify(choice)} value=${JSON.stringify(choice, null, 2)}>
          ${String(choice)}</option>`)}
      </select>`;
    case "lines":
    case "json":
    case "long":
      return html`<textarea ...${shared} rows=${field.kind === "lines" ? 4 : 3} spellcheck=${false} value=${typed} onInput=${change}></textarea>`;
    case "whole":
    case "number":
      return html`<input ...${shared} type="text" inputmode=${field.kind === "whole" ? "numeric" : "decimal"} autocomplete="off"
        value=${typed} onInput=${change} />`;
    default:
      return html`<input ...${shared} type="text" autocomplete="off" placeholder=${field.format ?? ""} value=${typed} onInput=${change} />`;
  }
}

/** A field whose text counts a moment after the last key. @param {{value: string, label: string, set: (text: string) => void, more?: any}} props */
export function LateInput({ value, label, set, more = {} }) {
  const [text, setText] = useState(value);
  const timer = useRef(/** @type {any} */ (0));
  useEffect(() => setText(value), [value]);
  const change = (/** @type {any} */ event) => {
    const typed = event.currentTarget.value;
    setText(typed);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => set(typed.trim()), 250);
  };
  return html`<input type="text" placeholder=${label} aria-label=${label} autocomplete="off" maxlength="200" ...${more}
    value=${text} onInput=${change} />`;
}
