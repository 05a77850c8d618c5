/** The event types that a webhook subscribes to: reading a list from a request, and matching it. */

import { PostbellError } from "../../core/errors.js";
import type { Catalogue } from "./catalogue.js";
import { unknownEventType } from "./event-type-names.js";

const FIELD = "event_types";

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
      { field: FIELD },
    );
  }
  if (value.length > MAX_EVENT_TYPES) {
    throw new PostbellError(
      "invalid_request",
      `event_types must have at most ${MAX_EVENT_TYPES} items (got ${value.length}); a pattern such as prefix.* stands for many`,
      { field: FIELD },
    );
  }
  const names = new Set<string>();
  for (let index = 0; index < value.length; index += 1) {
    const name: unknown = value[index];
    const field = `${FIELD}[${index}]`;
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
