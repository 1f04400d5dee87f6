// JSON without loss: whole numbers that a double cannot hold are BigInts here, and are written as they were read.

const LONG = /\d{16}/;
const TOKENS = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
// Marks numbers on their way through JSON as texts; nobody outside can guess it.
const MARK = `int:${crypto.getRandomValues(new Uint32Array(4)).join("-")}:`;
const MARKED = new RegExp(`"${MARK}(-?\\d+)"`, "g");

/** Whether a number, as it is written, is whole and too long for a double. @param {string} text */
const tooLong = (text) => /^-?\d{16,}$/.test(text) && !Number.isSafeInteger(Number(text));

/** Reads JSON. @param {string} text @returns {any} */
export function parse(text) {
  if (!LONG.test(text)) return JSON.parse(text);
  const marked = text.replace(TOKENS, (token) => (tooLong(token) ? `"${MARK}${token}"` : token));
  if (marked === text) return JSON.parse(text);
  return JSON.parse(marked, (_, value) => (typeof value === "string" && value.startsWith(MARK) ? BigInt(value.slice(MARK.length)) : value));
}

/** Writes JSON. @param {any} value @param {number} [indent] @returns {string} */
export function stringify(value, indent) {
  const text = JSON.stringify(value, (_, one) => (typeof one === "bigint" ? `${MARK}${one}` : one), indent);
  return text?.replace(MARKED, "$1");
}

/** Reads a whole number as it is written. @param {string} text @returns {number|bigint} */
export const whole = (text) => (Number.isSafeInteger(Number(text)) ? Number(text) : BigInt(text.trim().replace(/^\+/, "")));
