/** Gets a file from the address that a WXR file names, through the guarded client: public hosts only. */

import type { OutboundClient } from "../../outbound/types.js";
import type { FileSource } from "./options.js";

const DEADLINE_MS = 60_000;
const MAX_REDIRECTS = 3;

/**
 * `maxBytes`: of one file. Redirects are followed, each address judged anew. An address without TLS is asked for with it.
 *
 * Errors of what it gives: an Error that says why there is no file; never one that holds an address of this host's network.
 */
export function createFetchFile({ send }: Pick<OutboundClient, "send">, maxBytes: number): FileSource {
  return async ({ url: given }) => {
    let url = given.replace(/^http:/i, "https:");
    for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects += 1) {
      const result = await send({
        ...{ url, method: "GET", headers: {}, body: null },
        ...{ deadlineMs: DEADLINE_MS, maxBodyBytes: maxBytes },
      });
      if (result.kind !== "response") throw new Error(result.message);
      const { status, headers, body, complete } = result;
      const target = headers["location"];
      if (status >= 300 && status < 400 && target !== undefined && URL.canParse(target, url)) {
        url = new URL(target, url).href;
        continue;
      }
      if (status !== 200) throw new Error(`its host answered ${status}`);
      if (!complete) throw new Error("it is too large, or did not come whole");
      return body;
    }
    throw new Error(`its host redirects more than ${MAX_REDIRECTS} times`);
  };
}
