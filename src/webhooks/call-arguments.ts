/** Checks the arguments of calls that the host's own code makes. Pure. */

import { isDate } from "node:util/types";
import { PostbellError } from "../core/errors.js";
import { refuseUnknownKeys } from "../core/known-names.js";
import type { Subscriber } from "./access.js";

const MAX_PAGE = 100;

export const notFound = (what: string): PostbellError =>
  new PostbellError("not_found", `There is no such ${what}.`);

/** `message` names the field and says what to change. */
export const invalidField = (field: string, message: string): PostbellError =>
  new PostbellError("invalid_request", message, { field });

/** Returns a page size from 1 to 100, by default 50. Throws `invalid_request`. */
export function readLimit(limit: number | undefined): number {
  if (limit === undefined) return MAX_PAGE / 2;
  if (Number.isInteger(limit) && limit >= 1 && limit <= MAX_PAGE) return limit;
  throw invalidField("limit", `limit must be a whole number from 1 to ${MAX_PAGE}.`);
}

const MAX_NAME = 256;

/** Says what is wrong with a name, without showing it: a host may have passed a key by mistake. */
function findNameProblem(name: unknown): string | undefined {
  if (typeof name !== "string") return name === null ? "null" : `a value of type ${typeof name}`;
  if (name === "") return "an empty string";
  if (name.length > MAX_NAME) return `${name.length} characters`;
  if (name.includes("\u0000")) return "one with NUL";
  return name.isWellFormed() ? undefined : "one with a lone surrogate";
}

/**
 * Checks an account, the id of a key, or another name that is stored and compared. It must be
 * short, and have one form in UTF-8: encoders turn lone surrogates of different names into the same
 * character, and databases refuse NUL or end a text there. Throws `invalid_argument`.
 */
export function checkName(field: string, name: unknown): asserts name is string {
  const problem = findNameProblem(name);
  if (problem === undefined) return;
  throw new PostbellError(
    "invalid_argument",
    `${field} must be a string of 1 to ${MAX_NAME} characters without NUL and lone surrogates (got ${problem}).`,
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

const DATE_TIME = /^([0-9]{4}-[0-9]{2}-[0-9]{2})T[0-9:.]{5,18}(?:Z|[+-][0-9]{2}:[0-9]{2})$/;
/** Years outside this range need a sign in ISO 8601, and FHIR does not allow them. */
const FIRST_TIME = Date.parse("0000-01-01T00:00:00Z");
const LAST_TIME = Date.parse("9999-12-31T23:59:59.999Z");

/**
 * Returns the epoch milliseconds of an ISO 8601 date and time; NaN for any other text. Checks the
 * day itself: `Date.parse` would read the 30th of February as the 2nd of March.
 */
function parseTime(text: string): number {
  if (text.length > TEXT_LENGTHS.time) return Number.NaN;
  const day = Date.parse(`${DATE_TIME.exec(text)?.[1]}T00:00:00Z`);
  return Number.isNaN(day) || !text.startsWith(new Date(day).toISOString().slice(0, 10))
    ? Number.NaN
    : Date.parse(text);
}

/**
 * Returns the epoch milliseconds of a Date, or of an ISO 8601 text with an offset.
 *
 * @throws `invalid_argument` for any other value.
 */
export function parseEventTime(field: string, value: Date | string): number {
  const time = typeof value === "string" ? parseTime(value) : isDate(value) ? value.getTime() : Number.NaN;
  if (time >= FIRST_TIME && time <= LAST_TIME) return time;
  const message = `${field} must be a Date or an ISO 8601 date and time with its offset.`;
  throw new PostbellError("invalid_argument", message, { field });
}

export const TEXT_LENGTHS = {
  /** Browsers accept no longer URL. `checkUrl` checks the length before it parses the text. */
  url: 2_048,
  /** ISO 8601 with milliseconds and an offset has 29 characters. */
  time: 64,
  /** The cursors of all storages are far shorter. */
  cursor: 256,
  /** A UUID, or two of them with a serial number. */
  id: 100,
  header: 8_192,
} as const;
