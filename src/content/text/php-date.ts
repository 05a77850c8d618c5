/** Dates in the letters of PHP, as the settings of a site and the blocks of an editor name them. */

import type { SiteZone } from "./dates.js";

const MONTHS = "January February March April May June July August September October November December".split(
  " ",
);
const DAYS = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday".split(" ");

const pad = (number: number): string => String(number).padStart(2, "0");

/** English endings: 1st, 22nd, 13th. */
const toOrdinal = (day: number): string =>
  (day % 100 > 10 && day % 100 < 14 ? undefined : ["th", "st", "nd", "rd"][day % 10]) ?? "th";

const toOffset = (hours: number, colon: string): string => {
  const minutes = Math.round(Math.abs(hours) * 60);
  return `${hours < 0 ? "-" : "+"}${pad(Math.floor(minutes / 60))}${colon}${pad(minutes % 60)}`;
};

/** The meaning of each letter, for a wall clock read as if it were UTC. */
const LETTERS: { [letter: string]: (date: Date, zone: SiteZone) => string | number } = {
  d: (date) => pad(date.getUTCDate()),
  j: (date) => date.getUTCDate(),
  D: (date) => (DAYS[date.getUTCDay()] ?? "").slice(0, 3),
  l: (date) => DAYS[date.getUTCDay()] ?? "",
  N: (date) => date.getUTCDay() || 7,
  w: (date) => date.getUTCDay(),
  S: (date) => toOrdinal(date.getUTCDate()),
  F: (date) => MONTHS[date.getUTCMonth()] ?? "",
  M: (date) => (MONTHS[date.getUTCMonth()] ?? "").slice(0, 3),
  m: (date) => pad(date.getUTCMonth() + 1),
  n: (date) => date.getUTCMonth() + 1,
  Y: (date) => date.getUTCFullYear(),
  y: (date) => pad(date.getUTCFullYear() % 100),
  a: (date) => (date.getUTCHours() < 12 ? "am" : "pm"),
  A: (date) => (date.getUTCHours() < 12 ? "AM" : "PM"),
  g: (date) => date.getUTCHours() % 12 || 12,
  G: (date) => date.getUTCHours(),
  h: (date) => pad(date.getUTCHours() % 12 || 12),
  H: (date) => pad(date.getUTCHours()),
  i: (date) => pad(date.getUTCMinutes()),
  s: (date) => pad(date.getUTCSeconds()),
  e: (_, zone) => zone.name,
  T: (_, zone) => zone.name,
  P: (date, zone) => toOffset(zone.offsetHours(zone.toUtc(date.getTime())), ":"),
  O: (date, zone) => toOffset(zone.offsetHours(zone.toUtc(date.getTime())), ""),
  U: (date, zone) => Math.floor(zone.toUtc(date.getTime()) / 1_000),
};

/** Formats that one letter stands for. */
const WHOLE: { [letter: string]: string } = { c: "Y-m-d\\TH:i:sP", r: "D, d M Y H:i:s O" };

/**
 * Formats a time in the site's time zone: `F j, Y` gives `November 28, 2026`. A letter behind a
 * backslash stands for itself, and so does one without a meaning.
 *
 * @param local the wall clock read as if it were UTC, in ms
 */
export function formatPhpDate(local: number, format: string, zone: SiteZone): string {
  const date = new Date(local);
  const whole = format.replace(/\\.|[cr]/gs, (part) => WHOLE[part] ?? part);
  return whole.replace(/\\(.)|./gs, (letter: string, escaped?: string) => {
    if (escaped !== undefined) return escaped;
    return String(Object.hasOwn(LETTERS, letter) ? LETTERS[letter]?.(date, zone) : letter);
  });
}
