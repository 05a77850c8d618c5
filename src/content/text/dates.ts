/** Parses and formats the dates of the REST API, and converts them to the site's time zone. */

import { PostbellError } from "../../core/errors.js";

/**
 * A time zone. A local time is the wall clock read as if it were UTC, in ms: its digits are the
 * ones shown.
 *
 * A local time that a clock change leaves out is read with the offset before the change, so 02:30
 * becomes 03:30; one that happens twice is its second. That is what WordPress stores.
 */
export interface SiteZone {
  name: string;
  toLocal: (utcMs: number) => number;
  toUtc: (localMs: number) => number;
  /** East of Greenwich at that time: `5.5`. */
  offsetHours: (utcMs: number) => number;
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
  const fixed = parseOffset(timezone);
  if (fixed !== undefined) return createZone(timezone, () => fixed);
  if (timezone === "UTC") return createZone(timezone, () => 0);
  return createZone(timezone, createOffsetReader(timezone));
}

function createZone(name: string, offset: (utcMs: number) => number): SiteZone {
  return Object.freeze({
    name,
    toLocal: (utcMs: number) => utcMs + offset(utcMs),
    toUtc: (localMs: number) => {
      const before = offset(localMs - DAY_MS);
      const after = offset(localMs + DAY_MS);
      return offset(localMs - after) === after ? localMs - after : localMs - before;
    },
    offsetHours: (utcMs: number) => offset(utcMs) / HOUR_MS,
  });
}

/** Reads offsets from the time zone database. One reading takes some µs. */
function createOffsetReader(timezone: string): (utcMs: number) => number {
  let format: Intl.DateTimeFormat;
  try {
    format = new Intl.DateTimeFormat("en-US", {
      timeZone: timezone,
      calendar: "gregory",
      numberingSystem: "latn",
      hourCycle: "h23",
      era: "short",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric",
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
    const wallClock = [Number(month), Number(day), Number(hour), Number(minute), Number(second)] as const;
    return toUtcMs([year, ...wallClock]) - seconds;
  };
}

type WallClock = [year: number, month: number, day: number, hour: number, minute: number, second: number];

/** Converts a wall clock in UTC. Sets the year later: `Date.UTC` reads 0 to 99 as 1900 to 1999. */
function toUtcMs([year, month, day, hour, minute, second]: WallClock): number {
  const date = new Date(Date.UTC(2000, month - 1, day, hour, minute, second));
  date.setUTCFullYear(year, month - 1, day);
  return date.getTime();
}

/** Formats a time of the years 1 to 9999 as `2026-11-21T10:00:00`. */
export const formatDate = (ms: number): string => new Date(ms).toISOString().slice(0, 19);

const FIRST_MS = toUtcMs([1, 1, 1, 0, 0, 0]);
const LAST_MS = toUtcMs([9999, 12, 31, 23, 59, 59]);

const DATE = /^(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.\d+)?([Zz]|[+-]\d\d(?::\d\d)?)?$/;

/**
 * Reads a date by RFC 3339 as WordPress does: a blank may stand for the `T`, the offset and its
 * minutes may be missing, a fraction of a second is dropped. `ms` is epoch ms with an offset,
 * otherwise the wall clock read as if it were UTC.
 *
 * Returns `undefined` if there is no such time: 30 February, hour 24, a leap second, an offset of a
 * day or more, a year before 1 or after 9999 in UTC.
 */
export function parseDate(text: string): { ms: number; hasZone: boolean } | undefined {
  const match = DATE.exec(text);
  if (match === null) return undefined;
  const zone = match[7];
  const wall = toUtcMs(match.slice(1, 7).map(Number) as unknown as WallClock);
  // `Date` carries digits over that mean no such time, so they format as others.
  if (wall < FIRST_MS || formatDate(wall) !== `${text.slice(0, 10)}T${text.slice(11, 19)}`) return undefined;
  const offset = zone === undefined ? 0 : parseOffset(zone);
  if (offset === undefined) return undefined;
  const ms = wall - offset;
  return ms < FIRST_MS || ms > LAST_MS ? undefined : { ms, hasZone: zone !== undefined };
}

/** Parses `Z`, `+02` or `-05:30` to ms. */
function parseOffset(zone: string): number | undefined {
  if (zone === "Z" || zone === "z") return 0;
  const [, sign, hours, minutes = "0"] = /^([+-])(\d\d)(?::(\d\d))?$/.exec(zone) ?? [];
  if (sign === undefined || Number(hours) > 23 || Number(minutes) > 59) return undefined;
  const ms = Number(hours) * HOUR_MS + Number(minutes) * 60_000;
  return sign === "-" ? -ms : ms;
}

/**
 * Converts `date` or `date_gmt` of a request to the local and the UTC time. `date` wins if both are
 * given. Without an offset, `date` is in the site's time and `date_gmt` in UTC.
 *
 * Returns `undefined` if both are absent, the date is malformed, or one of the two times is
 * outside the years 1 to 9999.
 */
export function toDateFields(
  { date, dateGmt }: { date?: string | undefined; dateGmt?: string | undefined },
  zone: SiteZone,
): { date: number; dateGmt: number } | undefined {
  const read = parseDate(date ?? dateGmt ?? "");
  if (read === undefined) return undefined;
  const isLocal = date !== undefined && !read.hasZone;
  const utc = isLocal ? zone.toUtc(read.ms) : read.ms;
  const local = zone.toLocal(utc);
  const isShown = [local, utc].every((ms) => ms >= FIRST_MS && ms <= LAST_MS);
  return isShown ? { date: local, dateGmt: utc } : undefined;
}
