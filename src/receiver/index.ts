/**
 * The subscriber's side of webhooks: verifies a delivery, refuses replays, drops repetitions, and
 * calls your function with the event.
 *
 * @module postbell/receiver
 */

import { PostbellError } from "../core/errors.js";
import { guardedLogger } from "../core/logger.js";
import { type OptionValues, readOptions } from "../core/options.js";
import type { Service } from "../http/types.js";
import type { EventCatalogue } from "../webhooks/event-types/catalogue.js";
import { CatchUp, type CatchUpResult } from "./catch-up.js";
import type { EventNotification, NotificationOf } from "./notification.js";
import {
  type PlainReceiverOptions,
  type ReceiverOptions,
  receiverOptions,
  type SchemeReceiverOptions,
} from "./options.js";
import { createPostbellScheme, missingOption } from "./postbell-scheme.js";
import { EventReceiver, type ReceiveResult } from "./receiver.js";
import { hasEventId, type ReceivedRequest, type WebhookScheme } from "./scheme.js";

export type { HttpRequest, HttpResponse, Service } from "../http/types.js";
export {
  type SignatureProblem,
  type SignatureResult,
  type VerifyInput,
  verifySignature,
} from "../signature/signature.js";
export type { EventCatalogue } from "../webhooks/event-types/catalogue.js";
export type { ParsedResource } from "../webhooks/fhir.js";
export type { CatchUpResult } from "./catch-up.js";
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
  /** Begins to catch up, if the option `catchUp` is set. Does not wait for the first run. */
  start(): Promise<void>;
  /**
   * Ends catching up, after the event that is being handled; waits at most `graceMs`, 10 s.
   * `start()` and `catchUp()` can be called again.
   */
  stop(options?: { graceMs?: number | undefined }): Promise<void>;
  /**
   * Fetches the missed events now, such as after an outage that you know of. If that goes wrong, it
   * is logged, and `isComplete` is false.
   *
   * @throws `invalid_option` without the option `catchUp`.
   */
  catchUp(): Promise<CatchUpResult>;
  /** `stop()`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
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
  options: ReceiverOptions | PlainReceiverOptions | SchemeReceiverOptions<{ id: string }>,
): Receiver<{ readonly id: string }> {
  const settings = readOptions("createReceiver", receiverOptions, options);
  const { onEvent, path, toleranceMs, limits, duplicates, storage, clock } = settings;
  const scheme = chooseScheme(options, settings);
  if (onEvent === undefined) throw missingOption("onEvent");
  const receiver = new EventReceiver({
    scheme,
    onEvent: onEvent as (event: { id: string }) => unknown,
    path,
    toleranceMs,
    limits,
    duplicates,
    storage,
    clock,
    logger: guardedLogger(settings.logger),
  });
  const catchUp = createCatchUp(settings, scheme, receiver);
  return Object.freeze<Receiver<{ readonly id: string }>>({
    handle: (request) => receiver.handle(request),
    receive: (request) => receiver.receive(request),
    start: async () => catchUp?.start(),
    stop: async ({ graceMs = GRACE_MS } = {}) => catchUp?.stop(graceMs),
    catchUp: async () => {
      if (catchUp === undefined) throw missingOption("catchUp");
      return catchUp.run();
    },
    [Symbol.asyncDispose]: async () => catchUp?.stop(GRACE_MS),
  });
}

const GRACE_MS = 10_000;

/** Returns `undefined` if the option `catchUp` is not set. */
function createCatchUp<E extends { id: string }>(
  { catchUp, storage, clock, logger, toleranceMs }: OptionValues<typeof receiverOptions>,
  scheme: WebhookScheme<E>,
  receiver: EventReceiver<E>,
): CatchUp<E> | undefined {
  const { url, apiKey, everyMs, allowHttp } = catchUp;
  if (url === undefined && apiKey === undefined) return undefined;
  if (url === undefined) throw missingOption("catchUp.url");
  if (apiKey === undefined) throw missingOption("catchUp.apiKey");
  if (url.startsWith("http:") && !allowHttp)
    throw invalidCatchUp(
      "catchUp.url",
      "catchUp.url must begin with https:; catchUp.allowHttp is for development.",
    );
  if (storage === undefined) {
    const reason = "otherwise each start would handle all events of the feed again";
    throw invalidCatchUp("storage", `catchUp needs storage, such as pgReceived({ pool }): ${reason}.`);
  }
  return new CatchUp({
    url,
    apiKey,
    everyMs,
    read({ id, body }) {
      const event = scheme.read({
        body,
        // Standard Webhooks has the id in a header.
        header: (name) => (name === "webhook-id" ? id : undefined),
        toleranceMs,
        now: clock.now(),
      });
      return hasEventId(event) ? event : undefined;
    },
    take: (event) => receiver.take(event),
    storage,
    clock,
    logger: guardedLogger(logger),
  });
}

const invalidCatchUp = (field: string, message: string): PostbellError =>
  new PostbellError("invalid_option", `createReceiver: ${message}`, { field });

/** The options that say how Postbell signs, and that a scheme of another sender replaces. */
const POSTBELL_ONLY = ["secrets", "publicKeys", "header", "body"] as const;

function chooseScheme(
  options: object,
  settings: Parameters<typeof createPostbellScheme>[0] & {
    verify: WebhookScheme<{ id: string }> | undefined;
  },
): WebhookScheme<{ id: string }> {
  if (settings.verify === undefined) return createPostbellScheme(settings);
  const extra = POSTBELL_ONLY.find((name) => (options as Record<string, unknown>)[name] !== undefined);
  if (extra === undefined) return settings.verify;
  throw new PostbellError(
    "invalid_option",
    `createReceiver: verify cannot be combined with ${extra}: leave out one of them.`,
    { field: extra },
  );
}
