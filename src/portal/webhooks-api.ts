/**
 * Forwards requests of the page to the webhook service, on behalf of the visitor's subscriber. The
 * service checks everything; nothing that a request says about its sender is forwarded.
 */

import type { Clock } from "../core/clock.js";
import { HttpError, rateLimited } from "../http/errors.js";
import { createRateLimit } from "../http/rate-limit.js";
import type { HttpRequest, HttpResponse } from "../http/types.js";
import { API_HEADERS, type ApiCall, notFoundHere, pickHeaders } from "./api.js";
import type { PortalWebhooks } from "./options.js";

/** Request headers that are forwarded: they describe the body, its repetition or a precondition. */
const HEADERS = [
  "content-type",
  "content-length",
  "content-encoding",
  "if-none-match",
  "idempotency-key",
] as const;

/** The paths of the webhook service as the page requests them. */
export const WEBHOOKS_PREFIX = "/api/v1/";
const PREFIX_LENGTH = "/api".length;

type Forwarded = Omit<ApiCall, "parameter">;

/** Returns the query to forward. Only a visitor who may read records gets the body. */
function toQuery({ query, visitor }: Forwarded): string {
  const isForwarded = ([name, value]: readonly [string, string]): boolean =>
    visitor.canReadRecords === true || name !== "include" || value !== "body";
  return new URLSearchParams([...query].filter(isForwarded)).toString();
}

/** The response is for the page only, even if everybody may read it over REST. */
function toPageResponse({ status, headers, body }: HttpResponse): HttpResponse {
  const own = Object.entries(headers).filter(([name]) => name !== "access-control-allow-origin");
  return { status, headers: { ...Object.fromEntries(own), ...API_HEADERS }, body };
}

/**
 * Returns a function that forwards a call. It throws HttpError 404 `not_found` for a visitor
 * without a subscriber, and 429 `rate_limited`.
 *
 * @param requestsPerMinute the limit of an account.
 */
export function createWebhooksApi(
  webhooks: PortalWebhooks,
  { clock, requestsPerMinute }: { readonly clock: Clock; readonly requestsPerMinute: number },
): (call: Forwarded) => Promise<HttpResponse> {
  const accounts = createRateLimit({ perMinute: requestsPerMinute, clock });

  return async (call) => {
    const { request, visitor } = call;
    if (!visitor.subscriber) throw notFoundHere();
    const { account } = visitor.subscriber;
    const seconds = accounts.take(account);
    if (seconds > 0) throw rateLimited(seconds, "This account sends too many requests");
    const { method, path, body, signal, baseUrl } = request;
    const forwarded: HttpRequest = {
      method,
      path: path.slice(PREFIX_LENGTH),
      query: toQuery(call),
      headers: pickHeaders(request.headers, HEADERS),
      body,
      baseUrl: `${baseUrl}/api`,
      signal,
    };
    const onCost = (requests: number): void => accounts.charge(account, requests);
    const response = await webhooks.handleAs(forwarded, visitor.subscriber, { onCost });
    if (response === undefined) throw new HttpError(404, "not_found", "There is no such path.");
    return toPageResponse(response);
  };
}
