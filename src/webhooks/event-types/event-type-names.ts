/** Error messages about names that do not exist, with the nearest name that does. */

import { closest } from "fastest-levenshtein";
import { PostbellError } from "../../core/errors.js";

/**
 * The characters of an unknown name that are compared or quoted, so that a name of megabytes costs
 * nothing.
 */
const MAX_SHOWN = 80;

/**
 * Returns the error for a name that is not among `candidates`, with the nearest of them in its
 * message.
 */
export function unknownEventType(name: string, candidates: readonly string[], field: string): PostbellError {
  const guess = findNearest(name, candidates);
  const hint = guess === undefined ? "" : `; did you mean ${quoteName(guess)}?`;
  return new PostbellError("unknown_event_type", `unknown event type ${quoteName(name)}${hint}`, { field });
}

/**
 * Returns the candidate with the smallest edit distance to `name`, the first of equals; `undefined`
 * without candidates.
 */
export function findNearest(name: string, candidates: readonly string[]): string | undefined {
  return candidates.length === 0 ? undefined : closest(name.slice(0, MAX_SHOWN), candidates);
}

/** Quotes a name for a message, shortened if it is long. */
export function quoteName(name: string): string {
  return name.length > MAX_SHOWN ? `'${name.slice(0, MAX_SHOWN)}…'` : `'${name}'`;
}
