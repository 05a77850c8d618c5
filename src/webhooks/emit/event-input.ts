/** The event that a host passes to `emit`, as the compiler checks it against the catalogue. */

import type { PlainCatalogue } from "../event-types/catalogue.js";
import type { DataOf, EventName, IsPlainType, ResourceTypeOf } from "../event-types/event-data.js";
import type { FhirResource, ParsedResource } from "../fhir.js";
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
  type: T;
  /**
   * The account that the record belongs to. The webhooks of this account receive the event. 1 to
   * 256 characters without NUL and lone surrogates, compared exactly.
   */
  account: string;
  /**
   * The record, of the resource type that belongs to `type`. For a deleted record: its last
   * version, or its `resourceType` and `id`.
   */
  resource: FhirResource;
  /** Resources that the record references, directly or in turn. Unreferenced ones are ignored. */
  related?: readonly FhirResource[] | undefined;
  /**
   * Identifies the event by a text of your choice, such as `order-1-paid`, so that repeating the
   * call is safe: within 24 hours it adds nothing and its result is a `duplicate`; with other
   * content it rejects with `event_conflict`. 1 to 256 characters without NUL and lone surrogates.
   * The same key of another account is another event. Subscribers see a UUID that is computed from
   * both.
   */
  idempotencyKey?: string | undefined;
  /**
   * A UUID that identifies the event, in place of `idempotencyKey`. Default: a new one.
   */
  id?: string | undefined;
  /** When it happened. Default: now. */
  occurredAt?: Date | string | undefined;
  /**
   * Words by which `deliveries.list` finds the event, such as `invoice`: at most 20, of 1 to 64
   * characters. They are not sent.
   */
  tags?: readonly string[] | undefined;
  /**
   * How long the event is kept after its last delivery ended, in place of `retention.keepMs`: its
   * body, its deliveries and their attempts are removed then. Milliseconds, a whole number from 1
   * to 31 536 000 000 (a year of 365 days). A resend or a replay begins the time again. Its id and
   * its `idempotencyKey` are still remembered for 24 hours. It is no part of the content: repeating
   * the call with another value is a `duplicate`, and the first value stays.
   *
   * `retention.events` still bounds how many events of an account are kept. Events with a `keepMs`
   * of their own are removed last.
   *
   * @example
   * keepMs: 3_600_000 // a one-time code: gone an hour after it was delivered
   */
  keepMs?: number | undefined;
}

/**
 * An event without a FHIR resource, of a type that the `events` option describes as an object.
 *
 * @example
 * await webhooks.emit({ type: "order.paid", account: "shop-7", data: { order: "A-1" } });
 */
export interface PlainEventInput<T extends string = string, D = unknown>
  extends Pick<
    EventInput<T>,
    "type" | "account" | "idempotencyKey" | "id" | "occurredAt" | "tags" | "keepMs"
  > {
  /** A value that JSON can hold. It is sent as `data`. */
  data: D;
  /**
   * The thing that the event is about, in your words: `order/A-1`. `deliveries.list` finds the
   * event by it. 1 to 256 characters without NUL and lone surrogates. It is not sent. Default: the
   * `subject` of the event's type, if that has one. An event with a resource is about its record,
   * and takes no other subject.
   */
  subject?: string | undefined;
}

/** An event of either kind. */
export type AnyEventInput = EventInput | PlainEventInput;

/** The fields of an event of either kind. */
export type EventFields = EventInput & PlainEventInput;

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
  type?: T | (string & {});
  account?: unknown;
  resource?: unknown;
  related?: unknown;
  data?: unknown;
  idempotencyKey?: unknown;
  id?: unknown;
  occurredAt?: unknown;
  subject?: unknown;
  tags?: unknown;
  keepMs?: unknown;
}

declare const catalogue: unique symbol;

/** Marks an event that was checked against the catalogue `C`. No value has this field. */
interface CheckedBy<C> {
  [catalogue]?: (events: C) => C;
}

/**
 * An event of the type `T` of a catalogue, as `emit` takes it: for a function that emits any type.
 *
 * @example
 * const audit = <T extends keyof typeof events>(event: CatalogueEvent<typeof events, T>) => {
 *   console.log(event.type, event.account);
 *   return webhooks.emit(event);
 * };
 */
export type CatalogueEvent<C, T extends EventName<C> = EventName<C>> = CheckedBy<C> &
  { readonly [K in EventName<C>]: EventOfType<C, K> }[T];

// The kind follows from the whole catalogue, if that has one kind: a generic function knows it
// then.
type EventOfType<C, K extends string> = [C] extends [PlainCatalogue]
  ? PlainEventInput<K, DataOf<C, K>>
  : [C] extends [Readonly<Record<string, string | readonly string[]>>]
    ? ResourceEvent<K, ResourceTypeOf<C, K>>
    : IsPlainType<C, K> extends true
      ? PlainEventInput<K, DataOf<C, K>>
      : ResourceEvent<K, ResourceTypeOf<C, K>>;

/** An event about a record. Its type is a union for the reason that {@link FhirResource} has. */
interface ResourceEvent<T extends string, R> extends Omit<EventInput<T>, "resource"> {
  resource: ResourceOf<R> | (ResourceOf<R> & ParsedResource);
}

/** True if a resource type may be one of the `Wanted`. A plain string may be any. */
type MayBe<R, Wanted> = string extends R
  ? true
  : [Wanted] extends [never]
    ? true
    : [R & Wanted] extends [never]
      ? false
      : true;

/** The type that one event with a resource should have had; `never` if nothing is wrong with it. */
type Correction<C, E> =
  E extends EventInput<EventName<C>>
    ? MayBe<E["resource"]["resourceType"], ResourceTypeOf<C, E["type"]>> extends true
      ? Exclude<keyof E, keyof EventInput> extends never
        ? never
        : EventInput<EventName<C>>
      : EventAbout<E["type"], ResourceTypeOf<C, E["type"]>>
    : EventInput<EventName<C>>;

interface Typed {
  type: unknown;
}

type OneOrList<T> = T | readonly T[];

type TypeOf<E> = E extends { type: infer T } ? T : never;

/** The type that one event should have. An event with `data` is checked as a plain one. */
type EmittableItem<C, E> = unknown extends E
  ? E
  : E extends { data: unknown }
    ? PlainEventInput<EventName<C>, DataOf<C, TypeOf<E>>>
    : true extends IsPlainType<C, TypeOf<E>>
      ? PlainEventInput<EventName<C>, DataOf<C, TypeOf<E>>>
      : [Correction<C, E>] extends [never]
        ? E
        : Correction<C, E>;

/**
 * The argument of `emit` for a value of the type `E`: the value itself, or else the type that it
 * should have had. The compiler's error then names the field at fault and not the whole catalogue.
 *
 * The resource is checked if its `resourceType` is known to the compiler.
 */
export type Emittable<C, E> = [E, E] extends [OneOrList<CheckedBy<C>>, OneOrList<Typed>]
  ? E
  : unknown extends E
    ? E
    : E extends readonly unknown[]
      ? { readonly [I in keyof E]: EmittableItem<C, E[I]> }
      : EmittableItem<C, E>;

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
