/** The options object of `createWebhooks`. `docs/options.md` lists the same options as tables. */

import type { Clock } from "../../core/clock.js";
import type { Logger } from "../../core/logger.js";
import type { Telemetry } from "../../core/telemetry.js";
import type { DestinationOptions } from "../../outbound/destination-options.js";
import type { Access, PlainAccess } from "../access.js";
import type { EventCatalogue, PlainCatalogue } from "../event-types/catalogue.js";
import type { ClinicalEvents } from "../event-types/clinical-events.js";
import type { CatalogueOf, CatalogueParts, DataOf, IsPlainType } from "../event-types/event-data.js";
import type { BodyForm, PlainEvent } from "../events/notification.js";
import type { FhirResource, ParsedResource } from "../fhir.js";
import type { Attempt, Storage } from "../store.js";
import type { AuditEntry, Webhook } from "../webhook.js";
import type { DeliveryOptions, SignatureOptions } from "./delivery-options.js";
import type { RegistrationOptions } from "./registration-options.js";

/**
 * Passed to `canRead` for the events of a catalogue: resources, or plain events, a union by `type`.
 */
export type ReadableOf<C> = string extends keyof C
  ? ParsedResource
  : {
      [T in keyof C & string]: IsPlainType<C, T> extends true ? PlainEvent<T, DataOf<C, T>> : ParsedResource;
    }[keyof C & string];

/** The functions that a service with the catalogue `C` needs; for an unknown catalogue, all. */
type AccessOf<C> = [keyof C] extends [never]
  ? Access
  : [C] extends [PlainCatalogue]
    ? PlainAccess<ReadableOf<C>>
    : Access<ReadableOf<C>>;

/**
 * The options of `createWebhooks`. Only `storage` and `access` are required. An unknown option, or
 * a value out of range, is refused with `invalid_option`.
 *
 * @typeParam C the catalogue. The compiler infers the others, which are not to be given.
 *
 * @example
 * const options: WebhooksOptions = {
 *   storage: redisStorage({ url: "redis://localhost:6379" }),
 *   access: {
 *     authenticate: (request) => findSubscriber(bearer(request)),
 *     canRead: (subscriber, resource) => mayRead(subscriber.id, resource),
 *   },
 *   retention: { keepMs: 7 * 86_400_000 },
 *   notify: smtpNotifier({ transport: "smtp://localhost", from: "hooks@example.org", to: owner }),
 *   logger: pino(),
 * };
 */
export interface WebhooksOptions<C extends EventCatalogue = ClinicalEvents, P = CatalogueParts<C>, E = C> {
  /** Required. Stores webhooks, events and deliveries. */
  storage: Storage;
  /**
   * Required. Authenticates requests and decides what subscribers may read. `canRead` can be left
   * out if all event types are plain.
   */
  access: AccessOf<CatalogueOf<P>>;
  /**
   * Maps each event type to the resource type of its record, `{ "order.placed": "ServiceRequest"
   * }`, or to an object for events of any form, `{ "order.paid": { schema } }`, whose schema is one
   * of zod, valibot or arktype, or a JSON Schema. Default: `clinicalEvents`,
   * fifty types of clinical records such as `patient.created`. Pass another table to emit other
   * events; `{ ...clinicalEvents, … }` extends the default.
   */
  events?: E | undefined;
  /**
   * Loads a referenced resource that `emit` did not get. Default: none, so only resources in
   * `related` become entries. Set it if the code that emits does not have the referenced records at
   * hand.
   */
  resolveReference?: ResolveReference | undefined;
  /**
   * The form of the request body: `{ id, timestamp, event }`, or `{ id, eventType, payload }` for
   * subscribers that route by `eventType`. Default `notification`. The payload of an envelope is `{
   * timestamp, id, event }`. Events without a resource are always sent as `plain`: `{ id, type,
   * timestamp, data }`. That is the default if no event type has a resource.
   */
  body?: BodyForm | undefined;
  /**
   * `true`: `emit` checks `data` against the schema of its event type. Default `true`. Turn it off
   * where the check costs too much; subscribers still see the schema.
   */
  checkData?: boolean | undefined;
  /** Which hosts may be reached. Default: public hosts over HTTPS. */
  destinations?: DestinationOptions | undefined;
  /** How deliveries are attempted: concurrency, deadlines, leases. */
  delivery?: DeliveryOptions | undefined;
  /** When failed deliveries are attempted again. Default: 14 attempts within 72 hours. */
  retry?: RetryOptions | undefined;
  /** How deliveries are signed. */
  signature?: SignatureOptions | undefined;
  /** Further settings that a registration may have: filter, headers, rate. Default: none. */
  registrations?: RegistrationOptions | undefined;
  /** When a failing endpoint is reported (default after 72 hours) and disabled (96 hours). */
  endpoints?: EndpointHealthOptions | undefined;
  /**
   * How long completed deliveries are kept. Default: 72 hours, at most 10 000 events per account.
   */
  retention?: RetentionOptions | undefined;
  /** Limits on accounts, requests, events and hooks. */
  limits?: WebhookLimits | undefined;
  /**
   * Reports failing endpoints to their owners. Default: nobody is told; endpoints are still
   * disabled.
   */
  notify?: Notify | undefined;
  /**
   * Called with what was done to webhooks and deliveries, and by whom. Default: none. Calls are
   * best effort: they delay and fail nothing, each has `limits.hookMs`, four run at once and 1 000
   * wait. More are dropped, and a line of the log says how many. `limits.auditEntries` keeps the
   * same entries in the storage.
   */
  audit?: ((entry: AuditEntry) => Awaitable<unknown>) | undefined;
  /**
   * Encrypts the body of each new event before it is stored, with a key of its account, which the
   * storage keeps sealed with its `sealKeys`. Default false; needs `sealKeys`. Account, type,
   * subject, tags, ids and times stay readable. Turn it on if a copy of the storage must not tell
   * what was sent. It can be turned on and off at any time: stored events of both kinds are read.
   */
  sealEvents?: boolean | undefined;
  /**
   * Keeps the keys of `sealEvents`, in place of `storage`. Default: `storage`. Needs `sealKeys`.
   * With a separate storage, whose backups you keep only for a short time, `accounts.erase` also
   * makes the bodies in old backups of `storage` unreadable. Keep it set as long as sealed events
   * are stored, and close it as you close `storage`.
   */
  keyStorage?: Storage | undefined;
  /**
   * `start()` rejects if the storage cannot be reached within four seconds; with `false` it
   * resolves, and work begins once the storage is there. Default `true`. Set it to `false` for a
   * process that may start before its storage does.
   */
  awaitStorage?: boolean | undefined;
  /** The source of time and chance; tests pass `manualClock()`. Default: the system's. */
  clock?: Clock | undefined;
  /**
   * Receives what an operator should know; pino, `fastify.log` and `console` fit. Default:
   * `console`, for warnings and errors, and for each failed attempt unless `NODE_ENV` is
   * `production` or `test`; `false` logs nothing. Secrets, keys and records are never logged. At
   * most 60 lines a minute have the same message about the same webhook or account; the next such
   * line has the number of those left out as `omitted`.
   */
  logger?: Logger | false | undefined;
  /**
   * Receives spans and metrics. Default: none, at no cost. Pass `openTelemetry()` of
   * `postbell/opentelemetry`, or `prometheus().telemetry` of `postbell/prometheus`.
   */
  telemetry?: Telemetry | undefined;
}

/**
 * The limits of the service. Each of them exists so that one account, one event or one hook cannot
 * take what the others need.
 *
 * @example
 * limits: { enabledWebhooks: 50, notificationBytes: 1_048_576, hookMs: 2_000 }
 */
export interface WebhookLimits {
  /**
   * ENABLED webhooks per account. Default 15, 1 to 10 000. Each of them gets every event it wants.
   */
  enabledWebhooks?: number | undefined;
  /** Webhooks per account, ENABLED and DISABLED together. Default 100, 1 to 10 000. */
  webhooks?: number | undefined;
  /** Largest body of a registration request. Default 65 536, 1 024 to 16 MiB. */
  requestBytes?: number | undefined;
  /**
   * Registration requests per account, and per invalid key, in this process; 0 means no limit.
   * Default 600.
   */
  requestsPerMinute?: number | undefined;
  /**
   * Recoveries, tests, and examinations per webhook, each, in this process; 0 means no limit.
   * Default 6.
   */
  repairsPerMinute?: number | undefined;
  /**
   * Events of one account that recoveries may examine in this process; 0 means no limit. Default
   * 100 000. A recovery that has begun always finishes, even beyond the limit. Later ones are
   * refused until the average is met again. Lower it to spare the storage.
   */
  recoveredEventsPerMinute?: number | undefined;
  /** Resources in one notification. Default 100, 1 to 10 000. Larger events are refused. */
  entries?: number | undefined;
  /**
   * Largest notification. Default 262 144, 1 024 to 16 MiB. Larger events are refused. Raise it for
   * large records, if the endpoints accept such bodies.
   */
  notificationBytes?: number | undefined;
  /**
   * Time limit of a hook; for `resolveReference`, of all lookups of one event, at most four for
   * each of `entries`. Default 5 000, at most a minute. Registration requests should be answered
   * within five seconds, so raise it with care.
   */
  hookMs?: number | undefined;
  /**
   * Entries that the audit log keeps for each account, the newest, and as many more about its
   * deliveries, which never push out the others. Default 0, at most 10 000. 0 means no audit log.
   * Set it to show subscribers who changed what: `GET /v1/audit`, `webhooks.audit` and the portal
   * have the log. An entry may be missing if the storage was
   * unavailable when it was made. In a database or Redis, entries never expire: they stay, also
   * when the last webhook of the account was removed, until newer ones replace them or an
   * operator deletes them.
   */
  auditEntries?: number | undefined;
}

// The host's functions that the service calls while it emits and delivers.

type Awaitable<T> = T | PromiseLike<T>;

/**
 * Loads a referenced resource that is missing in `related` of `emit`. If it returns nothing, throws
 * or takes too long (`limits.hookMs`), the event is stored without an entry for it.
 *
 * @example
 * resolveReference: (reference, { account }) => db.loadResource(account, reference)
 */
export type ResolveReference = (
  reference: string,
  context: { account: string; eventType: string },
) => Awaitable<FhirResource | null | undefined>;

/** Describes an endpoint that fails to its owner. */
export interface FailingEndpoint {
  readonly webhook: Webhook;
  readonly failingSince: Date;
  /** The last attempt, which failed; `null` if it is not known any more. */
  readonly lastFailure: EndpointFailure | null;
  /** How many deliveries wait for an attempt. */
  readonly pending: number;
}

/** A failed attempt. `kind`, `status` and `code` are those of the delivery log. */
export interface EndpointFailure extends Pick<Attempt, "kind" | "status" | "code"> {
  readonly at: Date;
}

/** Describes an endpoint that will be disabled to its owner. */
export interface EndpointWarning extends FailingEndpoint {
  readonly disableAt: Date;
  /** No waiting delivery is attempted after this time, unless the endpoint recovers. */
  readonly retriedUntil: Date;
}

/** Describes a delivery that ended as `failed`. */
export interface ExhaustedDelivery {
  readonly webhook: Webhook;
  readonly deliveryId: string;
  readonly eventId: string;
  /** The event type. */
  readonly type: string;
  /** The `reason` in the delivery log: `exhausted`, `disabled`, `access_unknown` … */
  readonly reason: string;
  /** The attempt that ended it; `null` if it ended without one. */
  readonly lastAttempt: EndpointFailure | null;
}

/**
 * Reports endpoints that fail to their owners. A hook that throws or takes longer than 5 seconds
 * (`limits.hookMs`) is called again later. `smtpNotifier` of `postbell/smtp` sends e-mails.
 *
 * @example
 * const notify: Notify = {
 *   warning: ({ webhook, disableAt }) => mail(webhook.account, `will be disabled at ${disableAt}`),
 *   disabled: ({ webhook }) => mail(webhook.account, `${webhook.url} was disabled`),
 * };
 */
export interface Notify {
  /**
   * Called once when an endpoint has not responded with a 2xx for `endpoints.warnAfterMs`. It is
   * called again after the next such period, a throw, a timeout or a crash.
   */
  warning?: ((event: EndpointWarning) => Awaitable<unknown>) | undefined;
  /** Called when Postbell has disabled an endpoint that failed for `endpoints.disableAfterMs`. */
  disabled?: ((event: FailingEndpoint) => Awaitable<unknown>) | undefined;
  /**
   * Called for each delivery that ended as `failed`, once that is stored; not for tests. Calls are
   * best effort, as those of `audit`: a call that fails is not repeated.
   */
  exhausted?: ((event: ExhaustedDelivery) => Awaitable<unknown>) | undefined;
  /** Called at the end of `stop()`. Release here what the notifiers hold, such as a connection. */
  close?: (() => Awaitable<unknown>) | undefined;
}

/**
 * When a failed delivery is attempted again. With the defaults there are 14 attempts: at 0, 0:15,
 * 0:45, 1:45, 3:45, 7:45 and 15:45 hours, then every 8 hours up to 71:45. `postbell plan` shows a
 * schedule.
 *
 * @example
 * // Retry after 1, 5 and 30 minutes, then every hour for a day.
 * retry: { intervalsMs: [60_000, 300_000, 1_800_000], everyMs: 3_600_000, windowMs: 86_400_000 }
 */
export interface RetryOptions {
  /**
   * Intervals between the first attempts, at most 100. Default 15 and 30 minutes, then 1, 2, 4 and
   * 8 hours. Begin with shorter ones if events lose their value within minutes.
   */
  intervalsMs?: readonly number[] | undefined;
  /** Interval between the attempts after those of `intervalsMs`. Default 8 hours. */
  everyMs?: number | undefined;
  /**
   * No retry is scheduled later than this after the first attempt. Default 72 hours, at most 1 000
   * times `everyMs`. Shorten it if a late event is worthless.
   */
  windowMs?: number | undefined;
  /**
   * Largest random delay of an attempt, as a fraction of the interval before it. Default 0.1. It
   * never makes an attempt early. Raise it if many endpoints fail and recover together.
   */
  jitter?: number | undefined;
  /** Upper limit of that delay. Default 15 minutes. */
  maxJitterMs?: number | undefined;
}

/**
 * When an endpoint that keeps failing is reported and disabled. Both count from its first failure
 * after the last 2xx.
 *
 * @example
 * // Warn after a day, disable after a week.
 * endpoints: { warnAfterMs: 86_400_000, disableAfterMs: 604_800_000 }
 */
export interface EndpointHealthOptions {
  /**
   * An endpoint that has failed for this long is reported to `notify.warning`. Default 72 hours.
   */
  warnAfterMs?: number | undefined;
  /**
   * An endpoint that has failed for this long is disabled and reported to `notify.disabled`.
   * Default 96 hours, at least `warnAfterMs`. Raise it if owners need more time to react.
   */
  disableAfterMs?: number | undefined;
}

/**
 * How long completed deliveries stay in the delivery log, from where they can be resent and
 * recovered. Use the same values on all services of a storage.
 *
 * @example
 * retention: { keepMs: 7 * 86_400_000, events: 50_000 }
 */
export interface RetentionOptions {
  /**
   * How long completed deliveries and their events are kept; with 0 they are removed at once.
   * Default 72 hours. Raise it to resend older events; the storage grows with it.
   */
  keepMs?: number | undefined;
  /** Completed events kept per account; beyond it the oldest are removed. Default 10 000. */
  events?: number | undefined;
}
