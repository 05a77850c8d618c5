/** Sends a request as it was saved or received. */

import { request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import type { HttpMessage } from "./http-message.js";

const TIMEOUT_MS = 15_000;
/** Of the connection it came over, not of the request. */
const HOP =
  /^(?:connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|host|content-length|expect)$/i;

/** POSTs the body and the headers, byte for byte and in order, to `url`; resolves with the status. Redirects are not followed. */
export function send(
  { headers, body }: Pick<HttpMessage, "headers" | "body">,
  url: string,
  signal: AbortSignal,
): Promise<number> {
  const { protocol, host } = new URL(url);
  const own = [...headers.filter(([name]) => !HOP.test(name)), ["Content-Length", String(body.length)]];
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
