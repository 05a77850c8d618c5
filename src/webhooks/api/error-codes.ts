/** The error codes of the registration API. Plain data. */

/** The codes that an error response with this status can have. */
export const errorCodes = {
  400: [
    "invalid_json",
    "invalid_request",
    "invalid_argument",
    "invalid_url",
    "unknown_event_type",
    "request_aborted",
  ],
  401: ["unauthorized"],
  403: ["webhook_owned_by_another_key", "record_not_readable"],
  404: ["not_found"],
  405: ["method_not_allowed"],
  408: ["request_timeout"],
  409: [
    "webhook_limit_reached",
    "idempotency_key_reused",
    "webhook_deleted",
    "secret_rotated",
    "webhook_disabled",
    "attempt_in_flight",
    "resend_limit_reached",
  ],
  413: ["body_too_large"],
  415: ["unsupported_media_type"],
  429: ["rate_limited"],
  500: ["raw_body_unavailable"],
  503: ["unavailable"],
} as const satisfies { readonly [status: number]: readonly string[] };

export type ErrorStatus = keyof typeof errorCodes;
