/** Downloads the files that a WXR file names, from public hosts only. */

import type { GuardedGet } from "../../outbound/guarded-get.js";
import type { FileSource } from "./options.js";

const DEADLINE_MS = 60_000;

/**
 * Creates a source of files for imports. `maxBytes` limits one file. An `http:` URL is requested
 * over `https:`.
 *
 * The source throws an `Error` that says why it has no file. Its message never contains an address
 * of the host's network.
 */
export function createFetchFile(get: GuardedGet, maxBytes: number): FileSource {
  return async ({ url }) => {
    const secure = url.replace(/^http:/i, "https:");
    const result = await get({ url: secure, maxBytes, deadlineMs: DEADLINE_MS });
    if (result.kind !== "response") throw new Error(result.message);
    if (result.status === 200) return result.body;
    result.body.destroy();
    throw new Error(`its host responded with ${result.status}`);
  };
}
