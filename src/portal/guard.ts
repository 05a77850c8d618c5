/** Checks who may see the page, and that the page itself sent a change. Knows no route. */

import { type Clock, withTimeout } from "../core/clock.js";
import type { Logger } from "../core/logger.js";
import { parseUrl } from "../core/parse-url.js";
import { HttpError, serviceUnavailable } from "../http/errors.js";
import type { HttpRequest } from "../http/types.js";
import { readSubscriber } from "../webhooks/call-arguments.js";
import type { Authorize, Visitor } from "./options.js";

const HOOK_MS = 5_000;

/**
 * The header that the page sends with every change. A page of another origin cannot send it, since
 * no CORS response allows it.
 */
export const PAGE_HEADER = "x-postbell-portal";

/**
 * Asks the host who sent a request.
 *
 * Errors: HttpError 401 `unauthorized`; HttpError 503 `unavailable` if the host throws, returns an
 * invalid value or takes longer than 5 s.
 */
export async function authenticateVisitor(
  request: HttpRequest,
  {
    authorize,
    clock,
    logger,
  }: { readonly authorize: Authorize; readonly clock: Clock; readonly logger: Logger },
): Promise<Visitor> {
  let found: Visitor | null | undefined;
  try {
    const answer = (async () => authorize(request))();
    found = await withTimeout(clock, HOOK_MS, answer, () => new Error("no answer in time"));
    if (found) found = readVisitor(found);
  } catch (error) {
    logger.error({ error }, "authorize of the portal gave no usable answer");
    throw serviceUnavailable("Your session cannot be checked right now; try again later.");
  }
  if (found) return found;
  throw new HttpError(401, "unauthorized", "You are not signed in, or may not look at this page.");
}

function readVisitor({ name, subscriber, userId, canReadRecords = false }: Visitor): Visitor {
  if (typeof name !== "string") throw new TypeError("authorize must give a name.");
  if (userId !== undefined && !Number.isSafeInteger(userId)) throw new TypeError("userId must be a number.");
  if (typeof canReadRecords !== "boolean") throw new TypeError("canReadRecords must be true or false.");
  return { name, subscriber: subscriber ? readSubscriber(subscriber) : undefined, userId, canReadRecords };
}

const hostOf = (address: string): string | undefined => parseUrl(address)?.host;

/**
 * Refuses a change that the page itself did not send.
 *
 * `Sec-Fetch-Site` decides if the browser sends it, and `Origin` if not. The header of the page is
 * required in any case.
 * Errors: HttpError 403 `foreign_request`.
 * Source: Fetch Metadata Request Headers §2.4; Fetch Standard, "CORS-unsafe request-header names".
 */
export function refuseForeign({ headers, baseUrl }: Pick<HttpRequest, "headers" | "baseUrl">): void {
  const site = headers["sec-fetch-site"];
  const origin = headers["origin"];
  const hosts = [headers["host"], hostOf(baseUrl)];
  const isForeign =
    site === undefined ? origin !== undefined && !hosts.includes(hostOf(origin)) : site !== "same-origin";
  if (isForeign || headers[PAGE_HEADER] === undefined) {
    throw new HttpError(403, "foreign_request", "Changes are taken from the page of this portal only.");
  }
}
