/** Sends a request that was saved or received. */

import { request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import type { HttpMessage } from "./http-message.js";

const TIMEOUT_MS = 15_000;
/** Headers that belong to the earlier connection, in addition to `proxy-*`. */
const HOP_HEADERS: ReadonlySet<string> = new Set(
  "connection keep-alive te trailer transfer-encoding upgrade host content-length expect".split(" "),
);

const isHopHeader = (name: string): boolean =>
  HOP_HEADERS.has(name.toLowerCase()) || name.toLowerCase().startsWith("proxy-");

/**
 * POSTs the body and the headers, byte for byte and in order, to `url`. Resolves with the status.
 * Follows no redirects.
 */
export function sendRequest(
  { headers, body }: Pick<HttpMessage, "headers" | "body">,
  url: string,
  signal: AbortSignal,
): Promise<number> {
  const { protocol, host } = new URL(url);
  const own = [...headers.filter(([name]) => !isHopHeader(name)), ["Content-Length", String(body.length)]];
  return new Promise((resolve, reject) => {
    const request = (protocol === "https:" ? requestHttps : requestHttp)(
      url,
      {
        method: "POST",
        headers: [["Host", host], ...own].flat() as unknown as Record<string, string>,
        signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
      },
      (response) => {
        response.resume();
        response.on("error", reject);
        response.on("end", () => resolve(response.statusCode ?? 0));
      },
    );
    request.on("error", reject);
    request.end(body);
  });
}
