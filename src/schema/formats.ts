/** Checks the formats that a schema can require of a string. Every check takes linear time. */

import { isIP } from "node:net";
import type { Schema, SchemaProblem } from "./types.js";

/** The maximum length of a formatted text. An e-mail address is the longest (RFC 5321 §4.5.3.1). */
const MAX_FORMATTED = 254;

type Format = NonNullable<Schema["format"]>;

/**
 * Returns the problem of a text that does not have the format. The length is checked first. A `uri`
 * is never invalid: {@link cleanUri} cleans it instead.
 */
export function checkFormat(text: string, format: Format, name: string): SchemaProblem | undefined {
  if (format === "uri" || (text.length <= MAX_FORMATTED && CHECKS[format].accepts(text))) return undefined;
  const { code, what } = CHECKS[format];
  return { code, message: `${name} is not a valid ${what}.` };
}

/**
 * True for a date and time in RFC 3339, as WordPress reads it. Seconds are required, the zone is
 * optional: `Z`, `+01` or `+01:00`. The separator is `T` or a space. Years are 1 to 9999; days that
 * the month does not have, hour 24 and second 60 are invalid.
 */
export function isDateTime(text: string): boolean {
  const match = DATE_TIME.exec(text);
  if (match === null) return false;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, zoneHour = 0, zoneMinute = 0] = match
    .slice(1)
    .map((part) => Number(part ?? 0));
  const isOnCalendar =
    year >= 1 && month >= 1 && month <= 12 && day >= 1 && day <= daysIn(year, month) && hour <= 23;
  return isOnCalendar && minute <= 59 && second <= 59 && zoneHour <= 23 && zoneMinute <= 59;
}

const DATE_TIME =
  /^(\d{4})-(\d{2})-(\d{2})[Tt ](\d{2}):(\d{2}):(\d{2})(?:\.\d+)?(?:Z|[+-](\d{2})(?::(\d{2}))?)?$/;

function daysIn(year: number, month: number): number {
  if (month === 2) return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0 ? 29 : 28;
  return [4, 6, 9, 11].includes(month) ? 30 : 31;
}

/**
 * Returns a URL with a harmless scheme, or an empty text. Spaces are encoded, and characters that
 * no URL has are removed. A text with neither a scheme nor a leading `/`, `#` or `?` gets the
 * prefix `http://`. A scheme that WordPress does not allow makes the URL empty. Letters beyond
 * ASCII stay.
 *
 * Guarantee: idempotent; never returns a `javascript:` or `data:` URL.
 */
export function cleanUri(text: string): string {
  const url = text.replace(NOT_IN_URLS, "").trim().replaceAll(" ", "%20");
  if (url === "" || "/#?".includes(url.charAt(0))) return url;
  const colon = url.indexOf(":");
  const scheme = url.slice(0, Math.max(colon, 0)).toLowerCase();
  if (/^[a-z][a-z0-9+.-]*$/.test(scheme)) return SCHEMES.has(scheme) ? url : "";
  return `http://${url}`;
}

/** All characters that no URL has, except spaces, which are encoded. */
const NOT_IN_URLS = /[^ a-z0-9\-~+_.?#=!&;,/:%@$|*'()[\]\u0080-\u{10ffff}]/giu;

const SCHEMES = new Set(
  "http https ftp ftps mailto news irc irc6 ircs gopher nntp feed telnet mms rtsp sms svn tel fax xmpp webcal urn".split(
    " ",
  ),
);

function isEmail(text: string): boolean {
  const [local = "", domain = "", ...more] = text.split("@");
  const labels = domain.split(".");
  return (
    more.length === 0 &&
    /^[\w!#$%&'*+/=?^`{|}~.-]+$/.test(local) &&
    labels.length > 1 &&
    labels.every((label) => /^[a-z0-9-]+$/i.test(label) && !label.startsWith("-") && !label.endsWith("-"))
  );
}

const isUuid = (text: string): boolean =>
  /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i.test(text);

const isHexColor = (text: string): boolean => /^#(?:[0-9a-f]{3}|[0-9a-f]{6})$/i.test(text);

const CHECKS: {
  [format in Exclude<Format, "uri">]: {
    accepts: (text: string) => boolean;
    code: string;
    what: string;
  };
} = {
  "date-time": { accepts: isDateTime, code: "rest_invalid_date", what: "date" },
  email: { accepts: isEmail, code: "rest_invalid_email", what: "email address" },
  ip: { accepts: (text) => isIP(text) !== 0, code: "rest_invalid_ip", what: "IP address" },
  uuid: { accepts: isUuid, code: "rest_invalid_uuid", what: "UUID" },
  "hex-color": { accepts: isHexColor, code: "rest_invalid_hex_color", what: "hex color" },
};
