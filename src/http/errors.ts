/** The error that a route throws to send a status, and the errors that every service shares. */

import { isPostbellError } from "../core/errors.js";

/** An error with the status and the code of its response. The service writes the body. */
export class HttpError extends Error {
  override readonly name = "HttpError";
  readonly status: number;
  /** Stable and documented by the service; for programs. */
  readonly code: string;
  /** The field of the request at fault. */
  readonly field: string | undefined;
  /** Sent with the response, names in lower case: `allow`, `retry-after` … */
  readonly headers: Record<string, string>;

  /** @param message reaches the client: it must hold no secret and no part of the request body. */
  constructor(
    status: number,
    code: string,
    message: string,
    details: {
      field?: string | undefined;
      headers?: Record<string, string> | undefined;
      cause?: unknown;
    } = {},
  ) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.status = status;
    this.code = code;
    this.field = details.field;
    this.headers = details.headers ?? {};
  }
}

export const serviceUnavailable = (
  message = "The service is temporarily unavailable; try again later.",
): HttpError => new HttpError(503, "unavailable", message, { headers: { "retry-after": "5" } });

export const rateLimited = (seconds: number, reason: string): HttpError =>
  new HttpError(429, "rate_limited", `${reason}; try again in ${seconds} s.`, {
    headers: { "retry-after": String(seconds) },
  });

/**
 * Translates an error that a route has thrown into the response to send.
 *
 * @param statuses the status of each error code that a caller can cause; HttpError carries one.
 * @returns `undefined` for any other error: the service itself failed.
 */
export function toHttpError(
  thrown: unknown,
  statuses: Map<string, number> = new Map(),
): HttpError | undefined {
  if (thrown instanceof HttpError) return thrown;
  if (!isPostbellError(thrown)) return undefined;
  const { code, message, field, retryAfterMs } = thrown;
  const status = statuses.get(code);
  if (status === undefined) return undefined;
  const headers = retryAfterMs === undefined ? {} : { "retry-after": String(Math.ceil(retryAfterMs / 1000)) };
  return new HttpError(status, code, message, { field, headers });
}
