/** Turns whatever was thrown into the error response of a route. */

import { isPostbellError } from "../../core/errors.js";
import type { Logger } from "../../core/logger.js";
import { RestError } from "./error.js";
import type { RouteOutcome } from "./route-call.js";

/** In seconds. A storage is usually available again after a fail-over. */
const STORAGE_RETRY_AFTER = 5;

/** Logs what is not the caller's fault. */
export const createErrorOutcomes =
  (logger: Logger) =>
  (error: unknown): RouteOutcome => {
    if (error instanceof RestError) return toOutcome(error);
    if (isPostbellError(error, "storage_unavailable") || isPostbellError(error, "storage_full")) {
      logger.warn({ error }, "the storage could not answer a content request");
      const message = "The service cannot answer at the moment; try again later.";
      return toOutcome(
        new RestError(503, `rest_${error.code}`, message, { retryAfter: STORAGE_RETRY_AFTER }),
      );
    }
    logger.error({ error }, "a content request failed");
    return toOutcome(new RestError(500, "rest_internal_error", "The request could not be answered."));
  };

function toOutcome({ status, code, message, data, additional, retryAfter }: RestError): RouteOutcome {
  const more =
    additional.length === 0 ? {} : { additional_errors: additional.map((error) => ({ ...error })) };
  return {
    status,
    headers: retryAfter === undefined ? {} : { "retry-after": String(retryAfter) },
    body: { json: { code, message, data: { status, ...data }, ...more } },
    isError: true,
  };
}
