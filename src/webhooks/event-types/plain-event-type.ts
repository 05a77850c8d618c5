/** Event types without a FHIR resource: their definition, and the type of their data. */

import { PostbellError } from "../../core/errors.js";
import { describeUnknownKey } from "../../core/known-names.js";
import { type DataSchema, parseDataSchema } from "../../json-schema/data-schema.js";
import type { Json, JsonObject } from "../../schema/types.js";

/** An event type without a FHIR resource: its events have `data` of any form. */
export interface PlainEventType {
  /** Tells subscribers when it happens. At most 1000 characters. */
  readonly description?: string | undefined;
  /** The `data` of such an event, as an example for subscribers and in tests. */
  readonly example?: unknown;
  /**
   * A JSON Schema (draft 2020-12, or draft 7) of `data`, as plain JSON. `emit` refuses other data,
   * unless `checkData` is `false`, and subscribers see the schema in the OpenAPI document.
   */
  readonly schema?: JsonObject | undefined;
}

/** The `data` of the events of a plain type, by its schema. */
export type DataOf<C, T> = T extends keyof C
  ? C[T] extends string | readonly unknown[]
    ? never
    : C[T] extends { readonly schema: infer S }
      ? FromSchema<S>
      : unknown
  : unknown;

/**
 * The values that a JSON Schema accepts. Only `const`, `enum`, `type`, `properties`, `required` and
 * `items` are read.
 */
export type FromSchema<S> = S extends { readonly const: infer V }
  ? V
  : S extends { readonly enum: readonly (infer V)[] }
    ? V
    : S extends { readonly type: readonly (infer N)[] }
      ? OfType<S, N>
      : S extends { readonly type: infer N }
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
    ? readonly (S extends { readonly items: infer I } ? FromSchema<I> : unknown)[]
    : N extends "object"
      ? S extends { readonly properties: infer P }
        ? ObjectOf<P, S extends { readonly required: readonly (infer R)[] } ? R : never>
        : object
      : unknown;

type ObjectOf<P, R> = { readonly [K in keyof P as K extends R ? K : never]: FromSchema<P[K]> } & {
  readonly [K in keyof P as K extends R ? never : K]?: FromSchema<P[K]> | undefined;
};

/** The characters of an unknown name that are quoted, so that a name of megabytes costs nothing. */
const MAX_SHOWN = 80;

/** Quotes a name for a message, shortened if it is long. */
export function quoteName(name: string): string {
  return name.length > MAX_SHOWN ? `'${name.slice(0, MAX_SHOWN)}…'` : `'${name}'`;
}

export const invalidEvents = (message: string, field = "events"): PostbellError =>
  new PostbellError("invalid_option", `createWebhooks: ${message}`, { field });

const PLAIN_EVENT_TYPE = /^[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*$/;
const MAX_NAME = 128;
const MAX_DESCRIPTION = 1_000;
/** UTF-16 units of an example or a schema as JSON. */
const MAX_JSON = 65_536;

const PLAIN_TYPE_KEYS: readonly string[] = ["description", "example", "schema"];

/** Returns why the entry of a plain type cannot be used; `undefined` if it can. */
function findProblem(name: string, entry: object, field: string): string | undefined {
  if (name.length > MAX_NAME || !PLAIN_EVENT_TYPE.test(name))
    return `events: ${quoteName(name)} is not an event type: write letters, digits, _ and -, in parts that are separated by dots, at most ${MAX_NAME} characters in all`;
  const unknown = Object.keys(entry).find((key) => !PLAIN_TYPE_KEYS.includes(key));
  if (unknown !== undefined) return describeUnknownKey(`${field} has no option`, unknown, PLAIN_TYPE_KEYS);
  const { description = "" } = entry as PlainEventType;
  if (typeof description !== "string" || description.length > MAX_DESCRIPTION)
    return `${field}.description must be a text of at most ${MAX_DESCRIPTION} characters`;
  return undefined;
}

/** A checked plain type. */
export interface PlainEntry extends PlainEventType {
  /** Checks the data of events by `schema`. */
  readonly dataSchema?: DataSchema;
}

/** Checks the entry of a plain type, and copies it. Throws `invalid_option`. */
export function readPlainType(name: string, entry: object, field: string): PlainEntry {
  const problem = findProblem(name, entry, field);
  if (problem !== undefined) throw invalidEvents(problem, field);
  const { description, example, schema } = entry as PlainEventType;
  const dataSchema = schema === undefined ? undefined : readDataSchema(schema, `${field}.schema`);
  return Object.freeze({
    ...(description !== undefined && { description }),
    ...(example !== undefined && { example: copyJson(example, `${field}.example`) }),
    ...(dataSchema !== undefined && { schema: dataSchema.json, dataSchema }),
  });
}

function readDataSchema(schema: unknown, field: string): DataSchema {
  const parsed = parseDataSchema(schema);
  if ("mistake" in parsed) {
    const { path, message } = parsed.mistake;
    const place = path === "" ? field : `${field}.${path}`;
    throw invalidEvents(`${place} ${message}`, place);
  }
  copyJson(parsed.schema.json, field);
  return parsed.schema;
}

/** Copies a value as JSON, so that later changes of the host have no effect. */
function copyJson(value: unknown, path: string): Json {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch {
    text = undefined;
  }
  if (text === undefined || text.length > MAX_JSON)
    throw invalidEvents(`${path} must be JSON of at most ${MAX_JSON} characters`, path);
  return JSON.parse(text) as Json;
}
