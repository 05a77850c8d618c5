/** Errors about names that do not exist, with the name that was probably meant. */

import { distance } from "fastest-levenshtein";
import { PostbellError } from "./errors.js";

/** Of a longer name, only the beginning is compared: its length must cost nothing. */
const MAX_COMPARED = 80;
const MAX_QUOTED = 40;

/**
 * Returns the candidate that `name` is probably a misspelling of, the first of equals; `undefined`
 * if none is near. Case does not matter.
 *
 * Names with dots are compared part by part, so that `order.created` is not taken for
 * `consent.created`.
 */
export function findNearest(name: string, candidates: readonly string[]): string | undefined {
  const lower = name.slice(0, MAX_COMPARED).toLowerCase();
  let nearest: string | undefined;
  let least = Number.POSITIVE_INFINITY;
  for (const candidate of candidates) {
    const other = candidate.slice(0, MAX_COMPARED).toLowerCase();
    const edits = distance(lower, other);
    if (edits >= least || !isNear(lower, other)) continue;
    nearest = candidate;
    least = edits;
  }
  return nearest;
}

function isNear(name: string, other: string): boolean {
  const parts = name.split(".");
  const others = other.split(".");
  if (parts.length !== others.length) return isNearPart(name, other);
  return parts.every((part, index) => isNearPart(part, others[index] ?? ""));
}

const sortLetters = (text: string): string => Array.from(text).sort().join("");

/**
 * True if one part needs few edits to become the other: one for each three characters of the
 * shorter part, or two letters that are swapped. Characters that are only missing are not counted,
 * if they are at most half of the longer part: `warn` is near to `warning`.
 */
function isNearPart(one: string, other: string): boolean {
  const shorter = Math.min(one.length, other.length);
  const longer = Math.max(one.length, other.length);
  const edits = distance(one, other) - (longer - shorter);
  if (shorter * 2 < longer) return false;
  return edits <= Math.floor(shorter / 3) || (edits === 2 && sortLetters(one) === sortLetters(other));
}

/**
 * Returns a message about a key that does not exist, with the nearest known key, or with all of
 * them: `stop() has no field 'grace'; did you mean 'graceMs'?`.
 *
 * @param what the beginning of the message: `stop() has no field`.
 */
export function describeUnknownKey(what: string, key: string, names: readonly string[]): string {
  const nearest = findNearest(key, names);
  const hint =
    nearest === undefined
      ? `it takes ${names.map((name) => `'${name}'`).join(", ")}.`
      : `did you mean '${nearest}'?`;
  return `${what} '${key.slice(0, MAX_QUOTED)}'; ${hint}`;
}

/**
 * Refuses an argument of a call that has another key than `known`: ignoring a typing error could
 * turn off what the key was meant to turn on.
 *
 * @throws `invalid_argument`, with the key as `field`.
 */
export function refuseUnknownKeys(call: string, argument: object, names: readonly string[]): void {
  const unknown = Object.keys(argument).find((key) => !names.includes(key));
  if (unknown === undefined) return;
  throw new PostbellError("invalid_argument", describeUnknownKey(`${call}() has no field`, unknown, names), {
    field: unknown.slice(0, MAX_QUOTED),
  });
}

/**
 * Returns the argument object of a call. Throws `invalid_argument` if it is not an object or has a
 * key that is not in `known`, because a typing error must not subscribe to everything.
 */
export function readCallArguments<T extends object>(
  call: string,
  argument: T,
  names: readonly (keyof T & string)[],
): T {
  if (typeof argument !== "object" || argument === null) {
    throw new PostbellError("invalid_argument", `${call}() takes an object with ${names.join(", ")}.`);
  }
  refuseUnknownKeys(call, argument, names);
  return argument;
}
