/**
 * Turns the event that a host passes to `emit` into the record that is stored: its identity, its
 * payload, the keys by which its host finds it again, and how long it is kept.
 */

import { hash } from "node:crypto";

import { callHook } from "../../core/clock.js";
import { isPostbellError, PostbellError } from "../../core/errors.js";
import { describeUnknownKey } from "../../core/known-names.js";
import { isUuid, nameUuid, randomUUID } from "../../core/uuid.js";
import { checkName, checkTag, parseEventTime, TAG_BOUNDS } from "../call-arguments.js";
import type { ServiceBase } from "../config/config.js";
import { findEventType, isPlain } from "../event-types/catalogue.js";
import type { PlainEntry } from "../event-types/plain-event-type.js";
import { type BuiltPayload, buildPayload, type ResolveEntry } from "../events/bundle.js";
import { buildPlainPayload, type DataCheck } from "../events/plain-event.js";
import type { FhirResource } from "../fhir.js";
import { type EventRecord, type EventToAppend, MAX_KEEP_MS } from "../store.js";
import type { EmitOptions, EventFields, EventInput, PlainEventInput } from "./event-input.js";

/** Reads the options of a call. Throws `invalid_argument`. */
export function readEmitOptions(options: EmitOptions | undefined): EmitOptions {
  if (options === undefined) return {};
  const isObject = typeof options === "object" && options !== null;
  const unknown = isObject ? Object.keys(options).find((key) => key !== "transaction") : undefined;
  if (isObject && unknown === undefined) return { transaction: options.transaction };
  throw invalidEvent(
    unknown ?? "options",
    unknown === undefined
      ? "The second argument of emit() is an object with options."
      : describeUnknownKey("emit() has no option", unknown, ["transaction"]),
  );
}

const EVENT_KEYS: readonly string[] = [
  "type",
  "account",
  "resource",
  "related",
  "data",
  "id",
  "idempotencyKey",
  "occurredAt",
  "subject",
  "tags",
  "keepMs",
];

const invalidEvent = (field: string | undefined, message: string, cause?: unknown): PostbellError =>
  new PostbellError("invalid_argument", message, { field, cause });

/**
 * Copies an event to plain data, reading each field once: a getter or a proxy could throw, or
 * return something else the second time. Throws `invalid_argument`.
 */
function readEventInput(input: EventInput | PlainEventInput): EventFields {
  if (typeof input !== "object" || input === null) {
    throw invalidEvent(undefined, "emit() takes an event, or an array of events.");
  }
  let unknown: string | undefined;
  let event: EventFields;
  try {
    unknown = Object.keys(input).find((key) => !EVENT_KEYS.includes(key));
    const { type, account, resource, related, data, id, idempotencyKey, occurredAt, subject, tags, keepMs } =
      input as EventFields;
    const list = Array.isArray(related) ? Array.from(related) : related;
    // A longer list is refused, whatever it holds.
    const words = Array.isArray(tags) && tags.length <= TAG_BOUNDS.tags ? Array.from(tags) : tags;
    event = {
      type,
      account,
      resource,
      related: list,
      data,
      id,
      idempotencyKey,
      occurredAt,
      subject,
      tags: words,
      keepMs,
    };
  } catch (cause) {
    throw invalidEvent(undefined, "The event cannot be read: one of its fields throws.", cause);
  }
  if (unknown !== undefined)
    throw invalidEvent(unknown, describeUnknownKey("An event has no field", unknown, EVENT_KEYS));
  return event;
}

/** The namespace of the UUIDs of idempotency keys. It may never change. */
const KEY_NAMESPACE = "5b5c1b0e-6e5f-4d0c-9a1f-3b8f6a2c7d41";

/**
 * Returns the id of an event, in lower case: `id`; or the name-based UUID of its account and
 * `idempotencyKey`, the same in every process; or a new one.
 *
 * @throws `invalid_argument` if one of them cannot be used, or both are present.
 */
export function toEventId(
  account: string,
  { id, idempotencyKey }: { id?: unknown; idempotencyKey?: unknown },
): string {
  if (idempotencyKey === undefined) {
    if (id === undefined) return randomUUID();
    if (typeof id === "string" && isUuid(id)) return id.toLowerCase();
    throw invalidEvent("id", "id must be a UUID; for any other text, use idempotencyKey.");
  }
  if (id !== undefined)
    throw invalidEvent("idempotencyKey", "An event has either id or idempotencyKey: leave out one of them.");
  checkName("idempotencyKey", idempotencyKey);
  // Neither may contain NUL, so no two pairs have one name.
  return nameUuid(KEY_NAMESPACE, `${account}\u0000${idempotencyKey}`);
}

/** Returns tags, each once; `undefined` for none. Throws `invalid_argument`. */
export function readTags(tags: unknown): readonly string[] | undefined {
  if (tags === undefined) return undefined;
  const { tags: most } = TAG_BOUNDS;
  if (!Array.isArray(tags) || tags.length > most) {
    const seen = Array.isArray(tags) ? `a list of ${tags.length}` : typeof tags;
    throw invalidEvent("tags", `tags must be a list of at most ${most} texts (got ${seen}).`);
  }
  const list = tags.map((tag: unknown, index) => {
    checkTag(`tags[${index}]`, tag);
    return tag;
  });
  return list.length === 0 ? undefined : [...new Set(list)];
}

/** Checks how long an event is to be kept. Throws `invalid_argument`. */
export function checkKeepMs(keepMs: unknown): asserts keepMs is number | undefined {
  if (keepMs === undefined) return;
  if (Number.isInteger(keepMs) && Number(keepMs) >= 1 && Number(keepMs) <= MAX_KEEP_MS) return;
  const seen = typeof keepMs === "number" ? keepMs : keepMs === null ? "null" : `a ${typeof keepMs}`;
  throw invalidEvent(
    "keepMs",
    `keepMs must be a whole number of milliseconds from 1 to ${MAX_KEEP_MS}, which is a year (got ${seen}).`,
  );
}

/** Returns the event to store. `keepMs` is no part of its digest: a repetition may have another. */
const addKeepMs = (record: EventRecord, keepMs: number | undefined): EventToAppend =>
  keepMs === undefined ? record : { ...record, keepMs };

/** Returns the subject that the type of a plain event gives it. Throws `invalid_argument`. */
function deriveSubject(type: string, subjectOf: NonNullable<PlainEntry["subject"]>, data: unknown): string {
  const place = `The subject of '${type}' in the events option`;
  let subject: unknown;
  try {
    subject = subjectOf(data);
  } catch (cause) {
    const reason = cause instanceof Error ? `: ${cause.message.slice(0, 200)}` : "";
    throw invalidEvent("subject", `${place} threw${reason}. Nothing was stored.`, cause);
  }
  try {
    checkName("subject", subject);
  } catch (cause) {
    const reason = isPostbellError(cause) ? cause.message : "";
    throw invalidEvent(
      "subject",
      `${place} returned no text that can be one: ${reason} Nothing was stored.`,
      cause,
    );
  }
  return subject;
}

/**
 * Returns the record of an event with its keys. The same id with other keys is a conflict, so those
 * that the host gave are part of the digest. A subject that the type gives follows from the data.
 */
function addKeys(
  record: EventRecord,
  subject: string | undefined,
  tags: readonly string[] | undefined,
): EventRecord {
  if (subject === undefined && tags === undefined) return record;
  const { id, account, type, payload } = record;
  const digest = hash("sha256", `${record.digest}\n${JSON.stringify([subject ?? null, tags ?? []])}`);
  return {
    id,
    account,
    type,
    digest,
    payload,
    ...(subject === undefined ? record.subject !== undefined && { subject: record.subject } : { subject }),
    ...(tags !== undefined && { tags }),
  };
}

/** Returns the record of a plain event with its keys. Throws `invalid_argument`. */
function addPlainKeys(
  record: EventRecord,
  { subject, data }: { subject?: string | undefined; data: unknown },
  tags: readonly string[] | undefined,
  { subject: subjectOf }: PlainEntry,
): EventRecord {
  const keyed = addKeys(record, subject, tags);
  if (subject !== undefined || subjectOf === undefined) return keyed;
  return { ...keyed, subject: deriveSubject(record.type, subjectOf, data) };
}

/** Refuses a field that events of the other kind have. */
function refuseField(event: EventFields, field: "resource" | "related" | "data", type: string): void {
  if (event[field] === undefined) return;
  const has = field === "data" ? "a resource" : "data";
  throw invalidEvent(field, `An event of type '${type}' has ${has} and no ${field}.`);
}

/**
 * Checks an event and builds its record. Returns a promise only if it has to wait for the host's
 * `resolveReference`. `trace`: the `traceparent` to store with it.
 */
export type PrepareEvent = (
  input: EventInput | PlainEventInput,
  trace: string | undefined,
) => EventToAppend | Promise<EventToAppend>;

/**
 * Returns a reference to a record, or `undefined` for a record without a valid id.
 *
 * Source: FHIR R4, data type `id`.
 */
function getSubject({ resourceType, id }: FhirResource): string | undefined {
  const isId = typeof id === "string" && id.length <= 64 && /^[A-Za-z0-9.-]+$/.test(id);
  return isId ? `${resourceType}/${id}` : undefined;
}

export function createPrepareEvent({ store, config, logger, catalogue }: ServiceBase): PrepareEvent {
  const { limits, resolveReference, clock, checkData: checksData } = config;
  /** All lookups of one event share one time limit, which begins here. */
  const createResolver = (account: string, eventType: string): ResolveEntry | undefined => {
    if (resolveReference === undefined) return undefined;
    const until = clock.monotonic() + limits.hookMs;
    return async (reference) => {
      const leftMs = until - clock.monotonic();
      if (leftMs <= 0) return null;
      try {
        return await callHook(clock, leftMs, () => resolveReference(reference, { account, eventType }));
      } catch (error) {
        // An event without one of its entries is better than a lost event.
        logger.warn(
          { account, eventType, error },
          "resolveReference failed; the event is sent without an entry for it",
        );
        return null;
      }
    };
  };

  const dataCheckOf = ({ dataSchema }: PlainEntry): DataCheck | undefined =>
    checksData && dataSchema !== undefined ? { schema: dataSchema, clock, hookMs: limits.hookMs } : undefined;

  return (input, trace) => {
    const event = readEventInput(input);
    const { type, account, occurredAt, keepMs } = event;
    checkName("account", account);
    if (typeof type !== "string") {
      throw invalidEvent("type", "type must be a string, the name of an event type.");
    }
    const eventId = toEventId(account, event);
    const isOccurredAtGiven = occurredAt !== undefined;
    const at = isOccurredAtGiven ? parseEventTime("occurredAt", occurredAt) : store.now();
    const entry = findEventType(catalogue, type);
    const tags = readTags(event.tags);
    if (event.subject !== undefined) checkName("subject", event.subject);
    checkKeepMs(keepMs);
    // Both requests are written out: a spread of what they share costs a fifth of an `emit`.
    if (isPlain(entry)) {
      refuseField(event, "resource", type);
      refuseField(event, "related", type);
      const built = buildPlainPayload({
        eventId,
        type,
        occurredAt: at,
        isOccurredAtGiven,
        trace,
        data: event.data,
        check: dataCheckOf(entry),
        maxBytes: limits.notificationBytes,
      });
      const toRecord = ({ payload, digest }: BuiltPayload): EventToAppend =>
        addKeepMs(addPlainKeys({ id: eventId, account, type, digest, payload }, event, tags, entry), keepMs);
      return built instanceof Promise ? built.then(toRecord) : toRecord(built);
    }
    refuseField(event, "data", type);
    if (event.subject !== undefined) {
      const message = `An event of type '${type}' is about its record: leave out subject.`;
      throw invalidEvent("subject", message);
    }
    const { resource, related } = event;
    const built = buildPayload({
      eventId,
      account,
      type,
      occurredAt: at,
      isOccurredAtGiven,
      trace,
      resource,
      related,
      focalTypes: entry,
      resolve: createResolver(account, type),
      limits: { entries: limits.entries, bytes: limits.notificationBytes },
    });
    const subject = getSubject(resource);
    const toRecord = ({ payload, digest }: BuiltPayload): EventToAppend => {
      const record = subject === undefined ? { payload, digest } : { payload, digest, subject };
      return addKeepMs(addKeys({ id: eventId, account, type, ...record }, undefined, tags), keepMs);
    };
    return built instanceof Promise ? built.then(toRecord) : toRecord(built);
  };
}
