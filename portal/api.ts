/** The common parts of the API routes: the call, the responses and the errors. Knows no route. */

import type { Logger } from "../src/core/logger.js";
import { type HttpError, serviceUnavailable, toHttpError } from "../src/http/errors.js";
import { createJsonWriter } from "../src/http/json-response.js";
import type { PathParameter, Route } from "../src/http/router.js";
import type { HttpRequest } from "../src/http/types.js";
import type { Visitor } from "./options.js";

/** A request of the page. The visitor is authenticated, and a change came from the page itself. */
export interface ApiCall {
  readonly request: HttpRequest;
  readonly parameter: PathParameter;
  readonly query: URLSearchParams;
  readonly visitor: Visitor;
  /** The JSON object of the body, up to 64 KiB. */
  readonly fields: () => Promise<Readonly<Record<string, unknown>>>;
}

/** A row of the portal's route table. Paths begin with `/api/`. */
export type ApiRoute = Route<ApiCall>;

/** Writes the responses of the API, which only the portal's own page may read. */
export const { json: jsonResponse, error: jsonError } = createJsonWriter({
  "cross-origin-resource-policy": "same-origin",
});

/** The statuses of errors that a visitor can cause. All others are errors of the service: 503. */
const STATUSES: ReadonlyMap<string, number> = new Map([
  ["invalid_request", 400],
  ["invalid_argument", 400],
  ["invalid_url", 400],
  ["unknown_event_type", 400],
  ["webhook_owned_by_another_key", 403],
  ["not_found", 404],
  ["webhook_limit_reached", 409],
  ["webhook_disabled", 409],
  ["resend_limit_reached", 409],
  ["rate_limited", 429],
]);

/** Translates a thrown error for the visitor. Logs errors that the visitor did not cause. */
export function toPortalError(thrown: unknown, logger: Logger): HttpError {
  const error = toHttpError(thrown, STATUSES);
  if (error !== undefined) return error;
  logger.error({ error: thrown }, "a request of the portal failed");
  return serviceUnavailable();
}
