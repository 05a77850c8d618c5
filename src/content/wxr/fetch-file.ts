/** Gets a file from the address that a WXR file names, through the guarded client: public hosts only. */

import type { GuardedGet } from "../../outbound/guarded-get.js";
import type { FileSource } from "./options.js";

const DEADLINE_MS = 60_000;

/**
 * `maxBytes`: of one file. An address without TLS is asked for with it.
 *
 * Errors of what it gives: an Error that says why there is no file; never one that holds an address of this host's network.
 */
export function createFetchFile(get: GuardedGet, maxBytes: number): FileSource {
  return async ({ url }) => {
    const secure = url.replace(/^http:/i, "https:");
    const result = await get({ url: secure, maxBytes, deadlineMs: DEADLINE_MS });
    if (result.kind !== "response") throw new Error(result.message);
    if (result.status === 200) return result.body;
    result.body.destroy();
    throw new Error(`its host answered ${result.status}`);
  };
}
