/** The one error class of the package, and all its codes. */

/** Marks the errors of every copy of the package, so that each copy knows those of the others. */
const BRAND = Symbol.for("postbell.error");

/** The codes of all errors. They are stable. */
export type ErrorCode =
  /** An option of a factory is unknown, of the wrong type or out of range. `field` is its path. */
  | "invalid_option"
  /** An argument of a call (an event, a resource, a cursor) is invalid. `field` is its path. */
  | "invalid_argument"
  /**
   * A value that a subscriber sent, or that was passed for one, is invalid. `field` is its name.
   */
  | "invalid_request"
  /** The address policy refuses the destination URL. */
  | "invalid_url"
  /** An event type is not in the catalogue. The message names the nearest one that is. */
  | "unknown_event_type"
  /**
   * An event with this id, or this `idempotencyKey`, and other content was emitted in the last 24
   * hours.
   */
  | "event_conflict"
  /**
   * The schema of an event type, one of a library, threw or did not answer within `limits.hookMs`.
   * Nothing was stored.
   */
  | "schema_unavailable"
  /** The notification exceeds `limits.notificationBytes` or `limits.entries`. */
  | "event_too_large"
  /** The account has `limits.enabledWebhooks` ENABLED webhooks, or `limits.webhooks` in all. */
  | "webhook_limit_reached"
  /** The webhook is DISABLED, so nothing is sent to it. Enable it first. */
  | "webhook_disabled"
  /** The webhook is ENABLED, and what was asked for has to be confirmed then. */
  | "webhook_enabled"
  /** An attempt of this delivery is in flight. Wait for its result, or resend with `force`. */
  | "attempt_in_flight"
  /** An event cannot be resent to this webhook again. */
  | "resend_limit_reached"
  /** Too many recoveries or tests of a webhook. Wait for `retryAfterMs`. */
  | "rate_limited"
  /** The `Idempotency-Key` was used with another body. */
  | "idempotency_key_reused"
  /** The webhook that this `Idempotency-Key` registered was deleted. */
  | "webhook_deleted"
  /** The secret of the webhook that this `Idempotency-Key` registered was rotated. */
  | "secret_rotated"
  /** Another API key of the account owns the webhook, and this one may not act for it. */
  | "webhook_owned_by_another_key"
  /** A hook of `access` threw, returned an invalid value or took too long. Nothing was done. */
  | "access_unavailable"
  /** The subscriber of a webhook may not read the record of an event. */
  | "record_not_readable"
  /** The file of an import cannot be read. The message names the line. */
  | "invalid_import"
  /** The webhook, delivery or other record does not exist, or belongs to another account. */
  | "not_found"
  /** The storage has reached a limit. Nothing was stored. */
  | "storage_full"
  /** The storage did not respond, or not in time. The call may or may not have taken effect. */
  | "storage_unavailable"
  /** The mail server did not accept a health notification. It is sent again later. */
  | "mail_not_sent"
  /** The call needs a started service. Call `start()` first. */
  | "not_started"
  /** `drain()` was called while the service delivers already. */
  | "already_started"
  /**
   * A body parser of the host consumed the raw bytes of a signature. The message says what to
   * change.
   */
  | "raw_body_unavailable";

/** A storage that does not say more has perhaps executed what failed. */
const DEFAULT_EFFECTS: Partial<Record<ErrorCode, "none" | "unknown">> = {
  schema_unavailable: "none",
  storage_full: "none",
  storage_unavailable: "unknown",
};

/**
 * The error that calls of the package throw or reject with. Test its `code` with {@link
 * isPostbellError}. `instanceof PostbellError` is true for the errors of every entry point, of both
 * module systems, and of other installed copies of the package.
 *
 * @example
 * try {
 *   await webhooks.emit(event);
 * } catch (error) {
 *   if (!isPostbellError(error, "storage_unavailable")) throw error;
 *   // With the same id, the event is stored once, even if the failed call has stored it.
 *   await emitLater({ ...event, id: error.eventId });
 * }
 */
export class PostbellError extends Error {
  override readonly name = "PostbellError";
  readonly code: ErrorCode;
  /**
   * The option, argument or request field at fault, as a path: `retry.intervalsMs[2]`,
   * `event_types[0]`.
   */
  readonly field: string | undefined;
  /** Set for `rate_limited`: when to try again, in milliseconds from now. */
  readonly retryAfterMs: number | undefined;
  /**
   * Set for `storage_unavailable`, `storage_full` and `schema_unavailable`: `none` if the call
   * changed nothing, for example because it was never sent; `unknown` if it may have taken effect.
   */
  readonly effect: "none" | "unknown" | undefined;
  /**
   * Set if `emit` could not store an event: its id, also one that Postbell generated. Emit the
   * event again with this id: it is then stored once, even if the failed call has stored it.
   */
  readonly eventId: string | undefined;
  /**
   * Set for `storage_unavailable` if it is known: why the storage cannot be used. It begins with a
   * code, such as `ECONNREFUSED 127.0.0.1:6379`, `WRONGPASS` or `28P01`, if there is one.
   */
  readonly reason: string | undefined;
  /**
   * True for `storage_unavailable` if trying again cannot help until somebody changes the
   * configuration: wrong credentials, missing privileges, a wrong TLS set-up.
   */
  readonly isPermanent: boolean;
  /**
   * Set for `storage_unavailable` if it is known: true if no connection to the storage can be made,
   * so that every other call would fail too; false if other calls may succeed.
   */
  readonly isOutage: boolean | undefined;

  /** For authors of storages and adapters. The package tests the code, never the class. */
  constructor(
    code: ErrorCode,
    message: string,
    details: {
      field?: string | undefined;
      retryAfterMs?: number | undefined;
      effect?: "none" | "unknown" | undefined;
      eventId?: string | undefined;
      reason?: string | undefined;
      isPermanent?: boolean | undefined;
      isOutage?: boolean | undefined;
      cause?: unknown;
    } = {},
  ) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = code;
    this.field = details.field;
    this.retryAfterMs = details.retryAfterMs;
    this.effect = details.effect ?? DEFAULT_EFFECTS[code];
    this.eventId = details.eventId;
    this.reason = details.reason;
    this.isPermanent = details.isPermanent ?? false;
    this.isOutage = details.isOutage;
  }
}

Object.defineProperty(PostbellError.prototype, BRAND, { value: true });
// Not in the class: where a class names itself, the build renames it, also in what Node prints.
Object.defineProperty(PostbellError, Symbol.hasInstance, {
  value(this: unknown, thrown: unknown): boolean {
    // Subclasses inherit this function. Each knows its instances only.
    if (this !== PostbellError) return Function.prototype[Symbol.hasInstance].call(this, thrown);
    return typeof thrown === "object" && thrown !== null && BRAND in thrown;
  },
});

/**
 * True for a Postbell error, and with this `code`, if there is one. Works for the errors of every
 * copy of the package, like `instanceof PostbellError`.
 */
export function isPostbellError(error: unknown, code?: ErrorCode): error is PostbellError {
  return error instanceof PostbellError && (code === undefined || error.code === code);
}
