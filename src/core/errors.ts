/** The one error class of the package, and every code it can carry. Test the code, not `instanceof`: a package may be loaded twice. */

/** What is at fault, as a stable word. */
export type ErrorCode =
  /** An option of a factory is unknown, of the wrong type or out of range. `field` is its path. */
  | "invalid_option"
  /** An argument of a call in-process (an event, a resource, a cursor) cannot be used. `field` is its path. */
  | "invalid_argument"
  /** A value that a subscriber sent, or that was given for one, cannot be used. `field` is its name. */
  | "invalid_request"
  /** The destination URL is refused by the policy. */
  | "invalid_url"
  /** An event type is not in the catalogue; the message names the nearest one that is. */
  | "unknown_event_type"
  /** An event with this id and other content was emitted in the last 24 hours. */
  | "event_conflict"
  /** The notification would be larger than `limits.notificationBytes` or hold more than `limits.entries` entries. */
  | "event_too_large"
  /** The account has its fifteen ENABLED webhooks. */
  | "webhook_limit_reached"
  /** Nothing is sent to a webhook that is DISABLED: enable it first. */
  | "webhook_disabled"
  /** An event was sent again to a webhook as often as it may be. */
  | "resend_limit_reached"
  /** Recoveries, or tests, of a webhook were asked for too often; `retryAfterSeconds` says when to ask again. */
  | "rate_limited"
  /** The `Idempotency-Key` came before with another body. */
  | "idempotency_key_reused"
  /** The webhook that this `Idempotency-Key` registered was deleted since. */
  | "webhook_deleted"
  /** The secret that was made for this `Idempotency-Key` was rotated since. */
  | "secret_rotated"
  /** Another API key of the account owns the webhook, and this one may not act for it. */
  | "webhook_owned_by_another_key"
  /** A hook of `access` threw, gave no usable answer, or none in time: nothing was done. */
  | "access_unavailable"
  /** The file of an import cannot be read; the message names the line. */
  | "invalid_import"
  | "not_found"
  /** The storage has reached a bound; nothing was stored. */
  | "storage_full"
  /** The storage did not answer in time, or not at all; whether something was stored is unknown. */
  | "storage_unavailable"
  /** The mail server did not take a notice; it is sent again later. */
  | "mail_not_sent"
  /** A call needs a running dispatcher: call `start()` first. */
  | "not_started"
  /** The host's body parser consumed the raw bytes that a signature covers; the message says what to change. */
  | "raw_body_unavailable";

/** What every call of the package throws, or rejects with, on purpose. Test its `code`, with {@link isPostbellError}. */
export class PostbellError extends Error {
  override readonly name = "PostbellError";
  readonly code: ErrorCode;
  /** The option, argument or request field at fault, as a path: `retry.intervalsMs[2]`, `event_types[0]`. */
  readonly field: string | undefined;
  /** Of `rate_limited`. */
  readonly retryAfterSeconds: number | undefined;

  /** For storages and adapters of others: the package tests the code, never the class. */
  constructor(
    code: ErrorCode,
    message: string,
    details: {
      field?: string | undefined;
      retryAfterSeconds?: number | undefined;
      cause?: unknown;
    } = {},
  ) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = code;
    this.field = details.field;
    this.retryAfterSeconds = details.retryAfterSeconds;
  }
}

/** Whether `error` is a Postbell error (with this code, if one is given), also when the package was loaded twice. */
export function isPostbellError(error: unknown, code?: ErrorCode): error is PostbellError {
  return (
    error instanceof Error &&
    error.name === "PostbellError" &&
    (code === undefined || (error as PostbellError).code === code)
  );
}
