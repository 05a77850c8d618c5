/** Event types: the host's table of them, and those that a webhook subscribes to. */

import { PostbellError } from "../../core/errors.js";
import { findNearest } from "../../core/known-names.js";
import { invalidField } from "../call-arguments.js";
import type { CatalogueEntries, CatalogueParts } from "./event-data.js";
import {
  invalidEvents,
  type PlainEntry,
  type PlainEventType,
  quoteName,
  readPlainType,
} from "./plain-event-type.js";

/**
 * Maps each event type to a {@link PlainEventType}, or to the FHIR resource type, or types, that
 * the record of such an event has.
 *
 * The name of a plain type has letters, digits, `_` and `-`, in parts that are separated by dots,
 * at most 128 characters in all. The name of a type with a resource is lower-case letters, digits
 * and hyphens around one dot.
 *
 * @example
 * const events = {
 *   "order.paid": { description: "Paid in full.", schema: z.object({ order: z.string() }) },
 *   "invoice.payment.failed": {},
 * };
 * @example
 * const events = {
 *   "order.placed": "ServiceRequest",
 *   "result.available": ["Observation", "DiagnosticReport"],
 * };
 */
export type EventCatalogue = Readonly<Record<string, string | readonly string[] | AnyPlainType>>;

/**
 * A plain type whose `subject` may be anything, so that it is no second context for the compiler,
 * in which `data` has no type. {@link CatalogueEntries} checks it.
 */
export interface AnyPlainType extends Omit<PlainEventType, "subject"> {
  subject?: unknown;
}

// biome-ignore lint/suspicious/noExplicitAny: a service of every catalogue is a `Webhooks`.
export type AnyCatalogue = any; // oxlint-disable-line typescript/no-explicit-any

/** A catalogue whose events have no FHIR resource. */
export type PlainCatalogue = Readonly<Record<string, AnyPlainType>>;

/**
 * Returns a catalogue as it is, with the types that `createWebhooks` infers from one in its
 * options. Use it for a catalogue in a separate file: a JSON Schema then needs no `as const`, and
 * a `subject` knows its data.
 *
 * @example
 * export const events = defineEvents({
 *   "order.paid": { schema: { type: "object", properties: { order: { type: "string" } } } },
 * });
 * type Paid = EventData<typeof events, "order.paid">; // { order?: string }
 */
export const defineEvents = <const C extends EventCatalogue, const P = CatalogueParts<C>>(
  events: C & CatalogueEntries<P>,
): C => events;

/** The event type of tests in the delivery log. No catalogue may contain it. */
export const TEST_EVENT_TYPE = "webhook.test";

/** A checked catalogue. */
export interface Catalogue {
  types: ReadonlyMap<string, EventTypeEntry>;
  /** The names of the types, sorted. */
  names: readonly string[];
  /** The parts before the dots of every type. */
  prefixes: ReadonlySet<string>;
}

/** One event type: the resource types that its focal resource may have, or a plain type. */
export type EventTypeEntry = readonly string[] | PlainEntry;

export const isPlain = (entry: EventTypeEntry): entry is PlainEntry => !Array.isArray(entry);

const RESOURCE_TYPE = /^[A-Za-z][A-Za-z0-9]{0,63}$/;

/**
 * True if `name` has the form of a resource type: a letter, then letters and digits, at most 64 in
 * all. It does not check that FHIR defines the type.
 */
export function isResourceTypeName(name: string): boolean {
  return RESOURCE_TYPE.test(name);
}

const EVENT_TYPE = /^[a-z0-9-]+\.[a-z0-9-]+$/;
/**
 * Checks a catalogue and copies it, so later changes of the table have no effect.
 *
 * @throws `invalid_option` with field `events` or `events['<name>']` if it is not a table, is
 * empty, contains a malformed name or resource type, or contains the name of tests, `webhook.test`.
 */
export function readCatalogue(events: EventCatalogue): Catalogue {
  if (typeof events !== "object" || events === null || Array.isArray(events)) {
    throw invalidEvents("events must be a table from event type to resource type");
  }
  const types = new Map<string, EventTypeEntry>();
  for (const [name, entry] of Object.entries(events)) {
    types.set(name, readEntry(name, entry));
  }
  if (types.size === 0) throw invalidEvents("events must contain at least one event type");
  const names = Object.freeze([...types.keys()].sort());
  return Object.freeze({ types, names, prefixes: new Set(names.flatMap(listPrefixes)) });
}

/** Lists the parts of a type that end before a dot: `invoice` and `invoice.payment`. */
const listPrefixes = (type: string): string[] =>
  Array.from(type.matchAll(/\./g), ({ index }) => type.slice(0, index));

function readEntry(name: string, entry: unknown): EventTypeEntry {
  const field = `events[${quoteName(name)}]`;
  if (name === TEST_EVENT_TYPE) {
    throw invalidEvents(`events: ${quoteName(name)} is reserved for tests; choose another name`, field);
  }
  const isTable = typeof entry === "object" && entry !== null && !Array.isArray(entry);
  return isTable ? readPlainType(name, entry, field) : readResourceTypes(name, entry, field);
}

function readResourceTypes(name: string, resourceTypes: unknown, field: string): readonly string[] {
  if (!EVENT_TYPE.test(name)) {
    throw invalidEvents(
      `events: ${quoteName(name)} is not an event type: write prefix.action in lower-case letters, digits and hyphens`,
      field,
    );
  }
  const list: readonly unknown[] = Array.isArray(resourceTypes) ? resourceTypes : [resourceTypes];
  const isName = (item: unknown): item is string => typeof item === "string" && isResourceTypeName(item);
  if (list.length === 0 || !list.every(isName)) {
    throw invalidEvents(
      `${field} must name one resource type or several, or be an object for a plain event`,
      field,
    );
  }
  return Object.freeze([...list]);
}

/**
 * Returns the part of an event type before its first dot: the key of the record in the
 * notification's context.
 */
export function contextKey(type: string): string {
  const dot = type.indexOf(".");
  return dot === -1 ? type : type.slice(0, dot);
}

/**
 * Returns the entry of an event type.
 *
 * @throws `unknown_event_type` if the catalogue does not contain the type. The message names the
 * nearest one.
 */
export function findEventType(catalogue: Catalogue, type: string, field = "type"): EventTypeEntry {
  const found = catalogue.types.get(type);
  if (found === undefined) throw unknownEventType(type, [...catalogue.types.keys()], field);
  return found;
}

/** @throws `unknown_event_type` unless the type is in the catalogue, or that of a test. */
export function requireLoggedType(catalogue: Catalogue, type: unknown): void {
  if (typeof type !== "string")
    throw invalidField("type", "type must be a string, the name of an event type.");
  if (type !== TEST_EVENT_TYPE) findEventType(catalogue, type);
}

/**
 * Returns the error for a name that is not among `candidates`. If one of them is near, the message
 * names it.
 */
function unknownEventType(name: string, candidates: readonly string[], field: string): PostbellError {
  const guess = findNearest(name, candidates);
  const hint = guess === undefined ? "; it is not in the catalogue" : `; did you mean ${quoteName(guess)}?`;
  return new PostbellError("unknown_event_type", `unknown event type ${quoteName(name)}${hint}`, { field });
}

const EVENT_TYPES_FIELD = "event_types";

/** The largest number of patterns of one webhook. `*` and `prefix.*` match many types. */
export const MAX_EVENT_TYPES = 1_000;

/**
 * Reads the `event_types` of a registration.
 *
 * Returns `null` if it is absent, for every type including future ones. Otherwise it must be a list
 * of at least one pattern: a type of the catalogue, `prefix.*` for every type of a prefix, or `*`.
 * Case-sensitive.
 *
 * @throws `invalid_request` if it is not a list, is empty, or contains a repetition or a value that
 * is not a string; `unknown_event_type` for a name that is not in the catalogue. `field` is
 * `event_types` or `event_types[2]`.
 */
export function readEventTypes(value: unknown, catalogue: Catalogue): readonly string[] | null {
  if (value === undefined) return null;
  if (!Array.isArray(value) || value.length === 0) {
    throw new PostbellError(
      "invalid_request",
      "event_types must be a list of at least one event type; leave it out to receive all",
      { field: EVENT_TYPES_FIELD },
    );
  }
  if (value.length > MAX_EVENT_TYPES) {
    throw new PostbellError(
      "invalid_request",
      `event_types must have at most ${MAX_EVENT_TYPES} items (got ${value.length}); a pattern such as prefix.* stands for many`,
      { field: EVENT_TYPES_FIELD },
    );
  }
  const names = new Set<string>();
  for (let index = 0; index < value.length; index += 1) {
    const name: unknown = value[index];
    const field = `${EVENT_TYPES_FIELD}[${index}]`;
    if (typeof name !== "string") {
      throw new PostbellError("invalid_request", `${field} must be a string`, { field });
    }
    if (!isKnown(name, catalogue)) throw unknownEventType(name, candidates(name, catalogue), field);
    if (names.has(name)) {
      throw new PostbellError("invalid_request", `${field} repeats '${name}'`, { field });
    }
    names.add(name);
  }
  return Object.freeze([...names]);
}

function isKnown(name: string, catalogue: Catalogue): boolean {
  if (name === "*" || catalogue.types.has(name)) return true;
  return name.endsWith(".*") && catalogue.prefixes.has(name.slice(0, -2));
}

function candidates(name: string, catalogue: Catalogue): readonly string[] {
  return name.endsWith(".*")
    ? Array.from(catalogue.prefixes, (prefix) => `${prefix}.*`)
    : [...catalogue.types.keys()];
}

/**
 * True if a webhook with these event types (`null`: all) subscribes to an event of this type.
 *
 * @example
 * subscribes(["patient.*"], "patient.updated"); // true
 */
export function subscribes(eventTypes: readonly string[] | null, type: string): boolean {
  return eventTypes === null || eventTypes.some((pattern) => pattern === type || matches(pattern, type));
}

/** `*` matches everything, `patient.*` every type that begins with `patient.`. */
function matches(pattern: string, type: string): boolean {
  return pattern.endsWith("*") && type.startsWith(pattern.slice(0, -1));
}
