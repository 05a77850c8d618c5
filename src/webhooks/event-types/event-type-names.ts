/** Error messages about event types that do not exist. */

import { PostbellError } from "../../core/errors.js";
import { findNearest } from "../../core/known-names.js";

/** The characters of an unknown name that are quoted, so that a name of megabytes costs nothing. */
const MAX_SHOWN = 80;

/**
 * Returns the error for a name that is not among `candidates`. If one of them is near, the message
 * names it.
 */
export function unknownEventType(name: string, candidates: readonly string[], field: string): PostbellError {
  const guess = findNearest(name, candidates);
  const hint = guess === undefined ? "; it is not in the catalogue" : `; did you mean ${quoteName(guess)}?`;
  return new PostbellError("unknown_event_type", `unknown event type ${quoteName(name)}${hint}`, { field });
}

/** Quotes a name for a message, shortened if it is long. */
export function quoteName(name: string): string {
  return name.length > MAX_SHOWN ? `'${name.slice(0, MAX_SHOWN)}…'` : `'${name}'`;
}
