/** Which event types a webhook wants: reading the list a subscriber sent, and asking it. */

import { PostbellError } from "../../core/errors.js";
import { type Catalogue, unknownEventType } from "./catalogue.js";

const FIELD = "event_types";

/** Patterns of one webhook. `*` and `prefix.*` stand for many types, and no pattern may come twice. */
export const MAX_EVENT_TYPES = 1_000;

/**
 * Reads the `event_types` of a registration.
 *
 * Shape: absent → `null`, which stands for every type, also future ones; else a list of at least one type of the catalogue,
 * `prefix.*` for every type of a prefix, or `*`. Case-sensitive.
 * Errors: `invalid_request` when it is no list, is empty, or holds something that is no string or came before;
 * `unknown_event_type` for a name not in the catalogue. `field` is `event_types` or `event_types[2]`.
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

/** Whether a webhook with these event types (`null`: all) wants an event of this type. */
export function subscribes(eventTypes: readonly string[] | null, type: string): boolean {
  return eventTypes === null || eventTypes.some((wanted) => wanted === type || covers(wanted, type));
}

/** `*` covers everything, `patient.*` what begins with `patient.`. */
function covers(wanted: string, type: string): boolean {
  return wanted.endsWith("*") && type.startsWith(wanted.slice(0, -1));
}
