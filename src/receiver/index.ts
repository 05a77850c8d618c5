/**
 * The subscriber's side of webhooks: verifies a delivery, refuses replays, drops repetitions, and
 * calls your function with the event.
 *
 * @module postbell/receiver
 */

import { PostbellError } from "../core/errors.js";
import { guardedLogger } from "../core/logger.js";
import { type OptionValues, readOptions } from "../core/options.js";
import { parseUrl } from "../core/parse-url.js";
import { readBytes } from "../http/body.js";
import { BODY_MS } from "../http/body-chunks.js";
import { HttpError } from "../http/errors.js";
import type { HttpRequest, HttpResponse, Service } from "../http/types.js";
import { readPublicKey, verifyAsymmetricSignature } from "../signature/asymmetric.js";
import {
  SIGNATURE_HEADER,
  type SignatureProblem,
  type SignatureResult,
  verifySignature,
} from "../signature/signature.js";
import { createDeDuplicator } from "./de-duplicator.js";
import {
  type EventNotification,
  type PlainNotification,
  readNotification,
  readPlainNotification,
} from "./notification.js";
import { type PlainReceiverOptions, type ReceiverOptions, receiverOptions } from "./options.js";

export type { HttpRequest, HttpResponse, Service } from "../http/types.js";
export {
  type SignatureProblem,
  type SignatureResult,
  type VerifyInput,
  verifySignature,
} from "../signature/signature.js";
export type { ParsedResource } from "../webhooks/fhir.js";
export type {
  EventNotification,
  NotificationBundle,
  NotificationContext,
  PlainNotification,
} from "./notification.js";
export type { PlainReceiverOptions, ReceiverOptions } from "./options.js";

type AnyNotification = EventNotification | PlainNotification;

/** A delivery, for hosts that read the raw body themselves. */
export interface ReceivedRequest {
  /** The raw bytes. A string stands for its UTF-8 bytes. */
  readonly body: Uint8Array | string;
  /** Names in any case, as Node and most frameworks have them. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
}

/** Why a delivery was refused. Stable, and safe to log. */
export type ReceiveProblem =
  | SignatureProblem
  /** The signature is valid, but the body is not a notification. */
  | "invalid_notification"
  /** The same event is being handled at this moment, and its result is not known yet. */
  | "event_underway"
  /** `onEvent` threw; see `cause`. */
  | "handler_failed"
  /** A body parser of the host consumed the raw bytes. */
  | "raw_body_unavailable";

/** The result of a delivery, and how to respond to it. */
export type ReceiveResult<E = EventNotification> =
  /**
   * Respond with a 2xx. `duplicate`: the event was handled before, and `onEvent` was not called
   * again.
   */
  | { readonly ok: true; readonly duplicate: boolean; readonly event: E }
  /** Respond with `status`. The message is safe to show. */
  | {
      readonly ok: false;
      readonly code: ReceiveProblem;
      readonly status: number;
      readonly message: string;
      readonly cause?: unknown;
    };

/** A service to mount with any adapter, and the same as a function for your own routes. */
export interface Receiver<E = EventNotification> extends Service {
  /**
   * Verifies and handles one delivery. Never rejects.
   *
   * @example
   * const result = await receiver.receive({ body: rawBody, headers: request.headers });
   * response.statusCode = result.ok ? 204 : result.status;
   */
  receive(request: ReceivedRequest): Promise<ReceiveResult<E>>;
}

/**
 * Creates the receiving side of a webhook.
 *
 * Guarantee: the response is 2xx only if `onEvent` has finished with the event, now or earlier.
 * Within the window of `duplicates`, and within one process, `onEvent` is not called again for an
 * event that it has finished. The window is in memory: after a restart, or in another process,
 * `onEvent` may be called for the same event again.
 *
 * Responses:
 *
 * - 204: handled, now or earlier.
 * - 400: signature or body refused.
 * - 405: not a POST. 408: the body took longer than 10 seconds. 413: the body is too large.
 * - 409: the same event is being handled at this moment. Not 503, which tells proxies that the
 *   endpoint is down. 415: a body parser of the host consumed a body that is not JSON.
 * - 500: `onEvent` threw, or a body parser of the host consumed the raw bytes.
 *
 * @throws `invalid_option`.
 *
 * @example
 * const receiver = createReceiver({
 *   secrets: process.env.WEBHOOK_SECRET,
 *   onEvent: async ({ event }) => queue.add(event["hub.event"], event.context[0].resource),
 * });
 * app.use("/webhooks", expressAdapter(receiver)); // before any body parser
 */
export function createReceiver(options: ReceiverOptions): Receiver;
export function createReceiver(options: PlainReceiverOptions): Receiver<PlainNotification>;
export function createReceiver(
  options: ReceiverOptions | PlainReceiverOptions,
): Receiver<EventNotification | PlainNotification> {
  const settings = readOptions("createReceiver", receiverOptions, options);
  const { onEvent, bodyLimitBytes, clock } = settings;
  const verify = createVerification(settings);
  if (onEvent === undefined) throw missing("onEvent");
  const path = settings.path === undefined ? undefined : trimSlash(settings.path);
  const logger = guardedLogger(settings.logger);
  const seen = createDeDuplicator({ ...settings.duplicates, clock });

  const toProblem = (code: SignatureProblem): ReceiveResult & { ok: false } =>
    code === "malformed_header" && settings.publicKeys !== undefined
      ? { ...problem(code), message: MALFORMED_STANDARD_HEADERS }
      : problem(code);

  const read = settings.body === "plain" ? readPlainNotification : readNotification;

  const receive = async ({ body, headers }: ReceivedRequest): Promise<ReceiveResult<AnyNotification>> => {
    if (typeof body !== "string" && !(body instanceof Uint8Array)) return problem("raw_body_unavailable");
    const signature = verify(body, headers);
    if (!signature.ok) return toProblem(signature.code);
    const event = read(body);
    if (event === undefined) return problem("invalid_notification");
    const claim = seen.claim(event.id);
    if (claim === "done") return { ok: true, duplicate: true, event };
    if (claim === "in_flight") return problem("event_underway");
    try {
      await onEvent(event);
    } catch (cause) {
      seen.release(event.id);
      return problem("handler_failed", cause);
    }
    seen.confirm(event.id);
    return { ok: true, duplicate: false, event };
  };

  const handle = async (request: HttpRequest): Promise<HttpResponse | undefined> => {
    if (!isOurs(request)) return undefined;
    if (request.method !== "POST") {
      return failure(405, "method_not_allowed", "Send deliveries with POST.", { allow: "POST" });
    }
    let result: ReceiveResult<AnyNotification>;
    try {
      const body = await readBytes(request, { limit: bodyLimitBytes, pace: { clock, ms: BODY_MS } });
      result = await receive({ body, headers: request.headers });
    } catch (error) {
      if (error instanceof HttpError) return failure(error.status, error.code, error.message);
      // Only a delivery, which is signed JSON, shows that the host's body parsers are in the way.
      if (!/^application\/json\b/i.test(request.headers["content-type"] ?? ""))
        return failure(415, "unsupported_media_type", "Deliveries are application/json.");
      result = isSigned(request) ? problem("raw_body_unavailable", error) : problem("missing_header");
    }
    if (result.ok) return { status: 204, headers: {}, body: null };
    report(result);
    return failure(result.status, result.code, result.message);
  };

  const signatureName =
    settings.publicKeys === undefined ? settings.header.toLowerCase() : "webhook-signature";
  const isSigned = ({ headers }: HttpRequest): boolean => readHeader(headers, signatureName) !== undefined;

  /**
   * Without `path`, a route of the host decides. A host that hands over the whole path, such as
   * `node:http`, cannot say that it has a route, so there the signature header tells a delivery
   * from the requests that are not for the receiver.
   */
  const isOurs = (request: HttpRequest): boolean => {
    const found = trimSlash(request.path);
    if (path !== undefined) return found === path;
    if (found === "" || request.isRouted === true) return true;
    return request.method === "POST" && isSigned(request) && parseUrl(request.baseUrl)?.pathname === "/";
  };

  const report = ({ status, code, message, cause }: ReceiveResult & { ok: false }): void => {
    if (status >= 500) logger.error(cause === undefined ? { code } : { code, error: cause }, message);
    else logger.warn({ code }, message);
  };

  return Object.freeze({ handle, receive });
}

type Verification = (body: ReceivedRequest["body"], headers: ReceivedRequest["headers"]) => SignatureResult;

/** By secrets or by public keys, never by either: a sender must not choose the weaker one. */
function createVerification({
  secrets,
  publicKeys,
  header,
  toleranceSeconds,
  clock,
}: OptionValues<typeof receiverOptions>): Verification {
  if (publicKeys === undefined) {
    if (secrets === undefined) throw missing("secrets");
    const list = typeof secrets === "string" ? [secrets] : [...secrets];
    const name = header.toLowerCase();
    return (body, headers) =>
      verifySignature({
        body,
        header: readHeader(headers, name),
        secrets: list,
        toleranceSeconds,
        now: clock.now(),
      });
  }
  if (secrets !== undefined || header !== SIGNATURE_HEADER) {
    const other = secrets === undefined ? "header" : "secrets";
    const message = `createReceiver: publicKeys cannot be combined with ${other}: leave out one of them.`;
    throw new PostbellError("invalid_option", message, { field: "publicKeys" });
  }
  const keys = [publicKeys].flat().flatMap((key) => readPublicKey(key) ?? []);
  return (body, headers) =>
    verifyAsymmetricSignature({
      body,
      id: readHeader(headers, "webhook-id"),
      timestamp: readHeader(headers, "webhook-timestamp"),
      signature: readHeader(headers, "webhook-signature"),
      keys,
      toleranceSeconds,
      now: clock.now(),
    });
}

function missing(option: string): PostbellError {
  return new PostbellError("invalid_option", `createReceiver: ${option} is required.`, { field: option });
}

const PROBLEMS: Record<ReceiveProblem, [status: number, message: string]> = {
  missing_header: [400, "The delivery has no signature."],
  malformed_header: [
    400,
    "The signature header must have the form 't=<seconds>, s=<64 hexadecimal digits>'.",
  ],
  no_match: [400, "The signature does not match this body and secret."],
  timestamp_out_of_tolerance: [400, "The time of the signature is too far from now."],
  invalid_notification: [400, "The body is not an event notification."],
  event_underway: [409, "This event is being handled at this moment."],
  handler_failed: [500, "The event could not be handled; deliver it again."],
  raw_body_unavailable: [
    500,
    "The raw bytes of the body are needed: read them before any body parser, or make it keep them.",
  ],
};

const MALFORMED_STANDARD_HEADERS =
  "webhook-id, webhook-timestamp and webhook-signature must have the form that Standard Webhooks defines.";

function problem(code: ReceiveProblem, cause?: unknown): ReceiveResult & { ok: false } {
  const [status, message] = PROBLEMS[code];
  return cause === undefined
    ? { ok: false, code, status, message }
    : { ok: false, code, status, message, cause };
}

function failure(
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

function trimSlash(path: string): string {
  return path.endsWith("/") ? path.slice(0, -1) : path;
}

function readHeader(headers: ReceivedRequest["headers"], name: string): string | undefined {
  const values = Object.entries(headers)
    .filter(([key]) => key.toLowerCase() === name)
    .flatMap(([, held]) => held ?? []);
  return values.length === 0 ? undefined : values.join(", ");
}
