/** The common parts of the API routes: the call, the responses and the errors. Knows no route. */

import { isPostbellError, PostbellError } from "../src/core/errors.js";
import type { Logger } from "../src/core/logger.js";
import { HttpError } from "../src/http/errors.js";
import type { PathParameter, Route } from "../src/http/router.js";
import type { HttpRequest, HttpResponse } from "../src/http/types.js";
import type { Visitor } from "./options.js";
import type { ErrorJson } from "./shapes.js";

/** The argument of a route. The visitor is known, and the page itself sent the change. */
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

export const jsonResponse = (
  status: number,
  value: unknown,
  headers: Readonly<Record<string, string>> = {},
): HttpResponse => ({
  status,
  headers: {
    "content-type": "application/json; charset=utf-8",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "cross-origin-resource-policy": "same-origin",
    ...headers,
  },
  body: JSON.stringify(value),
});

/** The statuses of errors that a caller can cause. Every other error is the service's own. */
const STATUS: Readonly<Record<string, number>> = {
  invalid_request: 400,
  invalid_argument: 400,
  invalid_url: 400,
  unknown_event_type: 400,
  webhook_owned_by_another_key: 403,
  not_found: 404,
  webhook_limit_reached: 409,
  webhook_disabled: 409,
  resend_limit_reached: 409,
  rate_limited: 429,
};

export const invalidField = (field: string, message: string): PostbellError =>
  new PostbellError("invalid_request", message, { field });

/** Returns the error that the visitor gets for something thrown. */
export function toHttpError(thrown: unknown, logger: Logger): HttpError {
  if (thrown instanceof HttpError) return thrown;
  if (isPostbellError(thrown)) {
    const { code, message, field, retryAfterSeconds } = thrown;
    const status = STATUS[code];
    const headers = retryAfterSeconds === undefined ? {} : { "retry-after": String(retryAfterSeconds) };
    if (status !== undefined) return new HttpError(status, code, message, { field, headers });
  }
  logger.error({ error: thrown }, "a request of the portal failed");
  return new HttpError(503, "unavailable", "The service cannot answer at the moment; try again later.", {
    headers: { "retry-after": "5" },
  });
}

export function errorAnswer({ status, code, message, field, headers }: HttpError): HttpResponse {
  const body: ErrorJson = { error: { code, message, ...(field === undefined ? {} : { field }) } };
  return jsonResponse(status, body, headers);
}
