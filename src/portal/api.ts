/** The common parts of the API of the page: the call, the responses and the errors. */

import type { Logger } from "../core/logger.js";
import { HttpError, serviceUnavailable, toHttpError } from "../http/errors.js";
import { createJsonWriter } from "../http/json-response.js";
import type { PathParameter, Route } from "../http/router.js";
import type { HttpRequest } from "../http/types.js";
import type { Operator, Subscriber } from "../webhooks/access.js";
import type { Visitor } from "./options.js";

/** A request of the page. The visitor is authenticated, and a change came from the page itself. */
export interface ApiCall {
  request: HttpRequest;
  parameter: PathParameter;
  query: URLSearchParams;
  visitor: Visitor;
  /** In whose name webhooks are read and changed; `undefined` for a visitor without them. */
  actor: Subscriber | Operator | undefined;
}

/** A row of the portal's route table. Paths begin with `/api/`. */
export type ApiRoute = Route<ApiCall>;

/** Only the portal's page may read what the API responds with. */
export const API_HEADERS = { "cross-origin-resource-policy": "same-origin" } as const;

/** Writes the responses of the API. */
export const { json: jsonResponse, error: jsonError } = createJsonWriter(API_HEADERS);

/** Returns the error for the visitor. Logs errors that the visitor did not cause. */
export function toPortalError(thrown: unknown, logger: Logger): HttpError {
  const error = toHttpError(thrown);
  if (error !== undefined) return error;
  logger.error({ error: thrown }, "a request of the portal failed");
  return serviceUnavailable();
}

/** Returns the named headers of a request, of those that it has. */
export const pickHeaders = (
  headers: HttpRequest["headers"],
  names: readonly string[],
): Record<string, string> =>
  Object.fromEntries(names.flatMap((name) => (headers[name] === undefined ? [] : [[name, headers[name]]])));

/** The error for a visitor without access to a part of the page. */
export const notFoundHere = (): HttpError =>
  new HttpError(404, "not_found", "There is nothing here for you.");
