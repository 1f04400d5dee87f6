// A JSON schema as a tree of fields: what each field is, how a value fills it, and what value it makes.
import { parse, stringify, whole } from "../core/exact.js";

/**
 * A field: a leaf has what is typed, the others have fields in them. `given` is false where a part that may be left out is.
 * @typedef {"text"|"long"|"number"|"whole"|"switch"|"choice"|"lines"|"date"|"date-time"|"time"|"json"|"object"|"list"|"map"|"union"} Kind
 * @typedef {{id: number, name: string, title: string, text: string, kind: Kind, part: any, schema: any, required: boolean, nullable: boolean, fallback: any,
 *   typed: string|boolean, zone: string, bad: boolean, given: boolean, said: boolean, rows: Row[], options: any[], pick: number,
 *   choices: any[], item: string, low?: number, high?: number, problems: string[]}} Field
 */

/** Parts of a schema that says nothing of what a value may be. */
const ANYTHING = [{ type: "string" }, { type: "number" }, { type: "boolean" }, { type: "array", items: {} }, { type: "object", additionalProperties: {} }];
const STAMP = /^(\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?)(Z|[+-]\d\d:\d\d)?$/;
let count = 0;

/** @param {any} schema the whole @param {any} part */
export function resolved(schema, part) {
  let found = part ?? {};
  for (let depth = 0; depth < 20; depth += 1) {
    if (typeof found.$ref === "string") {
      const target = found.$ref.replace(/^#\//, "").split("/").reduce((/** @type {any} */ at, /** @type {string} */ word) => at?.[word], schema) ?? {};
      const { $ref, ...rest } = found;
      found = { ...target, ...rest };
    } else if (Array.isArray(found.allOf) && found.allOf.length === 1) {
      const { allOf, ...rest } = found;
      found = { ...allOf[0], ...rest };
    } else break;
  }
  return found;
}

/** Takes `null` out of what a field may be. @param {any} schema @param {any} part */
function withoutNull(schema, part) {
  const choices = Array.isArray(part.type) ? part.type.map((/** @type {string} */ type) => ({ ...part, type })) : part.anyOf ?? part.oneOf;
  if (!choices) return { part, nullable: false };
  const { anyOf, oneOf, type, ...outer } = part;
  const rest = choices.map((/** @type {any} */ one) => resolved(schema, one)).filter((/** @type {any} */ one) => one.type !== "null");
  const nullable = rest.length < choices.length;
  return rest.length === 1 ? { part: { ...rest[0], ...outer }, nullable } : { part: { ...outer, union: rest }, nullable };
}

/** @param {any} part @param {string} item @returns {Kind} */
function kindOf(part, item) {
  if (part.union) return "union";
  if (part.enum || part.const !== undefined) return "choice";
  if (part.type === "boolean") return "switch";
  if (part.type === "integer") return "whole";
  if (part.type === "number") return "number";
  if (part.type === "string" && ["date", "date-time", "time"].includes(part.format)) return part.format;
  if (part.type === "string") return (part.maxLength ?? 0) > 500 ? "long" : "text";
  if (part.type === "array") return ["string", "integer", "number"].includes(item) ? "lines" : "list";
  if (part.type === "object") return part.properties ? "object" : "map";
  return "union";
}

/**
 * Makes a field, filled with a value; undefined: with what the flow has.
 * @param {any} schema the whole @param {any} raw its part @param {string} name @param {boolean} required @param {any} value @returns {Field}
 */
export function fieldOf(schema, raw, name, required, value) {
  const { part, nullable } = withoutNull(schema, resolved(schema, raw));
  const items = part.items ? resolved(schema, part.items) : {};
  const item = items.enum || items.format ? "" : items.type ?? "";
  const kind = kindOf(part, item);
  const low = part.minimum ?? (part.exclusiveMinimum !== undefined && kind === "whole" ? part.exclusiveMinimum + 1 : undefined);
  const high = part.maximum ?? (part.exclusiveMaximum !== undefined && kind === "whole" ? part.exclusiveMaximum - 1 : undefined);
  /** @type {Field} */
  const field = {
    id: (count += 1), name, title: name, text: part.description ?? "", kind, part, schema, required, nullable, fallback: part.default, typed: "", zone: "local", bad: false,
    given: false, said: value !== undefined, rows: [], options: part.union ?? ANYTHING, pick: 0, item, low, high, problems: [],
    choices: part.const !== undefined ? [part.const] : part.enum ?? [],
  };
  fill(field, value === undefined ? part.default : value);
  return field;
}

/** Fills a field with a value. @param {Field} field @param {any} value */
export function fill(field, value) {
  const { schema, part, kind } = field;
  const there = value !== undefined && value !== null;
  field.given = there || (field.required && !field.nullable);
  field.rows = [];
  if (kind === "object") {
    if (!field.given) return;
    const needed = new Set(part.required ?? []);
    const names = Object.keys(part.properties);
    field.rows = names.map((name) => row(name, fieldOf(schema, part.properties[name], name, needed.has(name), value?.[name])));
  } else if (kind === "list") {
    /** @type {any[]} */
    const held = Array.isArray(value) ? value : field.given ? (part.prefixItems ?? []).map(() => undefined) : []; // a place for each part of a tuple
    field.rows = held.map((one, place) => row("", fieldOf(schema, part.prefixItems?.[place] ?? part.items ?? {}, "", true, one)));
  } else if (kind === "map") {
    const inside = typeof part.additionalProperties === "object" ? part.additionalProperties : {};
    field.rows = Object.entries(there && typeof value === "object" ? value : {}).map(([key, one]) => row(key, fieldOf(schema, inside, "", true, one)));
  } else if (kind === "union") {
    const fitting = field.options.findIndex((option) => fits(resolved(schema, option), value));
    if (there && fitting < 0) return raw(field, value);
    field.pick = Math.max(fitting, 0);
    if (field.given) field.rows = [row("", fieldOf(schema, field.options[field.pick], "", true, there ? value : undefined))];
  } else if (kind === "date-time" && there) {
    const [, local, zone = "none"] = STAMP.exec(String(value)) ?? [];
    if (local) [field.typed, field.zone] = [local, zone];
    else [field.kind, field.typed] = ["text", String(value)];
  } else field.typed = kind === "choice" && !there && part.const !== undefined && field.required ? stringify(part.const) : written(field, value);
}

/** @typedef {{id: number, key: string, field: Field, problems: string[]}} Row what is wrong with its key is its own */
/** @param {string} key @param {Field} field @returns {Row} */
export const row = (key, field) => ({ id: (count += 1), key, field, problems: [] });

/** Shows a field as JSON. @param {Field} field @param {any} value */
export function raw(field, value) {
  field.kind = "json";
  field.rows = [];
  field.typed = value === undefined ? "" : stringify(value, 2);
}

/** Shows a field as fields again, as far as its value is one. @param {Field} field */
export function unraw(field) {
  const found = json(String(field.typed));
  field.kind = kindOf(field.part, field.item);
  fill(field, found.problem ? undefined : found.value);
}

/** Whether a value may be of a part. @param {any} part @param {any} value */
function fits(part, value) {
  if (value === null || value === undefined) return false;
  if (part.const !== undefined) return part.const === value;
  if (part.enum) return part.enum.includes(value);
  switch (part.type) {
    case "string": return typeof value === "string";
    case "boolean": return typeof value === "boolean";
    case "integer": return typeof value === "bigint" || Number.isInteger(value);
    case "number": return typeof value === "number" || typeof value === "bigint";
    case "array": return Array.isArray(value);
    case "object": {
      if (typeof value !== "object" || Array.isArray(value)) return false;
      return (part.required ?? []).every((/** @type {string} */ name) => name in value) &&
        Object.entries(part.properties ?? {}).every(([name, one]) => /** @type {any} */ (one).const === undefined || /** @type {any} */ (one).const === (value[name] ?? /** @type {any} */ (one).default));
    }
    default: return true;
  }
}

/** Writes a value as a field shows it. @param {Field} field @param {any} value @returns {string|boolean} */
function written(field, value) {
  if (field.kind === "switch") return value === true;
  if (value === undefined || value === null) return "";
  if (field.kind === "lines" && Array.isArray(value)) return value.map(String).join("\n");
  if (field.kind === "choice") return stringify(value);
  if (field.kind === "json") return stringify(value, 2);
  return typeof value === "object" ? stringify(value) : String(value);
}

/**
 * Reads a field: its value, undefined where it is left out; `problem` is told which fields are wrong, by a key of words.
 * @param {Field} field @param {(wrong: Field|Row, problem: string) => void} problem @returns {any}
 */
export function read(field, problem) {
  if (field.kind === "json" || !["object", "list", "map", "union"].includes(field.kind)) {
    if (!field.said && !field.required && field.typed === written(field, field.fallback) && !field.bad) return undefined;
    const found = leaf(field);
    if (found.problem) problem(field, found.problem);
    return found.value;
  }
  if (!field.given) return field.nullable && (field.required || field.said) ? null : undefined;
  const value = inside(field, problem);
  return !field.said && !field.required && stringify(value) === stringify(field.fallback) ? undefined : value;
}

/** @param {Field} field @param {(wrong: Field|Row, problem: string) => void} problem @returns {any} */
function inside(field, problem) {
  if (field.kind === "union") return read(field.rows[0].field, problem);
  if (field.kind === "list") return field.rows.map((one) => read(one.field, problem) ?? null);
  /** @type {Record<string, any>} */
  const values = {};
  for (const one of field.rows) {
    const value = read(one.field, problem);
    if (field.kind === "map" && (one.key === "" || one.key in values)) problem(one, one.key === "" ? "form.nokey" : "form.samekey");
    if (value !== undefined) values[one.key] = value;
  }
  return values;
}

/** @param {Field} field @returns {{value?: any, problem?: string}} */
function leaf(field) {
  const { typed, kind } = field;
  if (typeof typed === "boolean") return { value: typed };
  if (field.bad) return { problem: "form.date" };
  if (typed.trim() === "") {
    if (field.nullable) return field.required || field.said ? { value: null } : {};
    if (!field.required) return {};
    if (kind === "lines") return { value: [] };
    return kind === "text" || kind === "long" ? (field.name === "" ? { value: typed } : { problem: "form.needed" }) : { problem: "form.needed" };
  }
  switch (kind) {
    case "whole":
      return /^\s*[+-]?\d+\s*$/.test(typed) ? { value: whole(typed) } : { problem: "form.whole" };
    case "number":
      return /^\s*[+-]?\d+\s*$/.test(typed) ? { value: whole(typed) } : Number.isFinite(Number(typed)) ? { value: Number(typed) } : { problem: "form.number" };
    case "lines":
      return lines(field, typed);
    case "date-time":
      return { value: typed + zoned(field.zone, typed) };
    case "json":
    case "choice":
      return json(typed);
    default:
      return { value: typed };
  }
}

/** The offset of a zone at a time. @param {string} zone @param {string} typed */
export function zoned(zone, typed) {
  if (zone !== "local") return zone === "none" ? "" : zone;
  const away = -new Date(typed).getTimezoneOffset();
  const pad = (/** @type {number} */ value) => String(value).padStart(2, "0");
  return away === 0 ? "Z" : `${away < 0 ? "-" : "+"}${pad(Math.floor(Math.abs(away) / 60))}:${pad(Math.abs(away) % 60)}`;
}

/** @param {Field} field @param {string} typed */
function lines(field, typed) {
  const parts = typed.split("\n").map((line) => line.trim()).filter(Boolean);
  if (field.item === "string") return { value: parts };
  if (!parts.every((part) => Number.isFinite(Number(part)))) return { problem: "form.number" };
  return { value: parts.map((part) => (/^[+-]?\d+$/.test(part) ? whole(part) : Number(part))) };
}

/** @param {string} typed @returns {{value?: any, problem?: string}} */
function json(typed) {
  try {
    return { value: parse(typed) };
  } catch {
    return { problem: "form.json" };
  }
}
