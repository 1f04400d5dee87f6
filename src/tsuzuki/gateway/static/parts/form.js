// A form made from a JSON schema: the state of it, and its fields, with fields in them where a value has parts.
import { html, signal, useId } from "../core/view.js";
import { language, t, word } from "../core/words.js";
import { stringify } from "../core/exact.js";
import { Icon } from "./icons.js";
import { fieldOf, fill, raw, read, resolved, row, unraw, zoned } from "./schema.js";

/** @typedef {import("./schema.js").Field} Field */

/** What is typed into a form, and the values that it makes. */
export class FormState {
  /** @param {any} schema @param {Record<string, any>} [initial] values that are filled in */
  constructor(schema, initial = {}) {
    const whole = resolved(schema ?? {}, schema ?? {});
    const open = !whole.properties && whole.additionalProperties; // nobody knows what it takes
    this.root = fieldOf(whole, { type: "object", ...(open ? {} : { properties: {} }), ...whole }, "", true, open ? initial : undefined);
    if (open) this.root.title = t("params.params");
    for (const one of open ? [] : this.root.rows) {
      if (!(one.key in initial)) continue;
      one.field.said = true;
      fill(one.field, initial[one.key]);
    }
    /** Changes whenever something is typed. */
    this.typed = signal({});
  }

  get fields() {
    return this.root.rows.map((one) => one.field);
  }

  /** Something was typed, added or taken away. @param {{problems: string[]}} [typed] a field, or the row of a map whose key it was */
  touch(typed) {
    if (typed) typed.problems = [];
    this.typed.value = {};
  }

  /** Gives the values, without those that are as the flow has them anyway; and what does not fit, by field. */
  read() {
    /** @type {Map<{problems: string[]}, string>} */
    const problems = new Map();
    const values = read(this.root, (wrong, problem) => problems.set(wrong, t(problem)));
    return { values, problems, fits: !problems.size };
  }

  /** Reads, and shows what does not fit. */
  check() {
    const found = this.read();
    this.clear(this.root);
    for (const [wrong, problem] of found.problems) wrong.problems = [problem];
    this.touch();
    return found;
  }

  /** @param {Field} field */
  clear(field) {
    field.problems = [];
    for (const one of field.rows) (one.problems = []), this.clear(one.field);
  }

  /** Shows what the gateway found wrong at its field; gives what has no field here. @param {{type?: string, loc: (string|number)[], msg: string}[]} found */
  refuse(found) {
    this.clear(this.root);
    const left = found.filter((one) => {
      const start = one.loc.findIndex((part) => this.root.rows.some((each) => each.key === String(part)));
      if (start < 0) return true;
      const { field, rest } = placed(this.root, one.loc.slice(start));
      field.problems = [...field.problems, [rest.join(" › "), wrongText(one)].filter(Boolean).join(": ")];
      return false;
    });
    this.touch();
    return left;
  }
}

/** Finds the field of a place. @param {Field} field @param {(string|number)[]} place @returns {{field: Field, rest: (string|number)[]}} */
function placed(field, place) {
  if (field.kind === "union" && field.rows.length && place.length) {
    const inside = placed(field.rows[0].field, place);
    if (inside.field !== field.rows[0].field || !inside.rest.length) return inside;
    return placed(field.rows[0].field, place.slice(1)); // the name of a choice stands between
  }
  const found = field.kind === "list" ? field.rows[Number(place[0])] : field.rows.find((one) => one.key === String(place[0]));
  return found && place.length ? placed(found.field, place.slice(1)) : { field, rest: place };
}

/** Says in words of who reads what the gateway found wrong with a field. @param {{type?: string, msg: string}} one */
export function wrongText({ type = "", msg }) {
  const said = word(`wrong.${type}`) ?? word(`wrong.${type.split("_")[0]}`);
  return said && language.value !== "en" ? `${said} (${msg})` : msg;
}

/** The fields of a form. @param {{form: FormState}} props */
export function SchemaFields({ form }) {
  form.typed.value; // whoever types is seen here
  if (form.root.kind === "map" || form.root.kind === "json") return html`<div class="fields"><${SchemaField} field=${form.root} form=${form} bare /></div>`;
  if (!form.fields.length) return html`<p class="hint">${t("form.none")}</p>`;
  return html`<div class="fields">${form.fields.map((field) => html`<${SchemaField} key=${field.id} field=${field} form=${form} />`)}</div>`;
}

/** @param {{field: Field, form: FormState, bare?: boolean}} props `bare`: its name stands elsewhere */
function SchemaField({ field, form, bare = false }) {
  form.typed.value;
  if (["object", "list", "map", "union"].includes(field.kind)) return html`<${Group} field=${field} form=${form} bare=${bare} />`;
  return html`<${LeafField} field=${field} form=${form} bare=${bare} />`;
}

/** @param {{field: Field, form: FormState, bare: boolean}} props */
function LeafField({ field, form, bare }) {
  form.typed.value; // a field is one object for life: what it says is read again when somebody types
  const name = useId();
  const wrong = field.problems.length > 0;
  const told = [field.text && `${name}-text`, wrong && `${name}-problem`].filter(Boolean).join(" ") || undefined;
  const shared = {
    id: name, name: field.name, "aria-describedby": told, "aria-invalid": wrong ? "true" : undefined, "aria-required": field.required,
    "aria-label": bare ? field.title || t("form.value") : undefined,
  };
  const type = (/** @type {string|boolean} */ text, /** @type {any} */ more = {}) => (Object.assign(field, { typed: text, ...more }), form.touch(field));
  const parts = field.kind === "json" && field.part.type !== undefined || field.part.union;
  return html`<div class=${`field kind-${field.kind}${wrong ? " wrong" : ""}`}>
    ${!bare && html`<label for=${name}>${field.title}<${Needed} field=${field} /></label>`}
    <${Input} field=${field} shared=${shared} type=${type} />
    ${field.text && html`<p class="hint" id=${`${name}-text`}>${field.text}</p>`}
    ${hintOf(field) && html`<p class="hint">${hintOf(field)}</p>`}
    ${field.kind === "json" && parts && html`<button type="button" class="button small" onClick=${() => (unraw(field), form.touch(field))}>${t("form.asFields")}</button>`}
    <${Problems} problems=${field.problems} id=${`${name}-problem`} />
  </div>`;
}

/** @param {{field: Field}} props */
const Needed = ({ field }) => (field.required ? html`<span class="needed" title=${t("form.required")}> *</span>` : null);

/** @param {{problems: string[], id?: string}} props */
function Problems({ problems, id }) {
  return problems.length ? html`<div class="wrong-text" id=${id} role="alert">${problems.map((one) => html`<p key=${one}>${one}</p>`)}</div>` : null;
}

/** A field with fields in it. @param {{field: Field, form: FormState, bare: boolean}} props */
function Group({ field, form, bare }) {
  form.typed.value;
  const change = (/** @type {() => void} */ work) => () => (work(), form.touch(field));
  const optional = !field.required || field.nullable;
  const name = field.title || t(`kind.${field.kind}`);
  return html`<fieldset class=${`group${field.problems.length ? " wrong" : ""}${bare ? " bare" : ""}`}>
    <legend class=${bare ? "unseen" : ""}>${name}<${Needed} field=${field} /></legend>
    ${field.text && html`<p class="hint">${field.text}</p>`}
    ${field.given ? html`<${Inside} field=${field} form=${form} change=${change} />` : html`<p class="hint">${t("form.left")}</p>`}
    <${Problems} problems=${field.problems} />
    <div class="group-foot">
      ${!field.given && html`<button type="button" class="button small" onClick=${change(() => given(field))}><${Icon} name="plus" />${t("form.give", { name })}</button>`}
      ${field.given && optional && html`<button type="button" class="button small" onClick=${change(() => (field.given = false))}>${t("form.leave", { name })}</button>`}
      ${field.given && html`<button type="button" class="button small" onClick=${change(() => raw(field, read(field, () => {})))}>${t("form.asJson")}</button>`}
    </div>
  </fieldset>`;
}

/** @param {Field} field */
function given(field) {
  const { required, nullable } = field;
  Object.assign(field, { required: true, nullable: false });
  fill(field, undefined);
  Object.assign(field, { required, nullable, given: true });
}

/** @param {{field: Field, form: FormState, change: (work: () => void) => () => void}} props */
function Inside({ field, form, change }) {
  form.typed.value;
  const { rows, part, schema } = field;
  if (field.kind === "object") return html`<div class="fields">${rows.map((one) => html`<${SchemaField} key=${one.id} field=${one.field} form=${form} />`)}</div>`;
  if (field.kind === "union") return html`<${Union} field=${field} form=${form} />`;
  const inside = field.kind === "list" ? part.prefixItems?.[rows.length] ?? part.items ?? {} : typeof part.additionalProperties === "object" ? part.additionalProperties : {};
  const add = change(() => (field.rows = [...rows, row("", fieldOf(schema, inside, "", true, undefined))]));
  return html`<ol class="entries">
      ${rows.map((one, place) => {
        const label = field.kind === "list" ? `${field.title} ${place + 1}` : `${field.title} ${one.key}`;
        one.field.title = label;
        return html`<li key=${one.id} class="entry">
          ${field.kind === "map" ? html`<div class=${`field entry-key${one.problems.length ? " wrong" : ""}`}><input type="text" autocomplete="off" aria-label=${t("form.key", { n: place + 1 })}
            placeholder=${t("column.key")} value=${one.key} aria-invalid=${one.problems.length ? "true" : undefined}
            onInput=${(/** @type {any} */ event) => ((one.key = event.currentTarget.value), form.touch(one))} /><${Problems} problems=${one.problems} /></div>` : html`<span class="entry-number">${place + 1}</span>`}
          <${SchemaField} field=${one.field} form=${form} bare />
          ${rows.length > (part.minItems ?? 0) && html`<button type="button" class="button bare" aria-label=${t("form.remove", { name: label })} title=${t("form.remove", { name: label })}
            onClick=${change(() => (field.rows = rows.filter((each) => each !== one)))}><${Icon} name="bin" /></button>`}
        </li>`;
      })}
    </ol>
    ${rows.length < (part.maxItems ?? Infinity) && html`<button type="button" class="button small" onClick=${add}><${Icon} name="plus" />${t("form.add", { name: field.title })}</button>`}`;
}

/** A value of one of several types. @param {{field: Field, form: FormState}} props */
function Union({ field, form }) {
  form.typed.value;
  const choose = (/** @type {any} */ event) => {
    field.pick = Number(event.currentTarget.value);
    field.rows = [row("", fieldOf(field.schema, field.options[field.pick], "", true, undefined))];
    form.touch(field);
  };
  return html`<div class="entry"><select aria-label=${t("form.type", { name: field.title })} value=${String(field.pick)} onChange=${choose}>
      ${field.options.map((option, place) => html`<option key=${place} value=${String(place)}>${typeName(resolved(field.schema, option))}</option>`)}
    </select>
    ${field.rows.map((one) => ((one.field.title = field.title), html`<${SchemaField} key=${one.id} field=${one.field} form=${form} bare />`))}</div>`;
}

/** @param {any} part */
function typeName(part) {
  if (part.properties) return part.title ?? t("kind.object");
  if (part.const !== undefined) return String(part.const);
  return word(`kind.${part.format ?? part.type}`) ?? word(`kind.${part.type}`) ?? part.title ?? t("kind.union");
}

/** @param {Field} field */
function hintOf(field) {
  if (field.kind === "lines") return t("form.lines");
  if (field.low !== undefined && field.high !== undefined) return t("form.between", { low: field.low, high: field.high });
  return "";
}

/** @param {{field: Field, shared: any, type: (text: string|boolean, more?: any) => void}} props */
function Input({ field, shared, type }) {
  const { typed } = field;
  const change = (/** @type {any} */ event) => type(event.currentTarget.value);
  const timely = (/** @type {any} */ { currentTarget: { value, validity } }) => {
    const text = value.replace(/T\d\d:\d\d$/, "$&:00"); // a browser leaves out seconds that are none
    if (text !== typed || validity.badInput !== field.bad) type(text, { bad: validity.badInput });
  };
  switch (field.kind) {
    case "switch":
      return html`<input ...${shared} type="checkbox" class="switch" checked=${typed === true}
        onChange=${(/** @type {any} */ event) => type(event.currentTarget.checked)} />`;
    case "choice":
      return html`<select ...${shared} value=${typed} onChange=${change}>
        ${(!field.required || typed === "") && html`<option value="">–</option>`}
        ${field.choices.map((choice) => html`<option key=${stringify(choice)} value=${stringify(choice)}>${String(choice)}</option>`)}
      </select>`;
    case "lines":
    case "json":
    case "long":
      return html`<textarea ...${shared} rows=${field.kind === "lines" ? 4 : 3} spellcheck=${false} value=${typed} onInput=${change}></textarea>`;
    case "whole":
    case "number":
      return html`<input ...${shared} type="text" inputmode=${field.kind === "whole" ? "numeric" : "decimal"} autocomplete="off" value=${typed} onInput=${change} />`;
    case "date":
      return html`<input ...${shared} type="date" max="9999-12-31" value=${typed} onInput=${timely} onBlur=${timely} />`;
    case "time":
      return html`<input ...${shared} type="time" step="1" value=${typed} onInput=${timely} onBlur=${timely} />`;
    case "date-time":
      return html`<div class="entry"><input ...${shared} type="datetime-local" step="1" max="9999-12-31T23:59:59" value=${typed} onInput=${timely} onBlur=${timely} />
        <select aria-label=${t("form.zone")} value=${field.zone} onChange=${(/** @type {any} */ event) => type(typed, { zone: event.currentTarget.value })}>
          ${[...new Set(["local", "Z", "none", field.zone])].map((zone) => html`<option key=${zone} value=${zone}>${zoneName(zone, String(typed))}</option>`)}
        </select></div>`;
    default:
      return html`<input ...${shared} type="text" autocomplete="off" placeholder=${field.part.format ?? ""} value=${typed} onInput=${change} />`;
  }
}

/** @param {string} zone @param {string} typed */
function zoneName(zone, typed) {
  if (zone === "local") return t("form.zone.local", { zone: zoned("local", typed || new Date().toISOString().slice(0, 16)).replace("Z", "UTC") });
  return zone === "none" ? t("form.zone.none") : zone === "Z" ? "UTC" : zone;
}
