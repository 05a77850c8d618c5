/** A host's table of event types: checking it, and asking it. */

import { PostbellError } from "../../core/errors.js";
import { isResourceTypeName } from "../fhir.js";
import type { ClinicalEvents, ClinicalEventType } from "./clinical-events.js";
import { quoteName, unknownEventType } from "./event-type-names.js";

/**
 * Maps each event type to the resource type, or types, that the record of such an event has. Names
 * are lower-case letters, digits and hyphens around one dot.
 *
 * @example
 * const events: EventCatalogue = {
 *   "order.placed": "ServiceRequest",
 *   "result.available": ["Observation", "DiagnosticReport"],
 * };
 */
export type EventCatalogue = Readonly<Record<string, string | readonly string[]>>;

/** The event types of a catalogue: the values that `emit({ type })` accepts. */
export type EventTypeOf<C extends EventCatalogue> =
  // Named apart from the host's own types, so that a compiler's error does not list the fifty.
  C extends ClinicalEvents
    ? ClinicalEventType | Exclude<keyof C & string, ClinicalEventType>
    : keyof C & string;

/** The resource types that the record of an event has. Any, for a type that `C` does not have. */
export type ResourceTypeOf<C, T> = T extends keyof C
  ? C[T] extends readonly (infer Name)[]
    ? Name
    : C[T]
  : string;

/** The event type of tests in the delivery log. No catalogue may contain it. */
export const TEST_EVENT_TYPE = "webhook.test";

/** A checked catalogue. */
export interface Catalogue {
  /** From event type to the resource types that its focal resource may have. */
  readonly types: ReadonlyMap<string, readonly string[]>;
  /** The part before the dot of every type. */
  readonly prefixes: ReadonlySet<string>;
}

const EVENT_TYPE = /^[a-z0-9-]+\.[a-z0-9-]+$/;

const invalidEvents = (message: string, field = "events"): PostbellError =>
  new PostbellError("invalid_option", `createWebhooks: ${message}`, { field });

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
  const types = new Map<string, readonly string[]>();
  for (const [name, resourceTypes] of Object.entries(events)) {
    types.set(name, readEntry(name, resourceTypes));
  }
  if (types.size === 0) throw invalidEvents("events must contain at least one event type");
  return Object.freeze({ types, prefixes: new Set(Array.from(types.keys(), contextKey)) });
}

/** Checks one entry of the table. Returns its resource types. */
function readEntry(name: string, resourceTypes: unknown): readonly string[] {
  const field = `events[${quoteName(name)}]`;
  if (!EVENT_TYPE.test(name)) {
    throw invalidEvents(
      `events: ${quoteName(name)} is not an event type: write prefix.action in lower-case letters, digits and hyphens`,
      field,
    );
  }
  if (name === TEST_EVENT_TYPE) {
    throw invalidEvents(`events: ${quoteName(name)} is reserved for tests; choose another name`, field);
  }
  const list: readonly unknown[] = Array.isArray(resourceTypes) ? resourceTypes : [resourceTypes];
  const isName = (item: unknown): item is string => typeof item === "string" && isResourceTypeName(item);
  if (list.length === 0 || !list.every(isName)) {
    throw invalidEvents(`${field} must name one resource type or several`, field);
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
 * Returns the resource types that the focal resource of an event of this type may have.
 *
 * @throws `unknown_event_type` if the catalogue does not contain the type. The message names the
 * nearest one.
 */
export function focalTypes(catalogue: Catalogue, type: string, field = "type"): readonly string[] {
  const found = catalogue.types.get(type);
  if (found === undefined) throw unknownEventType(type, [...catalogue.types.keys()], field);
  return found;
}
