/** Reads and checks the arguments of calls in-process, and names what they did not find. */

import { PostbellError } from "../core/errors.js";
import { findNearest } from "./event-types/event-type-names.js";

const MAX_PAGE = 100;

export const notFound = (what: string): PostbellError =>
  new PostbellError("not_found", `There is no such ${what}.`);

/** A page size from 1 to 100; 50 where none is given. */
export function readLimit(limit: number | undefined): number {
  if (limit === undefined) return MAX_PAGE / 2;
  if (Number.isInteger(limit) && limit >= 1 && limit <= MAX_PAGE) return limit;
  throw new PostbellError("invalid_request", `limit must be a whole number from 1 to ${MAX_PAGE}.`, {
    field: "limit",
  });
}

/** Checks an account or the name of a key: what hosts give is stored and compared, so it must be plain and short. */
export function checkName(field: string, name: unknown): asserts name is string {
  // The storages join such names with NUL.
  if (typeof name === "string" && name !== "" && name.length <= 256 && !name.includes("\u0000")) return;
  throw new PostbellError(
    "invalid_argument",
    `${field} must be a string of 1 to 256 characters without NUL.`,
    { field },
  );
}

/**
 * The argument object of a call in-process. Errors: `invalid_argument` where it is none, or has a key that is not in `known`: a typing error must not
 * subscribe to everything.
 */
export function readCallArguments<T extends object>(
  call: string,
  given: T,
  known: readonly (keyof T & string)[],
): T {
  if (typeof given !== "object" || given === null) {
    throw new PostbellError("invalid_argument", `${call}() takes an object with ${known.join(", ")}.`);
  }
  for (const key of Object.keys(given)) {
    if ((known as readonly string[]).includes(key)) continue;
    // So short a name is near to every other one.
    const hint = findNearest(
      key,
      known.filter((name) => name !== "as"),
    );
    throw new PostbellError(
      "invalid_argument",
      `${call}() knows no '${key.slice(0, 40)}'; did you mean '${hint}'?`,
      { field: key.slice(0, 40) },
    );
  }
  return given;
}
