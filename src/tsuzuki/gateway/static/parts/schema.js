// A JSON schema as the fields of a form: what each field is, and how text becomes a value of it.

/**
 * @typedef {{path: string[], name: string, title: string, text: string, kind: "text"|"long"|"number"|"whole"|"switch"|"choice"|"lines"|"json",
 *   required: boolean, nullable: boolean, fallback: any, choices: any[], item: string, low?: number, high?: number, format?: string}} Field
 */

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
  const choices = part.anyOf ?? part.oneOf;
  if (Array.isArray(part.type)) {
    const types = part.type.filter((/** @type {string} */ type) => type !== "null");
    return { part: types.length === 1 ? { ...part, type: types[0] } : part, nullable: part.type.includes("null") };
  }
  if (!choices) return { part, nullable: false };
  const rest = choices.filter((/** @type {any} */ one) => one.type !== "null");
  const nullable = rest.length < choices.length;
  if (rest.length !== 1) return { part, nullable };
  const { anyOf, oneOf, ...outer } = part;
  return { part: { ...resolved(schema, rest[0]), ...outer }, nullable };
}

/**
 * Gives the fields of a schema, those of objects in it among them.
 * @param {any} schema @param {any} [part] @param {string[]} [path] @param {boolean} [needed] @returns {Field[]}
 */
export function fieldsOf(schema, part = schema, path = [], needed = true) {
  const whole = resolved(schema, part);
  const required = new Set(whole.required ?? []);
  return Object.entries(whole.properties ?? {}).flatMap(([name, raw]) => {
    const { part: found, nullable } = withoutNull(schema, resolved(schema, raw));
    const here = [...path, name];
    const wanted = needed && required.has(name);
    if (found.type === "object" && found.properties && here.length < 4 && !nullable) return fieldsOf(schema, found, here, wanted);
    return [field(schema, found, here, wanted, nullable)];
  });
}

/** @param {any} schema @param {any} part @param {string[]} path @param {boolean} required @param {boolean} nullable @returns {Field} */
function field(schema, part, path, required, nullable) {
  const item = part.items ? resolved(schema, part.items).type ?? "" : "";
  return {
    path,
    name: path.join("."),
    title: path.join(" › "),
    text: part.description ?? "",
    kind: kindOf(part, item),
    required,
    nullable,
    fallback: part.default,
    choices: part.const !== undefined ? [part.const] : part.enum ?? [],
    item,
    low: part.minimum ?? (part.exclusiveMinimum !== undefined && part.type === "integer" ? part.exclusiveMinimum + 1 : undefined),
    high: part.maximum ?? (part.exclusiveMaximum !== undefined && part.type === "integer" ? part.exclusiveMaximum - 1 : undefined),
    format: part.format,
  };
}

/** @param {any} part @param {string} item @returns {Field["kind"]} */
function kindOf(part, item) {
  if (part.enum || part.const !== undefined) return "choice";
  if (part.type === "boolean") return "switch";
  if (part.type === "integer") return "whole";
  if (part.type === "number") return "number";
  if (part.type === "string") return (part.maxLength ?? 0) > 500 ? "long" : "text";
  if (part.type === "array" && ["string", "integer", "number"].includes(item)) return "lines";
  return "json";
}

/** Writes a value as a field shows it. @param {Field} field @param {any} value @returns {string|boolean} */
export function written(field, value) {
  if (field.kind === "switch") return value === true;
  if (value === undefined || value === null) return "";
  if (field.kind === "lines" && Array.isArray(value)) return value.map(String).join("\n");
  if (field.kind === "json" || field.kind === "choice") return JSON.stringify(value, null, 2);
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** Reads what was typed; `problem` is a key of words. @param {Field} field @param {string|boolean} typed @returns {{value?: any, problem?: string}} */
export function read(field, typed) {
  if (typeof typed === "boolean") return { value: typed };
  if (typed.trim() === "") {
    if (field.nullable) return field.required ? { value: null } : {};
    if (!field.required) return {};
    if (field.kind === "lines") return { value: [] };
    return { problem: "form.needed" };
  }
  switch (field.kind) {
    case "whole":
      return /^[+-]?\d+$/.test(typed.trim()) ? { value: Number(typed) } : { problem: "form.whole" };
    case "number":
      return Number.isFinite(Number(typed)) ? { value: Number(typed) } : { problem: "form.number" };
    case "lines":
      return lines(field, typed);
    case "json":
    case "choice":
      return json(typed);
    default:
      return { value: typed };
  }
}

/** @param {Field} field @param {string} typed */
function lines(field, typed) {
  const parts = typed.split("\n").map((line) => line.trim()).filter(Boolean);
  if (field.item === "string") return { value: parts };
  const numbers = parts.map(Number);
  return numbers.every(Number.isFinite) ? { value: numbers } : { problem: "form.number" };
}

/** @param {string} typed */
function json(typed) {
  try {
    return { value: JSON.parse(typed) };
  } catch {
    return { problem: "form.json" };
  }
}
