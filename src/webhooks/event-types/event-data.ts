/** The types of a catalogue's events, as the compiler infers them from the `events` option. */

import type { StandardSchema } from "../../json-schema/library-schema.js";
import type { ClinicalEvents, ClinicalEventType } from "./clinical-events.js";

/**
 * The names of a catalogue: the values that `emit({ type })` accepts.
 *
 * @example
 * const events = { "order.paid": { schema: z.object({ order: z.string() }) } };
 * type Name = EventName<typeof events>; // "order.paid"
 */
export type EventName<C> =
  // Named apart from the host's types, so that a compiler's error does not list the fifty.
  C extends ClinicalEvents
    ? ClinicalEventType | Exclude<keyof C & string, ClinicalEventType>
    : keyof C & string;

/**
 * The `data` of a catalogue's plain event, by the schema of its type: the values that `emit`
 * accepts, and that `canRead` and receivers get. `unknown` for a type without a schema.
 *
 * @example
 * const events = { "order.paid": { schema: z.object({ order: z.string() }) } };
 * type Paid = EventData<typeof events, "order.paid">; // { order: string }
 */
export type EventData<C, T extends EventName<C>> = DataOf<C, T>;

/** The same for any name: `unknown` for a type that the catalogue does not have. */
export type DataOf<C, T> = T extends keyof C
  ? C[T] extends string | readonly unknown[]
    ? never
    : C[T] extends { schema: infer S }
      ? FromSchema<S>
      : unknown
  : unknown;

/**
 * The parts of a catalogue that the compiler infers before it reads the functions in it: for each
 * type the resource types of its record, or the schema of its data.
 */
export type CatalogueParts<C> = {
  readonly [K in keyof C]: C[K] extends { schema: infer S }
    ? S
    : C[K] extends readonly (infer Name)[]
      ? Name
      : C[K];
};

/** The entries of a catalogue whose parts are `P`. The `subject` of each gets its own data. */
export type CatalogueEntries<P> = {
  readonly [K in keyof P]:
    | (P[K] & string)
    | readonly (P[K] & string)[]
    | TypeWithSchema<P[K]>
    | (string extends keyof P ? P[K] : never);
};

interface TypeWithSchema<S> {
  schema?: S;
  subject?: SubjectOf<FromSchema<S>>;
}

/**
 * The parts of the catalogue that `createWebhooks` infers as `C`; of the clinical one if the option
 * `events` is left out. `C` has no default there: the compiler would settle on it before it has
 * read the functions in a catalogue.
 */
export type DefaultParts<C> = string extends keyof C ? ClinicalEvents : CatalogueParts<C>;

/** The catalogue of the service that `createWebhooks` returns. */
export type ServiceCatalogue<C, P> = P extends ClinicalEvents
  ? string extends keyof C
    ? ClinicalEvents
    : C
  : C;

/** The catalogue whose parts are `P`, without the functions in it. */
export type CatalogueOf<P> = {
  readonly [K in keyof P]: P[K] extends string ? P[K] : { schema: P[K] };
};

/**
 * The data of a type without a schema is `unknown`. A method's parameter is compared in both
 * directions, so that a function may name the data of such a type.
 */
type SubjectOf<D> =
  | (unknown extends D ? { of(data: unknown): string }["of"] : (data: D) => string)
  | undefined;

/** True for a plain event type of a catalogue. */
export type IsPlainType<C, T> = T extends keyof C
  ? [Extract<C[T], string | readonly unknown[]>] extends [never]
    ? true
    : false
  : false;

/**
 * The resource types that the record of an event has. Any, for a type that `C` does not have;
 * `null` for a plain type.
 */
export type ResourceTypeOf<C, T> = T extends keyof C
  ? C[T] extends readonly (infer Name)[]
    ? Name
    : C[T] extends string
      ? C[T]
      : null
  : string;

/**
 * The values that a schema accepts: of a library, what it infers as input; of a JSON Schema, what
 * `const`, `enum`, `anyOf`, `oneOf`, `type`, `properties`, `required`, `additionalProperties` and
 * `items` say.
 */
export type FromSchema<S> =
  S extends StandardSchema<infer Input>
    ? Input
    : S extends { const: infer V }
      ? V
      : S extends { enum: readonly (infer V)[] }
        ? V
        : S extends { anyOf: readonly (infer A)[] }
          ? FromType<S> & FromSchema<A>
          : S extends { oneOf: readonly (infer A)[] }
            ? FromType<S> & FromSchema<A>
            : FromType<S>;

type FromType<S> = S extends { type: readonly (infer N)[] }
  ? OfType<S, N>
  : S extends { type: infer N }
    ? OfType<S, N>
    : unknown;

interface SimpleTypes {
  string: string;
  number: number;
  integer: number;
  boolean: boolean;
  null: null;
}

type OfType<S, N> = N extends keyof SimpleTypes
  ? SimpleTypes[N]
  : N extends "array"
    ? readonly (S extends { items: infer I } ? FromSchema<I> : unknown)[]
    : N extends "object"
      ? S extends { properties: infer P }
        ? ObjectOf<P, S extends { required: readonly (infer R)[] } ? R : never>
        : S extends { additionalProperties: infer A extends object }
          ? { readonly [name: string]: FromSchema<A> }
          : object
      : unknown;

type ObjectOf<P, R> = Flat<
  { readonly [K in keyof P as K extends R ? K : never]: FromSchema<P[K]> } & {
    readonly [K in keyof P as K extends R ? never : K]?: FromSchema<P[K]> | undefined;
  }
>;

/** One object type in place of an intersection, which an editor shows as it is written. */
type Flat<T> = { [K in keyof T]: T[K] };
