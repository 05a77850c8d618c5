/** Checks the arguments of calls that the host's own code makes. */

import { PostbellError } from "../core/errors.js";
import { refuseUnknownKeys } from "../core/known-names.js";
import type { Subscriber } from "./access.js";

const MAX_PAGE = 100;

export const notFound = (what: string): PostbellError =>
  new PostbellError("not_found", `There is no such ${what}.`);

/** Returns a page size from 1 to 100, by default 50. Throws `invalid_request`. */
export function readLimit(limit: number | undefined): number {
  if (limit === undefined) return MAX_PAGE / 2;
  if (Number.isInteger(limit) && limit >= 1 && limit <= MAX_PAGE) return limit;
  throw new PostbellError("invalid_request", `limit must be a whole number from 1 to ${MAX_PAGE}.`, {
    field: "limit",
  });
}

/**
 * Checks an account or the id of a key. It is stored and compared, so it must be short and plain.
 * Throws `invalid_argument`.
 */
export function checkName(field: string, name: unknown): asserts name is string {
  // The storages join such names with NUL.
  if (typeof name === "string" && name !== "" && name.length <= 256 && !name.includes("\u0000")) return;
  throw new PostbellError(
    "invalid_argument",
    `${field} must be a string of 1 to 256 characters without NUL.`,
    { field },
  );
}

/** Returns a subscriber without further properties. Throws `invalid_argument`. */
export function readSubscriber(given: Subscriber): Subscriber {
  if (typeof given !== "object" || given === null) {
    throw new PostbellError("invalid_argument", "subscriber must be an object with id and account.", {
      field: "subscriber",
    });
  }
  const { id, account } = given;
  checkName("subscriber.id", id);
  checkName("subscriber.account", account);
  return { id, account };
}

/**
 * Returns the argument object of a call. Throws `invalid_argument` if it is not an object or has a
 * key that is not in `known`, because a typing error must not subscribe to everything.
 */
export function readCallArguments<T extends object>(
  call: string,
  given: T,
  known: readonly (keyof T & string)[],
): T {
  if (typeof given !== "object" || given === null) {
    throw new PostbellError("invalid_argument", `${call}() takes an object with ${known.join(", ")}.`);
  }
  refuseUnknownKeys(call, given, known);
  return given;
}
