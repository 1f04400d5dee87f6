// Where the gateway is, seen from this file: so everything works behind a path prefix.

/** The root of the gateway, with the prefix it is served under. */
export const root = new URL("../../", import.meta.url);

/**
 * Gives the address of a path of the gateway.
 * @param {string} path
 * @param {Record<string, unknown>} [query] what is empty is left out; lists are repeated
 */
export function address(path, query = {}) {
  const url = new URL(path.replace(/^\/+/, ""), root);
  for (const [name, value] of Object.entries(query)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined && one !== null && one !== "") url.searchParams.append(name, String(one));
    }
  }
  return url;
}

/** As `address`, but an empty `cursor` is sent: it asks for pages. @param {string} path @param {Record<string, unknown>} query */
export function paged(path, query) {
  const url = address(path, query);
  if (!url.searchParams.has("cursor")) url.searchParams.set("cursor", "");
  return url;
}
