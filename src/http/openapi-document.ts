/** An OpenAPI document that is built once. The base URL follows from the `Host` header, so each request may ask for another one. */

import type { JsonObject } from "../schema/types.js";

/**
 * Gives the document of any base URL: `build` runs once, and each call copies the outermost level alone to put `servers` into it.
 * The copies share everything else: whoever hands one to a host clones it first.
 */
export function cacheDocument(build: () => JsonObject): (baseUrl: string) => JsonObject {
  let document: JsonObject | undefined;
  return (baseUrl) => {
    document ??= build();
    return { ...document, servers: [{ url: baseUrl }] };
  };
}
