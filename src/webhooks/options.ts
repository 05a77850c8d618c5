/** Every option of `createWebhooks`: its type for hosts, and the one table of defaults and ranges that it is read by. */

import type { Clock } from "../core/clock.js";
import { PostbellError } from "../core/errors.js";
import { hasMethods, hostOptions } from "../core/host-options.js";
import type { Logger } from "../core/logger.js";
import {
  flag,
  fraction,
  hook,
  type OptionValues,
  oneOf,
  readOptions,
  value,
  wholeNumber,
} from "../core/options.js";
import type { Telemetry } from "../core/telemetry.js";
import { destinationOptions } from "../outbound/destination-options.js";
import { RESERVED_HEADERS } from "../outbound/request-bytes.js";
import type { Send } from "../outbound/types.js";
import { buildSchedule } from "./delivery/back-off.js";
import { clinicalEvents, type EventCatalogue } from "./event-types/catalogue.js";
import type { FhirResource, ParsedResource } from "./fhir.js";
import type { Webhook } from "./registrations/registrations.js";
import type { Storage } from "./store.js";

type Awaitable<T> = T | PromiseLike<T>;

/** Who is behind an API key. */
export interface Subscriber {
  /** Names the key in records and hooks; it must not be the key itself. */
  readonly id: string;
  readonly account: string;
}

/** What the host knows and Postbell asks it for. */
export interface Access {
  /** The subscriber behind a Bearer token; `null` where there is none (401). A throw or a silence of 5 s is answered 503. */
  authenticate(apiKey: string): Awaitable<Subscriber | null | undefined>;
  /**
   * Whether the key that owns the webhook may read `resource` now: asked for each entry at each attempt. Only `true` and `false` are answers; with anything else,
   * a throw or a silence of 5 s, nothing is sent and it is asked again later.
   */
  canRead(subscriber: Subscriber, resource: ParsedResource): Awaitable<boolean>;
  /**
   * Lets a key manage the webhooks of another key of its account. Return `true` only if `subscriber` may receive all that `owner` may: it can then change the
   * url of the owner's webhooks, enable them, learn a new secret, and have events sent again. Default: never. A throw or a silence of 5 s is answered 503.
   *
   * @example
   * canActFor: (subscriber, owner) => scopesOf(owner).every((scope) => scopesOf(subscriber).includes(scope))
   */
  canActFor?(subscriber: Subscriber, owner: Subscriber): Awaitable<boolean>;
}

/** Looks up a referenced resource that was not among `related`. Nothing found, a throw or a silence of 5 s: the reference stays as it is, without an entry. */
export type ResolveReference = (
  reference: string,
  context: { readonly account: string; readonly eventType: string },
) => Awaitable<FhirResource | null | undefined>;

/** Told of endpoints that fail. A hook that throws or takes more than 5 s is called again later. */
export interface Notify {
  /** An endpoint has not answered 2xx for `health.warnAfterMs`. Called once a period, again only after a throw or a crash. */
  warning?:
    | ((event: {
        readonly webhook: Webhook;
        readonly failingSince: Date;
        readonly disableAt: Date;
      }) => Awaitable<unknown>)
    | undefined;
  /** The endpoint was disabled because it went on. */
  disabled?:
    | ((event: { readonly webhook: Webhook; readonly failingSince: Date }) => Awaitable<unknown>)
    | undefined;
  /** Called at the end of `stop()`: gives back what the notifiers hold, such as a connection. */
  close?: (() => Awaitable<unknown>) | undefined;
}

type Given<T> = { readonly [K in keyof T]?: T[K] | undefined };

/** What `createWebhooks` takes. Defaults and units stand in `docs/options.md`. */
export interface WebhooksOptions<C extends EventCatalogue = typeof clinicalEvents> {
  readonly storage: Storage;
  readonly access: Access;
  /** The event types, each with the resource type of its focal resource. Default: the fifty of the interface. */
  readonly events?: C | undefined;
  readonly resolveReference?: ResolveReference | undefined;
  /** `notification`: `{ id, timestamp, event }`. `envelope`: `{ id, eventType, payload: { timestamp, id, event } }`. */
  readonly body?: "notification" | "envelope" | undefined;
  readonly destinations?: Given<Settings["destinations"]> | undefined;
  readonly delivery?: Given<Settings["delivery"]> | undefined;
  readonly retry?: Given<Settings["retry"]> | undefined;
  readonly signature?: Given<Settings["signature"]> | undefined;
  readonly health?: Given<Settings["health"]> | undefined;
  readonly retention?: Given<Settings["retention"]> | undefined;
  readonly limits?: Given<Settings["limits"]> | undefined;
  readonly notify?: Notify | undefined;
  readonly clock?: Clock | undefined;
  readonly logger?: Logger | undefined;
  /** Takes spans and metrics. Default: nothing is reported, and that costs nothing. */
  readonly telemetry?: Telemetry | undefined;
}

export type Settings = OptionValues<typeof webhooksOptions>;

const HOUR = 3_600_000;
const MINUTE = 60_000;

/** Headers of every delivery: the signature must not take the place of one. */
const isTaken = (header: string): boolean =>
  RESERVED_HEADERS.has(header.toLowerCase()) || /^(?:content-type|user-agent|webhook-.*)$/i.test(header);

const isIntervalList = (given: unknown): boolean =>
  Array.isArray(given) &&
  given.length <= 100 &&
  // Array.from visits holes too.
  Array.from(given as unknown[]).every((ms) => Number.isSafeInteger(ms) && (ms as number) > 0);

export const webhooksOptions = {
  storage: value<Storage | undefined>(
    "a storage, such as memoryStorage()",
    hasMethods("webhooks"),
    undefined,
  ),
  access: {
    authenticate: hook<Access["authenticate"]>(),
    canRead: hook<Access["canRead"]>(),
    canActFor: hook<NonNullable<Access["canActFor"]>>(),
  },
  events: value<EventCatalogue>(
    "a table of event types",
    (given) => typeof given === "object",
    clinicalEvents,
  ),
  resolveReference: hook<ResolveReference>(),
  body: oneOf(["notification", "envelope"], "notification"),
  destinations: destinationOptions,
  delivery: {
    concurrency: wholeNumber("count", 100, { min: 1, max: 10_000 }),
    slowConcurrency: wholeNumber("count", 400, { min: 1, max: 10_000 }),
    perEndpoint: wholeNumber("count", 5, { min: 1, max: 10_000 }),
    slowAfterMs: wholeNumber("ms", 500, { min: 1 }),
    deadlineMs: wholeNumber("ms", 15_000, { min: 1, max: 10 * MINUTE }),
    leaseMs: wholeNumber("ms", 60_000, { min: 1, max: HOUR }),
    maxResponseBytes: wholeNumber("bytes", 16_384, { min: 0, max: 1_048_576 }),
    recoverEveryMs: wholeNumber("ms", 50, { min: 1, max: HOUR }),
    excerptCharacters: wholeNumber("count", 0, { min: 0, max: 10_000 }),
    eventIdField: flag(false),
    send: hook<Send>(),
  },
  retry: {
    intervalsMs: value<readonly number[]>(
      "a list of at most 100 whole numbers of ms above 0",
      isIntervalList,
      Object.freeze([15 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 4 * HOUR, 8 * HOUR]),
      "ms, list",
    ),
    everyMs: wholeNumber("ms", 8 * HOUR, { min: 1 }),
    windowMs: wholeNumber("ms", 72 * HOUR, { min: 1 }),
    jitter: fraction(0.1),
    maxJitterMs: wholeNumber("ms", 15 * MINUTE, { min: 0 }),
  },
  signature: {
    header: value<string>(
      "a header name that deliveries do not already use",
      (given) => typeof given === "string" && /^[A-Za-z0-9-]{1,64}$/.test(given) && !isTaken(given),
      "X-Service-Signature",
    ),
    standardWebhooks: flag(false),
  },
  health: {
    warnAfterMs: wholeNumber("ms", 72 * HOUR, { min: 1 }),
    disableAfterMs: wholeNumber("ms", 96 * HOUR, { min: 1 }),
  },
  notify: {
    warning: hook<NonNullable<Notify["warning"]>>(),
    disabled: hook<NonNullable<Notify["disabled"]>>(),
    close: hook<NonNullable<Notify["close"]>>(),
  },
  retention: {
    ms: wholeNumber("ms", 72 * HOUR, { min: 0 }),
    events: wholeNumber("count", 10_000, { min: 0 }),
  },
  limits: {
    enabledWebhooks: wholeNumber("count", 15, { min: 1, max: 10_000 }),
    webhooks: wholeNumber("count", 100, { min: 1, max: 10_000 }),
    requestBytes: wholeNumber("bytes", 65_536, { min: 1024, max: 16_777_216 }),
    requestsPerMinute: wholeNumber("count", 600, { min: 0 }),
    repairsPerMinute: wholeNumber("count", 6, { min: 0 }),
    recoveredEventsPerMinute: wholeNumber("count", 100_000, { min: 0 }),
    entries: wholeNumber("count", 100, { min: 1, max: 10_000 }),
    notificationBytes: wholeNumber("bytes", 262_144, { min: 1024, max: 16_777_216 }),
    hookMs: wholeNumber("ms", 5_000, { min: 1, max: MINUTE }),
  },
  ...hostOptions,
  telemetry: value<Telemetry | undefined>(
    "what openTelemetry() or prometheus().telemetry gives",
    hasMethods("record", "observe"),
    undefined,
  ),
};

/** Steps a schedule may have: beyond it an interval is a slip of units. */
const MAX_STEPS = 1_000;

const refuse = (field: string, message: string): never => {
  throw new PostbellError("invalid_option", `createWebhooks: ${message}`, { field });
};

/** `T` without `undefined` for the options that have no default. */
export type ReadSettings = Settings & {
  readonly storage: Storage;
  readonly access: {
    readonly [K in keyof Access]: K extends "canActFor" ? Access[K] | undefined : Access[K];
  };
};

/** Reads and checks the options, also against each other. Pure; errors: `invalid_option`. */
export function readSettings(options: unknown): ReadSettings {
  const settings = readOptions("createWebhooks", webhooksOptions, options);
  const { storage, access, delivery, retry, health } = settings;
  if (!storage) refuse("storage", "storage is missing: give memoryStorage(), for example.");
  if (!access.authenticate)
    refuse("access.authenticate", "access.authenticate is missing: it says who is behind an API key.");
  if (!access.canRead)
    refuse("access.canRead", "access.canRead is missing: it says what a subscriber may receive.");
  const leastLeaseMs = 2 * delivery.deadlineMs + 20_000;
  if (delivery.leaseMs < leastLeaseMs) {
    // A lease that ends while its attempt is under way would be delivered twice.
    refuse(
      "delivery.leaseMs",
      `delivery.leaseMs must be at least twice delivery.deadlineMs and 20 s more: ${leastLeaseMs}.`,
    );
  }
  if (health.disableAfterMs < health.warnAfterMs) {
    refuse("health.disableAfterMs", "health.disableAfterMs must not be smaller than health.warnAfterMs.");
  }
  if (retry.windowMs / retry.everyMs > MAX_STEPS) {
    refuse("retry.everyMs", `retry.everyMs must be at least retry.windowMs / ${MAX_STEPS}.`);
  }
  if (buildSchedule(retry).length < 2)
    refuse("retry.windowMs", "retry.windowMs leaves no time for a single retry.");
  return settings as ReadSettings;
}
