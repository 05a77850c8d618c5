/**
 * The subscriber's side of webhooks: verifies a delivery, refuses replays, drops repetitions, and
 * calls your function with the event.
 *
 * @module postbell/receiver
 */

import { PostbellError } from "../core/errors.js";
import { guardedLogger } from "../core/logger.js";
import { readOptions } from "../core/options.js";
import type { Service } from "../http/types.js";
import type { EventCatalogue } from "../webhooks/event-types/catalogue.js";
import type { EventNotification, NotificationOf } from "./notification.js";
import {
  type PlainReceiverOptions,
  type ReceiverOptions,
  receiverOptions,
  type SchemeReceiverOptions,
} from "./options.js";

import { createPostbellScheme, missingOption } from "./postbell-scheme.js";
import { EventReceiver, type ReceiveResult } from "./receiver.js";
import type { ReceivedRequest, WebhookScheme } from "./scheme.js";

export type { HttpRequest, HttpResponse, Service } from "../http/types.js";
export {
  type SignatureProblem,
  type SignatureResult,
  type VerifyInput,
  verifySignature,
} from "../signature/signature.js";
export type { EventCatalogue } from "../webhooks/event-types/catalogue.js";
export type { ParsedResource } from "../webhooks/fhir.js";
export type {
  EventNotification,
  NotificationBundle,
  NotificationContext,
  NotificationOf,
  PlainNotification,
} from "./notification.js";
export type { PlainReceiverOptions, ReceiverOptions, SchemeReceiverOptions } from "./options.js";
export { github, type ProviderEvent, shopify, slack, standardWebhooks, stripe } from "./providers.js";
export type { ReceivedEvents } from "./received-events.js";
export type { ReceiveResult } from "./receiver.js";
export type { ReceiveFailure, ReceiveProblem } from "./responses.js";
export type { ReceivedRequest, SignedRequest, WebhookScheme } from "./scheme.js";

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
 * Creates the receiving side of a webhook, for deliveries of Postbell and, with `verify`, for those
 * of Stripe, GitHub, Shopify, Slack and all that follow Standard Webhooks.
 *
 * Guarantee: the response is 2xx only if `onEvent` has finished with the event, now or earlier.
 * Within the window of `duplicates`, `onEvent` is not called again for an event that it has
 * finished. Without `storage` the window is in memory: after a restart, or in another process,
 * `onEvent` may be called for the same event again.
 *
 * Responses:
 *
 * - 204: handled, now or earlier.
 * - 400: signature or body refused.
 * - 405: not a POST. 408: the body took longer than 10 seconds. 413: the body is too large.
 * - 409: the same event is being handled at this moment. Not 503, which tells proxies that the
 *   endpoint is down. 415: a body parser of the host consumed a body that is not JSON.
 * - 500: `onEvent` or `storage` failed, or a body parser of the host consumed the raw bytes.
 *
 * @throws `invalid_option`.
 *
 * @example
 * const receiver = createReceiver({
 *   secrets: process.env.WEBHOOK_SECRET,
 *   onEvent: async ({ event }) => queue.add(event["hub.event"], event.context[0].resource),
 * });
 * app.use("/webhooks", expressAdapter(receiver)); // before any body parser
 *
 * @example
 * // Plain events, with the catalogue of the sender: `data` has the type that `type` says.
 * const receiver = createReceiver<typeof events>({
 *   secrets: process.env.WEBHOOK_SECRET,
 *   body: "plain",
 *   onEvent: (event) => {
 *     if (event.type === "order.paid") ship(event.data.order);
 *   },
 * });
 *
 * @example
 * const receiver = createReceiver({
 *   verify: stripe<Stripe.Event>(process.env.STRIPE_WEBHOOK_SECRET),
 *   onEvent: async ({ id, type, payload }) => queue.add(type, payload, { jobId: id }),
 * });
 */
export function createReceiver<E extends { readonly id: string }>(
  options: SchemeReceiverOptions<E>,
): Receiver<E>;
export function createReceiver<C = EventCatalogue>(
  options: PlainReceiverOptions<C>,
): Receiver<NotificationOf<C>>;
export function createReceiver(options: ReceiverOptions): Receiver;
export function createReceiver(
  options: ReceiverOptions | PlainReceiverOptions | SchemeReceiverOptions<{ readonly id: string }>,
): Receiver<{ readonly id: string }> {
  const settings = readOptions("createReceiver", receiverOptions, options);
  const { onEvent, path, toleranceMs, limits, duplicates, storage, clock } = settings;
  const scheme = chooseScheme(options, settings);
  if (onEvent === undefined) throw missingOption("onEvent");
  const receiver = new EventReceiver({
    scheme,
    onEvent: onEvent as (event: { readonly id: string }) => unknown,
    path,
    toleranceMs,
    limits,
    duplicates,
    storage,
    clock,
    logger: guardedLogger(settings.logger),
  });
  return Object.freeze<Receiver<{ readonly id: string }>>({
    handle: (request) => receiver.handle(request),
    receive: (request) => receiver.receive(request),
  });
}

/** The options that say how Postbell signs, and that a scheme of another sender replaces. */
const POSTBELL_ONLY = ["secrets", "publicKeys", "header", "body"] as const;

function chooseScheme(
  options: object,
  settings: Parameters<typeof createPostbellScheme>[0] & {
    verify: WebhookScheme<{ readonly id: string }> | undefined;
  },
): WebhookScheme<{ readonly id: string }> {
  if (settings.verify === undefined) return createPostbellScheme(settings);
  const extra = POSTBELL_ONLY.find((name) => (options as Record<string, unknown>)[name] !== undefined);
  if (extra === undefined) return settings.verify;
  throw new PostbellError(
    "invalid_option",
    `createReceiver: verify cannot be combined with ${extra}: leave out one of them.`,
    { field: extra },
  );
}
