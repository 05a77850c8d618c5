/**
 * Dates as the interface reads and writes them, and the site's time zone. Knows no post; no clock:
 * the present is given to it.
 */

import { PostbellError } from "../../core/errors.js";

/**
 * A time zone. A local time is the wall clock read as if it were UTC, in ms: its digits are the
 * ones shown.
 *
 * A local time that a clock change leaves out is read with the offset before the change, so 02:30
 * becomes 03:30; one that happens twice is its first. That is the rule of PHP, of Java and of
 * Temporal's `compatible`.
 */
export interface SiteZone {
  readonly name: string;
  readonly toLocal: (utcMs: number) => number;
  readonly toUtc: (localMs: number) => number;
  /** East of Greenwich at that time: `5.5`. */
  readonly offsetHours: (utcMs: number) => number;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/**
 * `timezone` is an IANA name (`Europe/Berlin`) or a fixed offset from `-23:59` to `+23:59`
 * (`+05:30`).
 *
 * Errors: PostbellError `invalid_option` with the field `site.timezone`.
 */
export function createSiteZone(timezone: string): SiteZone {
  const fixed = offsetOf(timezone);
  if (fixed !== undefined) return zoneOf(timezone, () => fixed);
  if (timezone === "UTC") return zoneOf(timezone, () => 0);
  return zoneOf(timezone, offsetsOf(timezone));
}

function zoneOf(name: string, offset: (utcMs: number) => number): SiteZone {
  return Object.freeze({
    name,
    toLocal: (utcMs: number) => utcMs + offset(utcMs),
    toUtc: (localMs: number) => {
      const before = offset(localMs - DAY_MS);
      const after = offset(localMs + DAY_MS);
      if (before === after || offset(localMs - before) === before) return localMs - before;
      return offset(localMs - after) === after ? localMs - after : localMs - before;
    },
    offsetHours: (utcMs: number) => offset(utcMs) / HOUR_MS,
  });
}

/** Reads an offset of the time zone database at any instant; takes some µs. */
function offsetsOf(timezone: string): (utcMs: number) => number {
  let format: Intl.DateTimeFormat;
  try {
    format = new Intl.DateTimeFormat("en-US", {
      ...{ timeZone: timezone, calendar: "gregory", numberingSystem: "latn", hourCycle: "h23", era: "short" },
      ...{
        year: "numeric",
        month: "numeric",
        day: "numeric",
        hour: "numeric",
        minute: "numeric",
        second: "numeric",
      },
    });
  } catch (cause) {
    throw new PostbellError(
      "invalid_option",
      "site.timezone must be a name of the time zone database, such as Europe/Berlin, or an offset such as +05:30.",
      { field: "site.timezone", cause },
    );
  }
  return (utcMs) => {
    const seconds = Math.floor(utcMs / 1000) * 1000;
    const read: { [type in Intl.DateTimeFormatPartTypes]?: string } = {};
    for (const { type, value } of format.formatToParts(seconds)) read[type] = value;
    const year = read.era === "BC" ? 1 - Number(read.year) : Number(read.year);
    const { month, day, hour, minute, second } = read;
    return utcOf(year, Number(month), Number(day), Number(hour), Number(minute), Number(second)) - seconds;
  };
}

/** `Date.UTC` takes the years 0 to 99 for 1900 to 1999. */
function utcOf(
  year: number,
  month: number,
  day: number,
  hour: number,
  minute: number,
  second: number,
): number {
  const date = new Date(Date.UTC(2000, month - 1, day, hour, minute, second));
  date.setUTCFullYear(year, month - 1, day);
  return date.getTime();
}

/** `2026-11-21T10:00:00`. Of years from 1 to 9999. */
export const formatDate = (ms: number): string => new Date(ms).toISOString().slice(0, 19);

const FIRST_MS = utcOf(1, 1, 1, 0, 0, 0);
const LAST_MS = utcOf(9999, 12, 31, 23, 59, 59);

const DATE = /^(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.\d+)?([Zz]|[+-]\d\d(?::\d\d)?)?$/;

/**
 * Reads a date by RFC 3339 as WordPress does: a blank may stand for the `T`, the offset and its
 * minutes may be missing, a fraction of a second is dropped. `ms` is epoch ms with an offset,
 * otherwise the wall clock read as if it were UTC.
 *
 * `undefined` where there is no such time: 30 February, hour 24, a leap second, an offset of a day
 * or more, a year before 1 or after 9999 in UTC.
 */
export function parseDate(text: string): { readonly ms: number; readonly hasZone: boolean } | undefined {
  const match = DATE.exec(text);
  if (match === null) return undefined;
  const [, year, month, day, hour, minute, second] = match.map(Number) as [number, ...number[]];
  const zone = match[7];
  const wall = utcOf(year ?? 0, month ?? 0, day ?? 0, hour ?? 0, minute ?? 0, second ?? 0);
  // Digits that mean no such time come back as others.
  if (wall < FIRST_MS || formatDate(wall) !== `${text.slice(0, 10)}T${text.slice(11, 19)}`) return undefined;
  const offset = zone === undefined ? 0 : offsetOf(zone);
  if (offset === undefined) return undefined;
  const ms = wall - offset;
  return ms < FIRST_MS || ms > LAST_MS ? undefined : { ms, hasZone: zone !== undefined };
}

/** ms of `Z`, `+02`, `-05:30`. */
function offsetOf(zone: string): number | undefined {
  if (zone === "Z" || zone === "z") return 0;
  const [, sign, hours, minutes = "0"] = /^([+-])(\d\d)(?::(\d\d))?$/.exec(zone) ?? [];
  if (sign === undefined || Number(hours) > 23 || Number(minutes) > 59) return undefined;
  const ms = Number(hours) * HOUR_MS + Number(minutes) * 60_000;
  return sign === "-" ? -ms : ms;
}

/**
 * The local and the UTC time that `date` or `date_gmt` of a request says. `date` wins where both
 * are given. Without an offset `date` is the site's time and `date_gmt` UTC; an offset counts in
 * either.
 *
 * `undefined` where none is given, it cannot be read, or one of the two forms is outside the years
 * 1 to 9999.
 */
export function toDateFields(
  { date, dateGmt }: { readonly date?: string | undefined; readonly dateGmt?: string | undefined },
  zone: SiteZone,
): { readonly date: number; readonly dateGmt: number } | undefined {
  const read = parseDate(date ?? dateGmt ?? "");
  if (read === undefined) return undefined;
  const isLocal = date !== undefined && !read.hasZone;
  const utc = isLocal ? zone.toUtc(read.ms) : read.ms;
  const local = isLocal ? read.ms : zone.toLocal(utc);
  const isShown = [local, utc].every((ms) => ms >= FIRST_MS && ms <= LAST_MS);
  return isShown ? { date: local, dateGmt: utc } : undefined;
}
