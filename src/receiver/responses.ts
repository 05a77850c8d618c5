/** The responses of a receiver to the deliveries that it refuses. */

import type { HttpResponse } from "../http/types.js";
import type { SignatureProblem } from "../signature/signature.js";

/** Why a delivery was refused. Stable, and safe to log. */
export type ReceiveProblem =
  | SignatureProblem
  /**
   * The signature is valid, but the body is not a notification, or its `id` is no text of 1 to 256
   * characters. Also if a function of the scheme threw; see `cause`.
   */
  | "invalid_notification"
  /** The same event is being handled at this moment, and its result is not known yet. */
  | "event_underway"
  /** `onEvent` threw; see `cause`. */
  | "handler_failed"
  /** The `storage` of the receiver failed, so that nobody knows if the event was handled. */
  | "storage_failed"
  /** A body parser of the host consumed the raw bytes. */
  | "raw_body_unavailable";

/** Respond with `status`. The message is safe to show. */
export interface ReceiveFailure {
  readonly ok: false;
  readonly code: ReceiveProblem;
  readonly status: number;
  readonly message: string;
  readonly cause?: unknown;
}

const PROBLEMS: Record<ReceiveProblem, [status: number, message: string]> = {
  missing_header: [400, "The delivery has no signature."],
  malformed_header: [400, "The signature header does not have the form of its scheme."],
  no_match: [400, "The signature does not match this body and secret."],
  timestamp_out_of_tolerance: [400, "The time of the signature is too far from now."],
  invalid_notification: [400, "The body is not an event notification."],
  event_underway: [409, "This event is being handled at this moment."],
  handler_failed: [500, "The event could not be handled; deliver it again."],
  storage_failed: [500, "The storage of the receiver failed; deliver the event again."],
  raw_body_unavailable: [
    500,
    "The raw bytes of the body are needed: read them before any body parser, or make it keep them.",
  ],
};

/** The form of the header, for schemes of Postbell. */
const HEADER_FORMS: { [header: string]: string } = {
  "webhook-signature":
    "webhook-id, webhook-timestamp and webhook-signature must have the form that Standard Webhooks defines.",
  "stripe-signature": "Stripe-Signature must have the form 't=<seconds>,v1=<64 hexadecimal digits>'.",
  "x-hub-signature-256": "X-Hub-Signature-256 must have the form 'sha256=<64 hexadecimal digits>'.",
  "x-shopify-hmac-sha256": "X-Shopify-Hmac-Sha256 must be 44 characters of Base64.",
  "x-slack-signature":
    "X-Slack-Signature must have the form 'v0=<64 hexadecimal digits>', and X-Slack-Request-Timestamp seconds.",
};

export function problem(code: ReceiveProblem, cause?: unknown): ReceiveFailure {
  const [status, message] = PROBLEMS[code];
  return cause === undefined
    ? { ok: false, code, status, message }
    : { ok: false, code, status, message, cause };
}

/**
 * Names the form of the header that was expected.
 *
 * @throws `TypeError` for another value, which a scheme of the host returned.
 */
export function signatureProblem(code: SignatureProblem, header: string): ReceiveFailure {
  if (!Object.hasOwn(PROBLEMS, code))
    throw new TypeError(`verify must return undefined or a code such as "no_match" (got ${typeof code})`);
  if (code !== "malformed_header") return problem(code);
  const form = Object.hasOwn(HEADER_FORMS, header) ? HEADER_FORMS[header] : undefined;
  const message = form ?? "The signature header must have the form 't=<seconds>, s=<64 hexadecimal digits>'.";
  return { ...problem(code), message };
}

export function failure(
  status: number,
  code: string,
  message: string,
  headers: Record<string, string> = {},
): HttpResponse {
  return {
    status,
    headers: { "content-type": "application/json; charset=utf-8", "cache-control": "no-store", ...headers },
    body: JSON.stringify({ error: { code, message } }),
  };
}
