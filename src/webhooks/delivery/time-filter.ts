/** Reads the times that a host or a subscriber gives to filter the log. Pure. */

import { isDate } from "node:util/types";
import { PostbellError } from "../../core/errors.js";
import { TEXT_LENGTHS } from "../text-lengths.js";

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
