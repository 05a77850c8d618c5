/**
 * Reduces a whole response to the part that the request needs: conditions (RFC 9110 §13) and HEAD.
 */

import { isMatch } from "../../http/entity-tag.js";
import type { HttpRequest, HttpResponse } from "../../http/types.js";
import type { RenderedResponse } from "./response-cache.js";

/**
 * Returns 304 if the client has these bytes, the headers alone for HEAD, otherwise `whole` itself.
 */
export function evaluateConditional(request: HttpRequest, whole: RenderedResponse): HttpResponse {
  if (isMatch(request.headers["if-none-match"], whole.headers["etag"])) return notModified(whole);
  return request.method === "HEAD" ? withoutBody(whole) : whole;
}

/** The headers stay, except those that describe a body (RFC 9110 §15.4.5). */
function notModified({ headers }: RenderedResponse): HttpResponse {
  const { "content-type": _, ...others } = headers;
  return { status: 304, headers: others, body: null };
}

const withoutBody = ({ status, headers, body }: RenderedResponse): HttpResponse => ({
  status,
  headers: { ...headers, "content-length": String(body.length) },
  body: null,
});
