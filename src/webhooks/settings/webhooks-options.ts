/** The options object of `createWebhooks`. `docs/options.md` lists the same options as tables. */

import type { Clock } from "../../core/clock.js";
import type { Logger } from "../../core/logger.js";
import type { Telemetry } from "../../core/telemetry.js";
import type { DestinationOptions } from "../../outbound/destination-options.js";
import type { Access } from "../access.js";
import type { EventCatalogue } from "../event-types/catalogue.js";
import type { ClinicalEvents } from "../event-types/clinical-events.js";
import type { BodyForm } from "../events/notification.js";
import type { Storage } from "../store.js";
import type { DeliveryOptions, SignatureOptions } from "./delivery-options.js";
import type { Notify, ResolveReference } from "./hooks.js";
import type { EndpointHealthOptions, RetentionOptions, RetryOptions } from "./lifecycle-options.js";
import type { WebhookLimits } from "./limit-options.js";

/**
 * The options of `createWebhooks`. Only `storage` and `access` are required. An unknown option, or
 * a value out of range, is refused with `invalid_option`.
 *
 * @example
 * const options: WebhooksOptions = {
 *   storage: redisStorage({ url: "redis://localhost:6379" }),
 *   access: {
 *     authenticate: (apiKey) => findSubscriber(apiKey),
 *     canRead: (subscriber, resource) => mayRead(subscriber.id, resource),
 *   },
 *   retention: { ms: 7 * 86_400_000 },
 *   notify: smtpNotifier({ transport: "smtp://localhost", from: "hooks@example.org", to: owner }),
 *   logger: pino(),
 * };
 */
export interface WebhooksOptions<C extends EventCatalogue = Readonly<ClinicalEvents>> {
  /**
   * Required. Stores webhooks, events and deliveries: `memoryStorage()` for one process and tests,
   * `redisStorage()` for everything that must survive a restart.
   */
  readonly storage: Storage;
  /** Required. Authenticates API keys and decides what they may read. */
  readonly access: Access;
  /**
   * Maps each event type to the resource type of its record: `{ "order.placed": "ServiceRequest"
   * }`. Default: `clinicalEvents`, fifty types of clinical records such as `patient.created`. Give
   * your own table to emit other events; `{ ...clinicalEvents, … }` extends the default.
   */
  readonly events?: C | undefined;
  /**
   * Loads a referenced resource that `emit` was not given. Default: none, so only resources in
   * `related` become entries. Set it if the code that emits does not have the referenced records at
   * hand.
   */
  readonly resolveReference?: ResolveReference | undefined;
  /**
   * The form of the request body. `notification` (default): `{ id, timestamp, event }`. `envelope`:
   * `{ id, eventType, payload: { timestamp, id, event } }`, for subscribers that route by
   * `eventType`.
   */
  readonly body?: BodyForm | undefined;
  /** Which hosts may be reached. Default: public hosts over HTTPS. */
  readonly destinations?: DestinationOptions | undefined;
  /** How deliveries are attempted: concurrency, deadlines, leases. */
  readonly delivery?: DeliveryOptions | undefined;
  /** When failed deliveries are attempted again. Default: 14 attempts within 72 hours. */
  readonly retry?: RetryOptions | undefined;
  /** How deliveries are signed. */
  readonly signature?: SignatureOptions | undefined;
  /** When a failing endpoint is reported (default after 72 hours) and disabled (96 hours). */
  readonly health?: EndpointHealthOptions | undefined;
  /**
   * How long completed deliveries are kept. Default: 72 hours, at most 10 000 events per account.
   */
  readonly retention?: RetentionOptions | undefined;
  /** Limits on accounts, requests, events and hooks. */
  readonly limits?: WebhookLimits | undefined;
  /**
   * Reports failing endpoints to their owners. Default: nobody is told; endpoints are still
   * disabled.
   */
  readonly notify?: Notify | undefined;
  /**
   * `true`: `start()` rejects if the storage cannot be reached within four seconds, so that a wrong
   * address shows up at once. Default `true`. Set it to `false` for a process that may start before
   * its storage does: `start()` then resolves, and work begins once the storage is there.
   */
  readonly awaitStorage?: boolean | undefined;
  /** The source of time and chance. Default: the system's. Tests pass `manualClock()`. */
  readonly clock?: Clock | undefined;
  /**
   * Receives what an operator should know. pino, `fastify.log` and `console` fit. Default: warnings
   * and errors go to `console`, and so does each failed attempt unless `NODE_ENV` is `production`
   * or `test`; `false` logs nothing. Secrets, keys and records are never logged.
   * At most 60 lines a minute have the same message about the same webhook or account; the next
   * such line has the number of those left out as `omitted`.
   */
  readonly logger?: Logger | false | undefined;
  /**
   * Receives spans and metrics: `openTelemetry()` of `postbell/opentelemetry`, or
   * `prometheus().telemetry` of `postbell/prometheus`. Default: nothing is reported, at no cost.
   */
  readonly telemetry?: Telemetry | undefined;
}
