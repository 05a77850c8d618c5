/**
 * Checks the options of `createWebhooks` against one table of defaults and ranges. Their types and
 * documentation are in `config/`.
 */

import { PostbellError } from "../core/errors.js";
import { hasMethods, hostOptions, telemetryOption } from "../core/host-options.js";
import { flag, fraction, hook, listOf, readOptions, value, wholeNumber } from "../core/options.js";
import {
  type ClientCertificate,
  clientCertificateOptions,
  destinationOptions,
  readClientCertificate,
} from "../outbound/destination-options.js";
import type { Send } from "../outbound/types.js";
import { checkSigningKey, MAX_SIGNING_KEYS, readSigningKey } from "../signature/asymmetric.js";
import type { Access } from "./access.js";
import type { WebhooksConfig } from "./config/config.js";
import type { DeliveryOptions } from "./config/delivery-options.js";
import type { Notify, ResolveReference } from "./config/webhooks-options.js";
import { findPolicyFault } from "./delivery/retry-schedule.js";
import type { EventCatalogue } from "./event-types/catalogue.js";
import { clinicalEvents } from "./event-types/clinical-events.js";
import { isIntervalList } from "./event-types/plain-event-type.js";
import type { BodyForm } from "./events/notification.js";
import { isDeliveryHeader } from "./sender.js";
import type { Storage } from "./store.js";

const HOUR = 3_600_000;
const MINUTE = 60_000;

export const webhooksOptions = {
  storage: value<Storage | undefined>(
    "a storage, such as memoryStorage()",
    hasMethods("webhooks"),
    undefined,
    "a storage",
  ),
  access: {
    authenticate: hook<Access["authenticate"]>(),
    canRead: hook<Access["canRead"]>(),
    canActFor: hook<NonNullable<Access["canActFor"]>>(),
  },
  events: value<EventCatalogue>(
    "a table of event types",
    (input) => typeof input === "object",
    clinicalEvents,
  ),
  resolveReference: hook<ResolveReference>(),
  body: value<BodyForm | undefined>(
    "'notification' or 'envelope' or 'plain'",
    (input) => ["notification", "envelope", "plain"].includes(input as string),
    undefined,
  ),
  checkData: flag(true),
  destinations: { ...destinationOptions, clientCertificate: clientCertificateOptions },
  delivery: {
    concurrency: wholeNumber("count", 100, { min: 1, max: 10_000 }),
    slowConcurrency: wholeNumber("count", 400, { min: 1, max: 10_000 }),
    perEndpoint: wholeNumber("count", 5, { min: 1, max: 10_000 }),
    perSecond: value<number | undefined>(
      "a whole number from 1 to 10000",
      (input) => Number.isInteger(input) && (input as number) >= 1 && (input as number) <= 10_000,
      undefined,
      "count",
    ),
    slowAfterMs: wholeNumber("ms", 500, { min: 1 }),
    deadlineMs: wholeNumber("ms", 15_000, { min: 1, max: 10 * MINUTE }),
    leaseMs: wholeNumber("ms", 60_000, { min: 1, max: HOUR }),
    maxResponseBytes: wholeNumber("bytes", 16_384, { min: 0, max: 1_048_576 }),
    recoverEveryMs: wholeNumber("ms", 50, { min: 1, max: HOUR }),
    excerptCharacters: wholeNumber("count", 0, { min: 0, max: 10_000 }),
    eventIdField: flag(false),
    headers: hook<NonNullable<DeliveryOptions["headers"]>>(),
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
      (input) => typeof input === "string" && /^[A-Za-z0-9-]{1,64}$/.test(input) && !isDeliveryHeader(input),
      "X-Service-Signature",
      "a header name",
    ),
    standardWebhooks: flag(false),
    ed25519: { ...listOf("private keys", MAX_SIGNING_KEYS, checkSigningKey), isSecret: true },
  },
  registrations: {
    filters: flag(false),
    headers: flag(false),
    perSecond: flag(false),
  },
  endpoints: {
    warnAfterMs: wholeNumber("ms", 72 * HOUR, { min: 1 }),
    disableAfterMs: wholeNumber("ms", 96 * HOUR, { min: 1 }),
  },
  notify: {
    warning: hook<NonNullable<Notify["warning"]>>(),
    disabled: hook<NonNullable<Notify["disabled"]>>(),
    exhausted: hook<NonNullable<Notify["exhausted"]>>(),
    close: hook<NonNullable<Notify["close"]>>(),
  },
  retention: {
    keepMs: wholeNumber("ms", 72 * HOUR, { min: 0 }),
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
    auditEntries: wholeNumber("count", 0, { min: 0, max: 10_000 }),
  },
  audit: hook<NonNullable<WebhooksConfig["audit"]>>(),
  sealEvents: flag(false),
  keyStorage: value<Storage | undefined>(
    "a storage, such as sqliteStorage({ file, sealKeys })",
    hasMethods("webhooks"),
    undefined,
    "a storage",
  ),
  awaitStorage: flag(true),
  ...hostOptions,
  telemetry: telemetryOption,
};

/** Reads and checks the options, also against each other. Pure. Throws `invalid_option`. */
export function readConfig(options: unknown): WebhooksConfig {
  const { storage, access, ...others } = readOptions("createWebhooks", webhooksOptions, options);
  const { authenticate, canRead, canActFor } = access;
  if (!storage) throw invalidOption("storage", "storage is missing: pass memoryStorage(), for example.");
  if (!authenticate) {
    throw invalidOption(
      "access.authenticate",
      "access.authenticate is missing: pass a function that returns the subscriber that sends a request, such as by bearer(request).",
    );
  }
  const withResource = findTypeWithResource(others.events);
  if (!canRead && withResource !== undefined) {
    throw invalidOption(
      "access.canRead",
      `access.canRead is missing: pass a function that returns true if a subscriber may read a resource. Only if all event types are plain it can be left out, and events['${withResource}'] has a resource.`,
    );
  }
  checkTimes(others);
  const body = readBodyForm(others.body, withResource);
  const { clientCertificate, ...destinations } = others.destinations;
  return Object.freeze({
    storage,
    access: Object.freeze({ authenticate, canRead, canActFor }),
    ...others,
    body,
    destinations: Object.freeze({
      ...destinations,
      clientCertificate: readCertificate(clientCertificate),
    }),
    signature: readSignature(others.signature),
  });
}

function readCertificate(option: Parameters<typeof readClientCertificate>[0]): ClientCertificate | undefined {
  const read = readClientCertificate(option);
  if (read === undefined || "cert" in read) return read;
  const field = `destinations.clientCertificate.${read.fault}`;
  throw invalidOption(field, `${field} ${read.message}`);
}

function readSignature({
  ed25519,
  ...others
}: { ed25519: readonly string[] } & Omit<WebhooksConfig["signature"], "ed25519">) {
  if (ed25519.length > 0 && !others.standardWebhooks) {
    throw invalidOption(
      "signature.ed25519",
      "signature.ed25519 needs signature.standardWebhooks: set it to true. Its signature is sent in webhook-signature.",
    );
  }
  const keys = ed25519.map(readSigningKey);
  const repeated = keys.findIndex(({ jwk }, index) => keys.findIndex((key) => key.jwk.x === jwk.x) < index);
  if (repeated !== -1) {
    const field = `signature.ed25519[${repeated}]`;
    throw invalidOption(field, `${field} must be another key than those before it.`);
  }
  return Object.freeze({ ...others, ed25519: Object.freeze(keys) });
}

/** Returns the start of the name of an event type that has a resource. */
const findTypeWithResource = (events: EventCatalogue): string | undefined =>
  Object.entries(events ?? {})
    .find(([, entry]) => typeof entry === "string" || Array.isArray(entry))?.[0]
    .slice(0, 80);

/** By default, the form that the event types have in common. */
function readBodyForm(form: BodyForm | undefined, withResource: string | undefined): BodyForm {
  if (form === undefined) return withResource === undefined ? "plain" : "notification";
  if (form === "plain" && withResource !== undefined) {
    throw invalidOption(
      "body",
      `body 'plain' is for events without a resource, and events['${withResource}'] has one: use 'notification' or 'envelope'. Events without a resource are sent as 'plain' all the same.`,
    );
  }
  return form;
}

function checkTimes({
  delivery,
  retry,
  endpoints,
}: Pick<WebhooksConfig, "delivery" | "retry" | "endpoints">): void {
  const leastLeaseMs = 2 * delivery.deadlineMs + 20_000;
  if (delivery.leaseMs < leastLeaseMs) {
    // A lease that expires during its attempt would be delivered twice.
    throw invalidOption(
      "delivery.leaseMs",
      `delivery.leaseMs must be at least twice delivery.deadlineMs plus 20 s, ${leastLeaseMs} ms (got ${delivery.leaseMs} ms).`,
    );
  }
  if (endpoints.disableAfterMs < endpoints.warnAfterMs) {
    throw invalidOption(
      "endpoints.disableAfterMs",
      `endpoints.disableAfterMs must be at least endpoints.warnAfterMs, ${endpoints.warnAfterMs} ms (got ${endpoints.disableAfterMs} ms).`,
    );
  }
  const fault = findPolicyFault(retry, "retry");
  if (fault !== undefined) throw invalidOption(fault.field, `${fault.message}.`);
}

const invalidOption = (field: string, message: string): PostbellError =>
  new PostbellError("invalid_option", `createWebhooks: ${message}`, { field });
