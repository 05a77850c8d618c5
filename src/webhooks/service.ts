/** `createWebhooks`: puts the parts of the webhook service together. */

import { systemClock } from "../core/clock.js";
import { guardedLogger, toServiceLogger } from "../core/logger.js";
import { createStorageCircuit } from "../core/storage-circuit.js";
import { countStoreErrors, guardedTelemetry } from "../core/telemetry.js";
import type { HealthStatus } from "../health/health-status.js";
import { cacheDocument } from "../http/openapi-document.js";
import type { HttpRequest, HttpResponse } from "../http/types.js";
import type { JsonObject } from "../schema/types.js";
import type { Operator, Subscriber } from "./access.js";
import { type Accounts, createAccounts, type Events } from "./accounts.js";
import { createApiHandlers, type SubscriberHandler } from "./api/api-handler.js";
import { describeWebhooksOpenApi } from "./api/openapi.js";
import type { SubscriberCalls } from "./api/operation.js";
import { createAudit } from "./audit.js";
import { readActor } from "./call-arguments.js";
import type { ServiceBase } from "./config/config.js";
import type { WebhooksOptions } from "./config/webhooks-options.js";
import { createAttempts } from "./delivery/attempt.js";
import type { Deliveries } from "./delivery/deliveries.js";
import { createDeliveryLog } from "./delivery/delivery-log.js";
import { createHealthSteps } from "./delivery/endpoint-health.js";
import { buildSchedule } from "./delivery/retry-schedule.js";
import { DeliveryWorker } from "./delivery/worker.js";
import { createAppendEvents, createEmit } from "./emit/emit.js";
import type { EmitOptions, EmitResult, Emittable, EventHint } from "./emit/event-input.js";
import { type AnyCatalogue, type EventCatalogue, readCatalogue } from "./event-types/catalogue.js";
import type {
  CatalogueEntries,
  DefaultParts,
  EventName,
  ServiceCatalogue,
} from "./event-types/event-data.js";
import { createSealer, guardWebhookStore } from "./guarded-store.js";
import { evaluateHealthStatus } from "./health-status.js";
import { createLifecycle, type StopOptions } from "./lifecycle.js";
import { limitLogger } from "./log-limit.js";
import { readConfig } from "./options.js";
import { createEntitlement } from "./registrations/entitlement.js";
import { createRegistrations } from "./registrations/registration-calls.js";
import type { Registrations } from "./registrations/registrations.js";
import { createSender } from "./sender.js";
import { createStartReminder } from "./start-reminder.js";
import type { StorageContext } from "./store.js";
import type { AuditLog } from "./webhook.js";

export type {
  AnyEventInput,
  CatalogueEvent,
  EmitOptions,
  Emitted,
  EventInput,
  PlainEventInput,
} from "./emit/event-input.js";

/** The webhook service for one subscriber: `webhooks.as(subscriber)`. An adapter can mount it. */
export interface SubscriberWebhooks extends SubscriberCalls {
  /**
   * Serves the same routes as `handle` of the service, for this subscriber. `access.authenticate`
   * is not called, and no API key is read. Requests do not count for `limits.requestsPerMinute`:
   * limit them yourself. The portal uses it. Never rejects.
   *
   * @param options.onCost called with the number of further requests that a costly one is worth.
   *
   * @example
   * const forSession: Service = {
   *   handle: (request) => webhooks.as(expressRequest(request).session.subscriber).handle(request),
   * };
   * app.use("/my/webhooks", expressAdapter(forSession));
   */
  readonly handle: SubscriberHandler;
}

/**
 * The webhook service that {@link createWebhooks} returns.
 *
 * @typeParam C its catalogue, so that `emit` checks events at compile time. Default: any.
 *
 * @example
 * const events = { "order.paid": { schema: z.object({ order: z.string() }) } };
 * function announce(webhooks: Webhooks<typeof events>, order: string) {
 *   return webhooks.emit({ type: "order.paid", account: "shop-7", data: { order } });
 * }
 */
export interface Webhooks<C extends EventCatalogue = AnyCatalogue> {
  /** Serves the registration API. An adapter mounts it. Never rejects. */
  handle(request: HttpRequest): Promise<HttpResponse | undefined>;
  /**
   * Returns the calls of a subscriber: `registrations`, `deliveries`, `audit` and `handle`, with
   * the rights of its API key and for its account only. An {@link Operator} manages all webhooks of
   * the account, and the audit log has the operator's name.
   *
   * @throws `invalid_argument` if `who` has no valid `id` and `account`, so that a session without
   * a subscriber never acts as the host.
   *
   * @example
   * const mine = webhooks.as(session.subscriber);
   * await mine.registrations.create({ url: "https://example.org/hooks" });
   * for await (const { id } of mine.deliveries.list({ state: "failed" })) console.log(id);
   */
  as(who: Subscriber | Operator): SubscriberWebhooks;
  /**
   * Stores an event, with a delivery for each ENABLED webhook of the account that subscribes to it:
   * all of it, or nothing. Resolves once it is stored. Deliveries are made in the background,
   * wherever a service on this storage is started.
   *
   * Guarantee: at-least-once delivery from the moment it resolves. If it rejects and you cannot
   * tell whether the event was stored, emit it again with the same `idempotencyKey` or `id`.
   *
   * A list of events gives a list of results, in the same order. All events are checked before the
   * first is stored. They are stored in order, many in one call of the storage, and not all or
   * nothing: an error names the item where storing stopped, and says how many were stored. `field`
   * is `[2].type` if an item was refused, `[2]` if storing stopped at it.
   *
   * With a storage on Postgres or SQLite, `transaction` writes it in a transaction that you began.
   *
   * @throws `unknown_event_type`, `invalid_argument`, `event_too_large`, `event_conflict`,
   * `schema_unavailable`, `storage_full`, `storage_unavailable`.
   *
   * @example
   * const { id, deliveries } = await webhooks.emit({
   *   type: "patient.updated",
   *   account: "clinic-7",
   *   resource: patient,
   *   related: [practitioner],
   * });
   */
  emit<const E extends EventHint<EventName<C>> | readonly EventHint<EventName<C>>[]>(
    event: Emittable<C, E>,
    options?: EmitOptions,
  ): Promise<EmitResult<E>>;
  /** Creates, reads, changes and removes webhooks from the host's code. */
  readonly registrations: Registrations;
  /** The delivery log: read deliveries, resend, recover missed events, send a test. */
  readonly deliveries: Deliveries;
  /** Lists accounts for operators, and erases all that is stored of one. */
  readonly accounts: Accounts;
  /** Erases stored events. */
  readonly events: Events;
  /** The audit log: who did what to the webhooks of an account. Kept with `limits.auditEntries`. */
  readonly audit: AuditLog;
  /**
   * When the attempts of a delivery are due, in milliseconds after the first one, without jitter.
   * It follows from the `retry` option.
   */
  schedule(): readonly number[];
  /**
   * Returns the OpenAPI 3.1 document of the registration API and of the notifications, the same as
   * `GET /v1/openapi.json`. `baseUrl` is that of the mount point, default `/`.
   */
  openApi(options?: { baseUrl?: string | undefined }): JsonObject;
  /**
   * Returns the names of the catalogue, sorted: the values that `emit` and `event_types` accept.
   */
  eventTypes(): readonly EventName<C>[];
  /**
   * Starts to deliver. Calling it again changes nothing. Rejects with `storage_unavailable`, and
   * starts nothing, if the storage cannot be reached within four seconds; see `awaitStorage`.
   */
  start(): Promise<void>;
  /**
   * Stops delivering. Attempts in flight get `graceMs` (default 10 000) to finish, or until
   * `signal` is aborted; the others are delivered later. `start` may be called again. Call it also
   * at the end of a process that only emits: without `start` and `stop`, such a process warns when
   * it ends that it delivered nothing.
   */
  stop(options?: StopOptions): Promise<void>;
  /** Calls `stop()`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
  /**
   * Attempts what is due, without `start()`, until nothing is due, the time is over or the number
   * is reached. For processes that live for one request or one job: serverless functions and cron.
   *
   * It resolves when its attempts are settled, at most `delivery.deadlineMs` and a few seconds
   * after `forMs`. What it has claimed and not attempted is released. Any number of processes
   * may drain at the same time, and others may be started. `stop()` ends it early.
   *
   * @param options.forMs after this time, in milliseconds, no further attempt begins. Default 20
   * 000, at most an hour.
   * @param options.deliveries how many deliveries are taken at most. Default 10 000, at most 1 000
   * 000.
   *
   * @returns `attempted`: how many requests were sent, whatever became of them. `isEmpty`: true if
   * nothing was due any more; false if the time or the number was reached first, so that more may
   * be due. Retries that are due later do not count.
   *
   * @throws `already_started` after `start()`, or while another `drain` of this service runs;
   * `invalid_argument`; `storage_unavailable`.
   *
   * @example
   * const { attempted, isEmpty } = await webhooks.drain({ forMs: 20_000, deliveries: 200 });
   */
  drain(options?: {
    forMs?: number | undefined;
    deliveries?: number | undefined;
  }): Promise<{ readonly attempted: number; readonly isEmpty: boolean }>;
  /**
   * Resolves once nothing is due and nothing is in flight. It does not wait for retries that are
   * due later. For tests.
   */
  idle(): Promise<void>;
  /** Returns the health of the delivery loop, for `createHealth`. Never rejects. */
  status(): Promise<HealthStatus>;
}

/**
 * Creates the webhook service: a registration API to mount, and `emit` to call. It does nothing
 * until one of them is called, and sends nothing until `start()`.
 *
 * @throws `invalid_option`, with the path of the option as `field`.
 *
 * @example
 * const webhooks = createWebhooks({
 *   storage: memoryStorage(),
 *   access: {
 *     authenticate: (request) => subscribers.get(bearer(request) ?? "") ?? null,
 *     canRead: (subscriber, resource) => true,
 *   },
 * });
 * app.use("/api", expressAdapter(webhooks));
 * await webhooks.start();
 * await webhooks.emit({ type: "patient.created", account: "clinic-7", resource: patient });
 */
export function createWebhooks<const C extends EventCatalogue, const P = DefaultParts<C>>(
  options: WebhooksOptions<C, P, C & CatalogueEntries<P>>,
): Webhooks<ServiceCatalogue<C, P>> {
  const config = readConfig(options);
  const { clock } = config;
  const circuit = createStorageCircuit({
    clock,
    logger: limitLogger(guardedLogger(config.logger), clock),
    service: "webhooks",
  });
  const { logger } = circuit;
  const serviceLogger = toServiceLogger(logger);
  const telemetry = guardedTelemetry(config.telemetry);
  const catalogue = readCatalogue(config.events);
  const context: StorageContext = {
    clock,
    logger: serviceLogger,
    perEndpoint: config.delivery.perEndpoint,
    perSecond: config.delivery.perSecond ?? null,
    retention: config.retention,
  };
  const stored = config.storage.webhooks(context);
  const store = countStoreErrors(guardWebhookStore(stored, circuit), telemetry, "webhooks");
  const sealer = createSealer(config, context, store, telemetry);
  const unaudited = { store, sealer, config, logger, telemetry, catalogue };
  const audit = createAudit(unaudited);
  const base: ServiceBase = { ...unaudited, audit };

  const sender = createSender(base);
  const schedule = buildSchedule(config.retry);
  const attempt = createAttempts(base, schedule, sender.send);
  const worker = new DeliveryWorker(base, attempt, createHealthSteps(base, sender.isResolverDown));
  const reminder = createStartReminder({
    store,
    clock,
    logger: serviceLogger,
    // A test on a manual clock ends without having started what it made.
    warnsAtExit: clock === systemClock && config.logger !== false,
  });
  const lifecycle = createLifecycle(base, worker, sender, reminder);

  const append = createAppendEvents(base, worker, reminder);
  const entitlement = createEntitlement(base);
  const registrations = createRegistrations(base, entitlement);
  const deliveriesOf = createDeliveryLog(base, entitlement, append, {
    reminder,
    send: sender.send,
    getSignal: lifecycle.getSignal,
  });
  const callsOf = (who: Subscriber | Operator): SubscriberCalls => ({
    registrations: registrations.forActor(who),
    deliveries: deliveriesOf(who),
    audit: audit.log(who),
  });
  const eventTypes = catalogue.names as readonly EventName<ServiceCatalogue<C, P>>[];
  const openApi = cacheDocument(() => describeWebhooksOpenApi(config, catalogue, "/"));
  const api = createApiHandlers(base, callsOf, openApi);

  return Object.freeze<Webhooks<ServiceCatalogue<C, P>>>({
    handle: api.handle,
    as(who) {
      const checked = readActor(who);
      return Object.freeze({ ...callsOf(checked), handle: api.handleFor(checked) });
    },
    emit: createEmit(base, append) as Webhooks<C>["emit"],
    registrations: registrations.forHost,
    deliveries: deliveriesOf("host"),
    ...createAccounts(base),
    audit: audit.log("host"),
    eventTypes: () => eventTypes,
    schedule: () => schedule,
    openApi: ({ baseUrl = "/" } = {}) => structuredClone(openApi(baseUrl)),
    start: lifecycle.start,
    stop: lifecycle.stop,
    [Symbol.asyncDispose]: () => lifecycle.stop(),
    drain: lifecycle.drain,
    idle: worker.idle.bind(worker),
    status: async () =>
      evaluateHealthStatus(worker.stats(), config, {
        waitingMs: reminder.waitingMs(),
        storage: circuit.check(),
      }),
  });
}
