/** `createWebhooks`: puts the parts of the webhook service together, and emits. */

import { randomUUID } from "node:crypto";
import { withTimeout } from "../core/clock.js";
import { isPostbellError, PostbellError } from "../core/errors.js";
import { guardedLogger } from "../core/logger.js";
import { countStoreErrors } from "../core/store-metrics.js";
import { guardedTelemetry, type SpanAttributes } from "../core/telemetry.js";
import { isUuid } from "../core/uuid.js";
import type { HealthStatus } from "../health/health-status.js";
import { cacheDocument } from "../http/openapi-document.js";
import type { HttpRequest, HttpResponse } from "../http/types.js";
import { createOutboundClient } from "../outbound/client.js";
import type { OutboundClient, Send } from "../outbound/types.js";
import type { JsonObject } from "../schema/types.js";
import { describeWebhooksOpenApi } from "./api/openapi.js";
import { createRoutes } from "./api/registration-routes.js";
import { withWebhookStoreTimeout } from "./bounded-store.js";
import { checkName } from "./call-arguments.js";
import { createAttempts } from "./delivery/attempt.js";
import { buildSchedule } from "./delivery/back-off.js";
import { createDeliveryLog, type Deliveries, readTimeFilter } from "./delivery/delivery-log.js";
import { createDeliveryDispatcher } from "./delivery/dispatcher.js";
import { readGauges } from "./delivery/gauges.js";
import { createHealthNotifications } from "./delivery/health-notifications.js";
import { guardSend } from "./delivery/send.js";
import {
  type clinicalEvents,
  type EventCatalogue,
  type EventTypeOf,
  focalTypes,
  readCatalogue,
} from "./event-types/catalogue.js";
import { buildPayload } from "./events/bundle.js";
import { createEmitTelemetry } from "./events/emit-telemetry.js";
import type { FhirResource } from "./fhir.js";
import { evaluateHealthStatus } from "./health-status.js";
import { readSettings } from "./options.js";
import { createEntitlement } from "./registrations/entitlement.js";
import { createRegistrations, type Registrations } from "./registrations/registrations.js";
import type { WebhooksOptions } from "./settings/webhooks-options.js";
import { type EventRecord, REMEMBER_MS, type WebhookStore } from "./store.js";

/** What the host says happened. */
export interface EventInput<T extends string = string> {
  readonly type: T;
  /** Whose record it is: the webhooks of this account are told. */
  readonly account: string;
  /** The record, of the resource type behind `type`. Of a deleted one: as it last was, or its `resourceType` and `id`. */
  readonly resource: FhirResource;
  /** Resources that it references, directly or in turn; those that nothing references are left out. */
  readonly related?: readonly FhirResource[] | undefined;
  /** A UUID that names the event; made if absent. Emitting it again within 24 hours adds nothing. */
  readonly id?: string | undefined;
  /** When it happened. Default: now. */
  readonly occurredAt?: Date | string | undefined;
}

/** What became of an event. */
export interface Emitted {
  readonly id: string;
  /** True where the id came before: nothing was added, and `deliveries` are the first ones. */
  readonly duplicate: boolean;
  /** Where the storage checks it: whether a replica has the event too. */
  readonly confirmed?: boolean | undefined;
  readonly deliveries: readonly { readonly id: string; readonly webhookId: string }[];
}

/** The webhook service that {@link createWebhooks} makes. */
export interface Webhooks<T extends string = string> {
  /** The registration API, for an adapter to mount. Never rejects. */
  handle(request: HttpRequest): Promise<HttpResponse | undefined>;
  /**
   * Stores an event, with a delivery for each ENABLED webhook of the account that subscribes to it: all of it, or nothing. Resolves once it is stored;
   * delivering goes on in the background, wherever a service on this storage is started.
   *
   * Guarantee: at-least-once delivery from the moment it resolves. Where the outcome is unknown, emit again with the same `id`.
   * Of an array, all items are checked before the first is stored; they are stored in order, and an error names the item: `field` is `[2].type` where one was refused, `[2]` where storing stopped at it.
   * Errors: `unknown_event_type`, `invalid_argument`, `event_too_large`, `event_conflict`, `storage_full`, `storage_unavailable`.
   */
  emit(event: EventInput<T>): Promise<Emitted>;
  /** The same for several events, each stored by itself; the answers are in their order. */
  emit(events: readonly EventInput<T>[]): Promise<readonly Emitted[]>;
  readonly registrations: Registrations;
  readonly deliveries: Deliveries;
  /** When the attempts of a delivery are due, in milliseconds after its first one: what `retry` comes to, without jitter. */
  readonly schedule: readonly number[];
  /** The OpenAPI 3.1 document of the registration API and of the notifications: what `GET /v1/openapi.json` answers. `baseUrl`: of the mount point, default `/`. */
  openApi(options?: { readonly baseUrl?: string | undefined }): JsonObject;
  /** The names of the catalogue, sorted: what `emit` and `event_types` take. */
  eventTypes(): readonly T[];
  /** Begins to deliver. Calling it again changes nothing. */
  start(): Promise<void>;
  /** Ends delivering; what is under way gets `graceMs` (default 10 000) to finish, and is delivered later otherwise. `start` may follow. */
  stop(options?: { readonly graceMs?: number | undefined }): Promise<void>;
  /** Resolves once nothing is due and nothing is under way: retries that are due later do not count. For tests. */
  idle(): Promise<void>;
  /** How the delivery loop is doing, for `createHealth`. Never rejects. */
  condition(): Promise<HealthStatus>;
}

const DEFAULT_GRACE_MS = 10_000;

const EVENT_KEYS: ReadonlySet<string> = new Set([
  "type",
  "account",
  "resource",
  "related",
  "id",
  "occurredAt",
]);

const unusable = (field: string | undefined, message: string, cause?: unknown): PostbellError =>
  new PostbellError("invalid_argument", message, { field, cause });

/** The event as plain data, each field read once: a getter or a proxy could throw, or say something else the second time. */
function readEvent(input: EventInput): EventInput {
  if (typeof input !== "object" || input === null)
    throw unusable(undefined, "emit() takes an event, or an array of events.");
  let unknown: string | undefined;
  let event: EventInput;
  try {
    unknown = Object.keys(input).find((key) => !EVENT_KEYS.has(key));
    const { type, account, resource, related, id, occurredAt } = input;
    const list = Array.isArray(related) ? Array.from(related) : related;
    event = { type, account, resource, related: list, id, occurredAt };
  } catch (cause) {
    throw unusable(undefined, "The event cannot be read.", cause);
  }
  if (unknown !== undefined) throw unusable(unknown, `An event has no field '${unknown}'.`);
  return event;
}

/** The error of one item as the error of the list. */
function itemError(error: PostbellError, index: number): PostbellError {
  const { code, message, field } = error;
  const path = field === undefined ? `[${index}]` : `[${index}].${field}`;
  return new PostbellError(code, `[${index}]: ${message}`, { field: path, cause: error });
}

/**
 * The webhook service: a registration API to mount, and `emit` to call. Does nothing until one of them is called, and sends nothing until `start()`.
 *
 * Errors: `invalid_option`, with the path of the option as `field`.
 */
export function createWebhooks<const C extends EventCatalogue = typeof clinicalEvents>(
  options: WebhooksOptions<C>,
): Webhooks<EventTypeOf<C>> {
  const settings = readSettings(options);
  const { clock, destinations, delivery, limits, resolveReference } = settings;
  const logger = guardedLogger(settings.logger);
  const telemetry = guardedTelemetry(settings.telemetry);
  const catalogue = readCatalogue(settings.events);
  const stored = settings.storage.webhooks({
    clock,
    logger,
    perEndpoint: delivery.perEndpoint,
    retention: settings.retention,
  });
  const store = countStoreErrors(withWebhookStoreTimeout(stored, clock), telemetry, "webhooks");
  const report = createEmitTelemetry(telemetry, clock);
  const entitlement = createEntitlement({ store, settings, clock });
  const registrations = createRegistrations({ store, settings, catalogue, entitlement });

  let client: OutboundClient | undefined;
  const ownSend: Send = (request) => {
    client ??= createOutboundClient({
      clock,
      policy: destinations,
      ca: destinations.ca && Buffer.from(destinations.ca),
      resolve: destinations.resolve,
    });
    return client.send(request);
  };
  const send = delivery.send ? guardSend(delivery.send, clock) : ownSend;

  const schedule = buildSchedule(settings.retry);
  const attempt = createAttempts({
    settings,
    schedule,
    clock,
    now: () => store.now(),
    logger,
    send,
    telemetry,
  });
  const takeNotices = createHealthNotifications({ store, settings, clock, logger });
  const dispatcher = createDeliveryDispatcher({
    store,
    clock,
    logger,
    settings,
    attempt,
    takeNotices,
    telemetry,
  });

  /** Never rejects: an event goes out without an entry rather than not at all. */
  const lookUp = async (
    reference: string,
    account: string,
    eventType: string,
    until: number,
  ): Promise<unknown> => {
    const leftMs = until - clock.monotonic();
    if (leftMs <= 0) return null;
    try {
      const answer = (async () => resolveReference?.(reference, { account, eventType }))();
      return await withTimeout(clock, leftMs, answer, () => new Error("no answer in time"));
    } catch (error) {
      logger.warn(
        { account, eventType, error },
        "resolveReference failed; the reference stays without an entry",
      );
      return null;
    }
  };

  const prepare = async (input: EventInput, trace: string | undefined): Promise<EventRecord> => {
    const { type, account, resource, related, id = randomUUID(), occurredAt } = readEvent(input);
    checkName("account", account);
    if (typeof type !== "string") throw unusable("type", "type must be a string, the name of an event type.");
    if (typeof id !== "string" || !isUuid(id)) throw unusable("id", "id must be a UUID.");
    const now = store.now();
    const eventId = id.toLowerCase();
    const time = occurredAt === undefined ? now : readTimeFilter("occurredAt", occurredAt);
    const until = clock.monotonic() + limits.hookMs;
    const { payload, digest } = await buildPayload({
      eventId,
      account,
      type,
      occurredAt: time,
      isOccurredAtGiven: occurredAt !== undefined,
      resource,
      related,
      focalTypes: focalTypes(catalogue, type),
      resolve: resolveReference && ((reference) => lookUp(reference, account, type, until)),
      trace,
      limits: { entries: limits.entries, bytes: limits.notificationBytes },
    });
    return { id: eventId, account, type, digest, payload };
  };

  const append = async (event: EventRecord, webhookId?: string): Promise<Emitted> => {
    const reservation = dispatcher.reserve();
    let appended: Awaited<ReturnType<WebhookStore["append"]>> | undefined;
    try {
      appended = await store.append({
        event,
        rememberMs: REMEMBER_MS,
        now: store.now(),
        webhookId,
        claim: reservation?.request,
      });
    } finally {
      reservation?.end(appended && "claimed" in appended ? appended.claimed : undefined);
    }
    if (appended.result === "conflict") {
      throw new PostbellError(
        "event_conflict",
        "An event with this id and other content was emitted in the last 24 hours.",
        {
          field: "id",
        },
      );
    }
    const { result, deliveries, confirmed } = appended;
    return {
      id: event.id,
      duplicate: result === "duplicate",
      ...(confirmed === undefined ? {} : { confirmed }),
      deliveries,
    };
  };

  const deliveries = createDeliveryLog({ store, settings, catalogue, entitlement, clock, append });
  const eventTypes = Object.freeze([...catalogue.types.keys()].sort()) as readonly EventTypeOf<C>[];
  const openApi = cacheDocument(() => describeWebhooksOpenApi(settings, catalogue, "/"));
  const routes = createRoutes({ settings, registrations, deliveries, eventTypes, openApi, clock, logger });

  const emitOne = async (input: EventInput, trace?: string, note?: Note): Promise<Emitted> => {
    const event = await report.event(prepare(input, trace));
    note?.({ "messaging.destination.name": event.type, "messaging.message.id": event.id });
    const emitted = await report.event(append(event), outcomeOf);
    note?.({ "postbell.outcome": outcomeOf(emitted), "postbell.deliveries": emitted.deliveries.length });
    return emitted;
  };

  const emitAll = async (
    inputs: readonly EventInput[],
    trace?: string,
    note?: Note,
  ): Promise<readonly Emitted[]> => {
    note?.({ "messaging.batch.message_count": inputs.length });
    // Array.from visits holes too, and a hole is no event.
    const prepared = await Promise.all(
      Array.from(inputs, async (input, index) => {
        try {
          return await report.event(prepare(input, trace));
        } catch (error) {
          throw isPostbellError(error) ? itemError(error, index) : error;
        }
      }),
    );
    const emitted: Emitted[] = [];
    for (const [index, item] of prepared.entries()) {
      try {
        emitted.push(await report.event(append(item), outcomeOf));
      } catch (error) {
        if (!isPostbellError(error)) throw error;
        const { code, message } = error;
        throw new PostbellError(code, `${message} ${index} of ${inputs.length} events were stored.`, {
          field: `[${index}]`,
          cause: error,
        });
      }
    }
    return emitted;
  };

  const closeNotifiers = async (): Promise<void> => {
    const { close } = settings.notify;
    const closing = (async () => close?.())();
    try {
      await withTimeout(clock, limits.hookMs, closing, () => new Error("no answer in time"));
    } catch (error) {
      logger.error({ error }, "the notifiers of the host could not be closed");
    }
  };

  let isWanted = false;
  let stopping: Promise<void> | undefined;
  let unobserve: (() => void) | undefined;
  const end = async (graceMs: number): Promise<void> => {
    await dispatcher.stop(graceMs);
    unobserve?.();
    unobserve = undefined;
    const used = client;
    client = undefined;
    await used?.close();
    await closeNotifiers();
  };

  function emit(event: EventInput<EventTypeOf<C>>): Promise<Emitted>;
  function emit(events: readonly EventInput<EventTypeOf<C>>[]): Promise<readonly Emitted[]>;
  async function emit(input: EventInput | readonly EventInput[]): Promise<Emitted | readonly Emitted[]> {
    return report.call<Emitted | readonly Emitted[]>((trace, note) =>
      isList(input) ? emitAll(input, trace, note) : emitOne(input, trace, note),
    );
  }

  return Object.freeze<Webhooks<EventTypeOf<C>>>({
    handle: routes,
    emit,
    registrations,
    deliveries,
    eventTypes: () => eventTypes,
    schedule,
    openApi: ({ baseUrl = "/" } = {}) => structuredClone(openApi(baseUrl)),
    async start() {
      isWanted = true;
      await stopping;
      // Stopped again while it waited for the end of the stop before?
      if (!isWanted) return;
      dispatcher.start();
      unobserve ??= telemetry?.observe(() => readGauges(store, dispatcher.inFlight()));
    },
    stop({ graceMs = DEFAULT_GRACE_MS } = {}) {
      isWanted = false;
      // Called again meanwhile (a second SIGTERM), it must not cut off what the first call waits for.
      stopping ??= end(graceMs).finally(() => {
        stopping = undefined;
      });
      return stopping;
    },
    idle: () => dispatcher.idle(),
    condition: async () => evaluateHealthStatus(dispatcher.stats(), settings),
  });
}

type Note = (attributes: SpanAttributes) => void;

const outcomeOf = ({ duplicate }: Emitted): string => (duplicate ? "duplicate" : "stored");

const isList = (input: EventInput | readonly EventInput[]): input is readonly EventInput[] =>
  Array.isArray(input);
