/** The event that a host passes to `emit`, and the record that is stored of it. */

import { callHook } from "../../core/clock.js";
import { PostbellError } from "../../core/errors.js";
import { describeUnknownKey } from "../../core/known-names.js";
import { checkName, parseEventTime, TAG_BOUNDS } from "../call-arguments.js";
import type { ServiceBase } from "../config/config.js";
import { findEventType, isPlain } from "../event-types/catalogue.js";
import type { PlainEntry } from "../event-types/plain-event-type.js";
import { type BuiltPayload, buildPayload, type ResolveEntry } from "../events/bundle.js";
import { buildPlainPayload, type DataCheck } from "../events/plain-event.js";
import type { FhirResource } from "../fhir.js";
import type { EventToAppend } from "../store.js";
import type { HostTransaction } from "../transaction.js";
import type { EventFields, EventInput, PlainEventInput } from "./event-input.js";
import { addKeepMs, addKeys, addPlainKeys, checkKeepMs, readTags, toEventId } from "./event-keys.js";

/** The result of `emit`: a list for a list of events, in the same order. */
export type EmitResult<E> = unknown extends E
  ? Emitted
  : E extends readonly unknown[]
    ? readonly Emitted[]
    : Emitted;

/** The options of one call of `emit`. */
export interface EmitOptions {
  /**
   * The transaction that you have begun, in the database of the storage: a client of `pg`, an
   * object with `query(text, values)`, `fromDrizzle(tx)` and its like of `postbell/orm`, or
   * another open database of the same SQLite file. The event is written in it. It is delivered if
   * you commit, and never existed if you roll back, also to a savepoint.
   *
   * If the connection ends, the next statement on it rejects. A client of `pg` gets a listener of
   * `error`, so that this does not end the process.
   */
  transaction?: HostTransaction | undefined;
}

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

/** The result of emitting one event. */
export interface Emitted {
  /** The event's id, in lower case: a UUID, also if the event has an `idempotencyKey`. */
  readonly id: string;
  /** True if the id was emitted before: nothing was added, and `deliveries` are the first ones. */
  readonly duplicate: boolean;
  /** For storages that check it: true if a replica has the event too. */
  readonly confirmed?: boolean | undefined;
  /** One for each webhook that receives the event. */
  readonly deliveries: readonly { readonly id: string; readonly webhookId: string }[];
  /**
   * How many webhooks the account has now, ENABLED or not and whatever they subscribe to. 0 often
   * means that `account` is misspelt: `"A"` is not `"a"`. If it is more than 0 and there are no
   * deliveries, all webhooks are DISABLED or want other types; a logger whose `debug` is on is told
   * which.
   */
  readonly webhooks: number;
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
