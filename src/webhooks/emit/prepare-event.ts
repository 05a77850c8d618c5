/** The event that a host passes to `emit`, and the record that is stored of it. */

import { randomUUID } from "node:crypto";
import { callHook } from "../../core/clock.js";
import { PostbellError } from "../../core/errors.js";
import { describeUnknownKey } from "../../core/known-names.js";
import { isUuid } from "../../core/uuid.js";
import { checkName, parseEventTime } from "../call-arguments.js";
import type { ServiceBase } from "../config/config.js";
import { findEventType, isPlain, type ResourceTypeOf } from "../event-types/catalogue.js";
import type { DataOf } from "../event-types/plain-event-type.js";
import { type BuiltPayload, buildPayload, type ResolveEntry } from "../events/bundle.js";
import { buildPlainPayload } from "../events/plain-event.js";
import type { FhirResource } from "../fhir.js";
import type { EventRecord } from "../store.js";
import type { HostTransaction } from "../transaction.js";

/**
 * An event: something happened to a record of an account.
 *
 * @example
 * await webhooks.emit({
 *   type: "patient.updated",
 *   account: "clinic-7",
 *   resource: { resourceType: "Patient", id: "42", active: true },
 * });
 */
export interface EventInput<T extends string = string> {
  /** One of the names of the `events` option. */
  readonly type: T;
  /**
   * The account that the record belongs to. The webhooks of this account receive the event. 1 to
   * 256 characters without NUL and lone surrogates, compared exactly.
   */
  readonly account: string;
  /**
   * The record, of the resource type that belongs to `type`. For a deleted record: its last
   * version, or its `resourceType` and `id`.
   */
  readonly resource: FhirResource;
  /** Resources that the record references, directly or in turn. Unreferenced ones are ignored. */
  readonly related?: readonly FhirResource[] | undefined;
  /**
   * A UUID that identifies the event. Default: a new one. Emitting it again within 24 hours adds
   * nothing, so pass your own id where you may have to repeat the call.
   */
  readonly id?: string | undefined;
  /** When it happened. Default: now. */
  readonly occurredAt?: Date | string | undefined;
}

/**
 * An event without a FHIR resource, of a type that the `events` option describes as an object.
 *
 * @example
 * await webhooks.emit({ type: "order.paid", account: "shop-7", data: { order: "A-1" } });
 */
export interface PlainEventInput<T extends string = string, D = unknown>
  extends Pick<EventInput<T>, "type" | "account" | "id" | "occurredAt"> {
  /** A value that JSON can hold. It is sent as `data`. */
  readonly data: D;
}

/** An event of either kind. */
export type AnyEventInput = EventInput | PlainEventInput;

/** The fields of an event of either kind. */
type GivenEvent = EventInput & PlainEventInput;

/** A resource of one of the types `R`. */
export interface ResourceOf<R> {
  readonly resourceType: R;
  readonly id?: string | undefined;
}

/** An event whose record is of one of the resource types `R`. */
export interface EventAbout<T extends string, R> extends Omit<EventInput<T>, "resource"> {
  readonly resource: ResourceOf<R>;
}

/**
 * The fields and the event types that an editor suggests for an event. {@link Emittable} checks
 * their values.
 */
export interface EventHint<T extends string> {
  readonly type?: T | (string & {});
  readonly account?: unknown;
  readonly resource?: unknown;
  readonly related?: unknown;
  readonly data?: unknown;
  readonly id?: unknown;
  readonly occurredAt?: unknown;
}

/** True if a resource type may be one of the `Wanted`. A plain string may be any. */
type MayBe<R, Wanted> = string extends R
  ? true
  : [Wanted] extends [never]
    ? true
    : [R & Wanted] extends [never]
      ? false
      : true;

/** The type that one plain event should have had; `never` if nothing is wrong with it. */
type PlainCorrection<E, Wanted> = E extends Wanted
  ? Exclude<keyof E, keyof PlainEventInput> extends never
    ? never
    : Wanted
  : Wanted;

/** The type that one event should have had; `never` if nothing is wrong with it. */
type Correction<T extends string, C, E> = E extends { readonly type: string; readonly data: unknown }
  ? PlainCorrection<E, PlainEventInput<T, DataOf<C, E["type"]>>>
  : E extends EventInput<T>
    ? MayBe<E["resource"]["resourceType"], ResourceTypeOf<C, E["type"]>> extends true
      ? Exclude<keyof E, keyof EventInput> extends never
        ? never
        : EventInput<T>
      : EventAbout<E["type"], ResourceTypeOf<C, E["type"]>>
    : EventInput<T>;

type Corrections<T extends string, C, E> = E extends readonly (infer Item)[]
  ? Correction<T, C, Item>
  : Correction<T, C, E>;

type CorrectedItem<W, E> = [W] extends [never] ? E : W;

/**
 * The argument of `emit` for a value of the type `E`: the value itself, or else the type that it
 * should have had. The compiler's error then names the field at fault and not the whole catalogue.
 *
 * `T` are the names of the catalogue `C`. The resource is checked if its `resourceType` is known to
 * the compiler.
 */
export type Emittable<T extends string, C, E> = [Corrections<T, C, E>] extends [never]
  ? E
  : E extends readonly unknown[]
    ? { readonly [I in keyof E]: CorrectedItem<Correction<T, C, E[I]>, E[I]> }
    : Correction<T, C, E>;

/** The result of `emit`: a list for a list of events, in the same order. */
export type EmitResult<E> = unknown extends E
  ? Emitted
  : E extends readonly unknown[]
    ? readonly Emitted[]
    : Emitted;

/** The options of one call of `emit`. */
export interface EmitOptions {
  /**
   * The transaction that you have begun, in the database of the storage: a client of `pg`, an object
   * with `query(text, values)`, `fromDrizzle(tx)` and its like of `postbell/orm`, or another open
   * database of the same SQLite file. The event is written in it. It is delivered if you commit, and
   * never existed if you roll back, also to a savepoint.
   *
   * If the connection ends, the next statement on it rejects. A client of `pg` gets a listener of
   * `error`, so that this does not end the process.
   */
  readonly transaction?: HostTransaction | undefined;
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
  /** The event's id, in lower case. */
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

const EVENT_KEYS: readonly string[] = ["type", "account", "resource", "related", "data", "id", "occurredAt"];

const invalidEvent = (field: string | undefined, message: string, cause?: unknown): PostbellError =>
  new PostbellError("invalid_argument", message, { field, cause });

/**
 * Copies an event to plain data, reading each field once: a getter or a proxy could throw, or
 * return something else the second time. Throws `invalid_argument`.
 */
function readEventInput(input: EventInput | PlainEventInput): GivenEvent {
  if (typeof input !== "object" || input === null) {
    throw invalidEvent(undefined, "emit() takes an event, or an array of events.");
  }
  let unknown: string | undefined;
  let event: GivenEvent;
  try {
    unknown = Object.keys(input).find((key) => !EVENT_KEYS.includes(key));
    const { type, account, resource, related, data, id, occurredAt } = input as GivenEvent;
    const list = Array.isArray(related) ? Array.from(related) : related;
    event = { type, account, resource, related: list, data, id, occurredAt };
  } catch (cause) {
    throw invalidEvent(undefined, "The event cannot be read: one of its fields throws.", cause);
  }
  if (unknown !== undefined)
    throw invalidEvent(unknown, describeUnknownKey("An event has no field", unknown, EVENT_KEYS));
  return event;
}

function readEventId(id: unknown): string {
  if (typeof id === "string" && isUuid(id)) return id.toLowerCase();
  throw invalidEvent("id", "id must be a UUID.");
}

/** Refuses a field that events of the other kind have. */
function refuseField(event: GivenEvent, field: "resource" | "related" | "data", type: string): void {
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
) => EventRecord | Promise<EventRecord>;

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

  return (input, trace) => {
    const event = readEventInput(input);
    const { type, account, occurredAt } = event;
    checkName("account", account);
    if (typeof type !== "string") {
      throw invalidEvent("type", "type must be a string, the name of an event type.");
    }
    const eventId = event.id === undefined ? randomUUID() : readEventId(event.id);
    const isOccurredAtGiven = occurredAt !== undefined;
    const at = isOccurredAtGiven ? parseEventTime("occurredAt", occurredAt) : store.now();
    const entry = findEventType(catalogue, type);
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
        schema: checksData ? entry.dataSchema : undefined,
        maxBytes: limits.notificationBytes,
      });
      return { id: eventId, account, type, ...built };
    }
    refuseField(event, "data", type);
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
    const toRecord = ({ payload, digest }: BuiltPayload): EventRecord => ({
      id: eventId,
      account,
      type,
      digest,
      payload,
      ...(subject !== undefined && { subject }),
    });
    return built instanceof Promise ? built.then(toRecord) : toRecord(built);
  };
}
