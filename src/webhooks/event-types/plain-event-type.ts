/** Event types without a FHIR resource: how a host describes them, and how that is checked. */

import { PostbellError } from "../../core/errors.js";
import { describeUnknownKey } from "../../core/known-names.js";
import { type DataSchema, parseDataSchema } from "../../json-schema/data-schema.js";
import { type LibrarySchema, parseLibrarySchema } from "../../json-schema/library-schema.js";
import type { SchemaMistake } from "../../schema/describe-arguments.js";
import type { Json, JsonObject } from "../../schema/types.js";

/**
 * An event type without a FHIR resource: its events have `data` of any form.
 *
 * @example
 * events: { "order.paid": { schema: z.object({ order: z.string() }) } }
 */
export interface PlainEventType {
  /** Tells subscribers when it happens. At most 1000 characters. */
  description?: string | undefined;
  /** The `data` of such an event, as an example for subscribers and in tests. */
  example?: unknown;
  /**
   * Describes `data`: a JSON Schema (draft 2020-12, or draft 7) as plain JSON, or a schema of zod,
   * valibot, arktype or another library with the interface Standard Schema. `emit` refuses other
   * data, unless `checkData` is `false`, and the compiler infers `data` from it.
   *
   * It is asked about the JSON that is sent, so a date is a string: `z.iso.datetime()`, not
   * `z.date()`. It checks and changes nothing: defaults and transforms do not alter what is sent. A
   * library may check asynchronously, within `limits.hookMs`.
   */
  schema?: object | undefined;
  /**
   * The JSON Schema that subscribers see in the OpenAPI document, as plain JSON, for a `schema` of
   * a library. Default: the one that the library writes, if it can. Set it for a library that
   * cannot, such as valibot: `toJsonSchema(schema)`.
   */
  jsonSchema?: object | undefined;
  /**
   * Returns the subject of an event that is emitted without one: what it is about, in your own
   * words. It gets the event's `data`, after that was checked; the compiler infers it from `schema`
   * in `createWebhooks` and `defineEvents`. If it throws, or returns no text of 1 to 256
   * characters, `emit` rejects and nothing is stored.
   *
   * @example
   * events: { "order.paid": { subject: (data) => `order/${data.order}` } }
   */
  // biome-ignore lint/suspicious/noExplicitAny: the host knows the data of its type.
  subject?: ((data: any) => string) | undefined; // oxlint-disable-line typescript/no-explicit-any
  /**
   * When failed deliveries of this type are attempted again, in place of the option `retry`. Parts
   * that are left out are as in that option.
   */
  retry?: TypeRetry | undefined;
}

/**
 * The retry schedule of an event type.
 *
 * @example
 * // A price is worthless after a minute.
 * events: { "price.changed": { retry: { intervalsMs: [5_000, 15_000], windowMs: 60_000 } } }
 */
export interface TypeRetry {
  /** Intervals between the first attempts, at most 100, in milliseconds. */
  readonly intervalsMs?: readonly number[] | undefined;
  /** Interval between the attempts after those. */
  readonly everyMs?: number | undefined;
  /** No retry is scheduled later than this after the first attempt. */
  readonly windowMs?: number | undefined;
}

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
/** The characters of a library's error that are quoted. */
const MAX_REASON = 200;

const PLAIN_TYPE_KEYS: readonly string[] = [
  "description",
  "example",
  "schema",
  "jsonSchema",
  "subject",
  "retry",
];

/** Returns why the entry of a plain type cannot be used; `undefined` if it can. */
function findProblem(name: string, entry: object, field: string): string | undefined {
  if (name.length > MAX_NAME || !PLAIN_EVENT_TYPE.test(name))
    return `events: ${quoteName(name)} is not an event type: write letters, digits, _ and -, in parts that are separated by dots, at most ${MAX_NAME} characters in all`;
  const unknown = Object.keys(entry).find((key) => !PLAIN_TYPE_KEYS.includes(key));
  if (unknown !== undefined) return describeUnknownKey(`${field} has no option`, unknown, PLAIN_TYPE_KEYS);
  const { description = "", subject } = entry as PlainEventType;
  if (subject !== undefined && typeof subject !== "function")
    return `${field}.subject must be a function of the data that returns a text`;
  if (typeof description !== "string" || description.length > MAX_DESCRIPTION)
    return `${field}.description must be a text of at most ${MAX_DESCRIPTION} characters`;
  return undefined;
}

/** A checked plain type. */
export interface PlainEntry {
  description?: string;
  example?: Json;
  /** The schema of `data` for subscribers. */
  jsonSchema?: JsonObject;
  /** Checks the data of events. */
  dataSchema?: DataSchema | LibrarySchema;
  /** Returns the subject of an event by its data; the value is not checked. */
  subject?: (data: unknown) => unknown;
  /** Only the parts that the type has. */
  retry?: { readonly [K in keyof TypeRetry]: NonNullable<TypeRetry[K]> };
}

/** Checks the entry of a plain type, and copies it. Throws `invalid_option`. */
export function readPlainType(name: string, entry: object, field: string): PlainEntry {
  const problem = findProblem(name, entry, field);
  if (problem !== undefined) throw invalidEvents(problem, field);
  const { description, example, schema, jsonSchema, subject, retry } = entry as PlainEventType;
  return Object.freeze({
    ...(description !== undefined && { description }),
    ...(example !== undefined && { example: copyJson(example, `${field}.example`) }),
    ...readSchemas(schema, jsonSchema, field),
    ...(subject !== undefined && { subject }),
    ...(retry !== undefined && { retry: readTypeRetry(retry, `${field}.retry`) }),
  });
}

const isDuration = (ms: unknown): ms is number => Number.isSafeInteger(ms) && (ms as number) > 0;

/** True for a list of intervals, as the option `retry.intervalsMs` takes it. */
export const isIntervalList = (input: unknown): input is readonly number[] =>
  Array.isArray(input) &&
  input.length <= 100 &&
  // Array.from visits holes too.
  Array.from(input as unknown[]).every(isDuration);

const RETRY_KEYS: readonly string[] = ["intervalsMs", "everyMs", "windowMs"];

function readTypeRetry(retry: unknown, field: string): NonNullable<PlainEntry["retry"]> {
  if (typeof retry !== "object" || retry === null || Array.isArray(retry))
    throw invalidEvents(`${field} must be an object with intervalsMs, everyMs or windowMs`, field);
  const unknown = Object.keys(retry).find((key) => !RETRY_KEYS.includes(key));
  if (unknown !== undefined)
    throw invalidEvents(describeUnknownKey(`${field} has no option`, unknown, RETRY_KEYS), field);
  const { intervalsMs, everyMs, windowMs } = retry as TypeRetry;
  if (intervalsMs !== undefined && !isIntervalList(intervalsMs)) {
    const message = `${field}.intervalsMs must be a list of at most 100 whole numbers of ms above 0`;
    throw invalidEvents(message, `${field}.intervalsMs`);
  }
  for (const [name, ms] of Object.entries({ everyMs, windowMs })) {
    if (ms !== undefined && !isDuration(ms))
      throw invalidEvents(`${field}.${name} must be a whole number of ms above 0`, `${field}.${name}`);
  }
  return Object.freeze({
    ...(intervalsMs !== undefined && { intervalsMs: Object.freeze([...intervalsMs]) }),
    ...(everyMs !== undefined && { everyMs }),
    ...(windowMs !== undefined && { windowMs }),
  });
}

function readSchemas(
  schema: unknown,
  jsonSchema: unknown,
  field: string,
): Pick<PlainEntry, "jsonSchema" | "dataSchema"> {
  const place = `${field}.schema`;
  const library = parseLibrarySchema(schema);
  if (library === undefined) {
    if (jsonSchema !== undefined) {
      const message = `${field}.jsonSchema describes a schema of a library; write a JSON Schema as schema`;
      throw invalidEvents(message, `${field}.jsonSchema`);
    }
    if (schema === undefined) return {};
    const dataSchema = parseSchema(parseDataSchema(schema), place);
    copyJson(dataSchema.json, place);
    return { jsonSchema: dataSchema.json, dataSchema };
  }
  const dataSchema = parseSchema(library, place);
  const described =
    jsonSchema === undefined
      ? describeLibrary(dataSchema, place)
      : copySchema(jsonSchema, `${field}.jsonSchema`);
  return { dataSchema, ...(described !== undefined && { jsonSchema: described }) };
}

function parseSchema<S>(parsed: { schema: S } | { mistake: SchemaMistake }, field: string): S {
  if ("schema" in parsed) return parsed.schema;
  const { path, message } = parsed.mistake;
  const place = path === "" ? field : `${field}.${path}`;
  throw invalidEvents(`${place} ${message}`, place);
}

/** Asks a library for its JSON Schema. It refuses what JSON does not have, such as a date. */
function describeLibrary(schema: LibrarySchema, field: string): JsonObject | undefined {
  let written: unknown;
  try {
    written = schema.toJsonSchema();
  } catch (cause) {
    const reason = cause instanceof Error ? `: ${cause.message.slice(0, MAX_REASON)}` : "";
    const advice = "use types that JSON has, or describe the data with jsonSchema";
    throw invalidEvents(
      `${field} cannot be written as JSON Schema by its library${reason}; ${advice}`,
      field,
    );
  }
  return written === undefined ? undefined : copySchema(written, field);
}

function copySchema(schema: unknown, field: string): JsonObject {
  const copy = copyJson(schema, field);
  if (typeof copy === "object" && copy !== null && !Array.isArray(copy)) return copy as JsonObject;
  throw invalidEvents(`${field} must be a JSON Schema, an object`, field);
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
