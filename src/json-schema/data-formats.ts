/**
 * The formats that `format` can require of a text. Every check takes linear time, because each
 * expression has one way only to match a text. Other formats are not checked, as JSON Schema says.
 */

import { isIPv4, isIPv6 } from "node:net";

const DATE = /^\d{4}-\d{2}-\d{2}$/;
const TIME = /^\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:[zZ]|[+-]\d{2}:\d{2})$/;

function isDate(text: string): boolean {
  if (text.length !== 10 || !DATE.test(text)) return false;
  const year = Number(text.slice(0, 4));
  const month = Number(text.slice(5, 7));
  const day = Number(text.slice(8));
  if (month < 1 || month > 12 || day < 1) return false;
  const isLeapYear = (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;
  return day <= (month === 2 ? (isLeapYear ? 29 : 28) : [4, 6, 9, 11].includes(month) ? 30 : 31);
}

/** Returns the minutes of a time of day such as `23:59`; `NaN` for other texts. */
function toMinutes(text: string): number {
  const hour = Number(text.slice(0, 2));
  const minute = Number(text.slice(3));
  return hour <= 23 && minute <= 59 ? hour * 60 + minute : Number.NaN;
}

/** A time with a zone (RFC 3339). A leap second is the last one of a day in UTC. */
function isTime(text: string): boolean {
  if (!TIME.test(text)) return false;
  const isUtc = /z$/i.test(text);
  const sign = text.at(-6) === "-" ? -1 : 1;
  const inUtc = toMinutes(text.slice(0, 5)) - (isUtc ? 0 : sign * toMinutes(text.slice(-5)));
  if (Number.isNaN(inUtc)) return false;
  const second = Number(text.slice(6, 8));
  return second < 60 || (second === 60 && (inUtc + 1_440) % 1_440 === 1_439);
}

const isDateTime = (text: string): boolean =>
  (text[10] === "T" || text[10] === "t") && isDate(text.slice(0, 10)) && isTime(text.slice(11));

const DURATION =
  /^P(?:\d+W|(?=\d|T\d)(?:\d+Y(?:\d+M(?:\d+D)?)?|\d+M(?:\d+D)?|\d+D)?(?:T(?=\d)(?:\d+H(?:\d+M(?:\d+S)?)?|\d+M(?:\d+S)?|\d+S))?)$/;

/** Labels of letters, digits and hyphens (RFC 1123). */
const isHostname = (text: string): boolean =>
  text.length <= 253 &&
  text.split(".").every((label) => label.length <= 63 && /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/i.test(label));

/** Without a zone: that is no part of an address. */
const isIpv6Address = (text: string): boolean => text.length <= 45 && !text.includes("%") && isIPv6(text);

const ATOMS = /^[\w.!#$%&'*+/=?^`{|}~-]+$/;
const QUOTED = /^"(?:[ !#-[\]-~]|\\[ -~])*"$/;

function isEmail(text: string): boolean {
  if (text.length > 320) return false;
  const at = text.lastIndexOf("@");
  const local = text.slice(0, Math.max(at, 0));
  const host = text.slice(at + 1);
  if (local.length === 0 || local.length > 64) return false;
  const isDotted = !local.startsWith(".") && !local.endsWith(".") && !local.includes("..");
  if (!QUOTED.test(local) && !(isDotted && ATOMS.test(local))) return false;
  if (!host.startsWith("[")) return isHostname(host);
  const address = host.endsWith("]") ? host.slice(1, -1) : "";
  return /^ipv6:/i.test(address) ? isIpv6Address(address.slice(5)) : isIPv4(address);
}

/** Splits a text that may be a URI (RFC 3986, appendix B). */
const URI_PARTS = /^(?:([^:/?#]+):)?(?:\/\/([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?$/s;
const SCHEME = /^[a-z][a-z0-9+.-]*$/i;
/** Characters that a URI does not have. A repeated group would need memory for each character. */
const NOT_IN_PATH = /[^\w.~!$&'()*+,;=:@/%-]|%(?![\da-f]{2})/i;
const NOT_IN_QUERY = /[^\w.~!$&'()*+,;=:@/?%-]|%(?![\da-f]{2})/i;
const NOT_IN_USER = /[^\w.~!$&'()*+,;=:%-]|%(?![\da-f]{2})/i;
const NOT_IN_HOST = /[^\w.~!$&'()*+,;=%-]|%(?![\da-f]{2})/i;
const FUTURE_ADDRESS = /^v[\da-f]+\.[\w.~!$&'()*+,;=:-]+$/i;

interface UriParts {
  scheme: string | undefined;
  authority: string | undefined;
}

/** Returns the beginning of a URI or a relative reference; `undefined` for another text. */
function readUri(text: string): UriParts | undefined {
  const match = URI_PARTS.exec(text);
  if (match === null) return undefined;
  const [, scheme, authority, path = "", query = "", fragment = ""] = match;
  if (scheme !== undefined && !SCHEME.test(scheme)) return undefined;
  if (authority !== undefined && !isAuthority(authority)) return undefined;
  const isWrong = NOT_IN_PATH.test(path) || NOT_IN_QUERY.test(query) || NOT_IN_QUERY.test(fragment);
  return isWrong ? undefined : { scheme, authority };
}

function isAuthority(text: string): boolean {
  const at = text.indexOf("@");
  const address = text.slice(at + 1);
  if (at > 0 && NOT_IN_USER.test(text.slice(0, at))) return false;
  const bracket = address.startsWith("[") ? address.indexOf("]") + 1 : 0;
  const colon = address.indexOf(":", bracket);
  const end = colon === -1 ? address.length : colon;
  if (colon !== -1 && !/^:\d*$/.test(address.slice(colon))) return false;
  if (bracket === 0) return !NOT_IN_HOST.test(address.slice(0, end));
  const inner = address.slice(1, bracket - 1);
  return bracket === end && (isIpv6Address(inner) || FUTURE_ADDRESS.test(inner));
}

const isUri = (text: string): boolean => readUri(text)?.scheme !== undefined;

function isWebUrl(text: string): boolean {
  const { scheme = "", authority = "" } = readUri(text) ?? {};
  return /^(?:https?|ftp)$/i.test(scheme) && authority.replace(/^[^@]*@/, "") !== "";
}

const URI_TEMPLATE =
  /^(?:[^\0- \x7f"<>%\\^`{|}]|%[\da-f]{2}|\{[+#./;?&=,!@|]?(?:\w|%[\da-f]{2})(?:\.?(?:\w|%[\da-f]{2}))*(?::[1-9]\d{0,3}|\*)?(?:,(?:\w|%[\da-f]{2})(?:\.?(?:\w|%[\da-f]{2}))*(?::[1-9]\d{0,3}|\*)?)*\})*$/i;

function isRegularExpression(text: string): boolean {
  if (text.length > 4_096) return false;
  try {
    new RegExp(text, "u");
    return true;
  } catch {
    return false;
  }
}

/** The longest text of the formats that an expression describes whole. */
const MAX_FORMATTED_TEXT = 65_536;

const test =
  (expression: RegExp): ((text: string) => boolean) =>
  (text) =>
    text.length <= MAX_FORMATTED_TEXT && expression.test(text);

/** The formats that are checked, by name. */
export const DATA_FORMATS: Map<string, (text: string) => boolean> = new Map([
  ["date", isDate],
  ["time", isTime],
  ["date-time", isDateTime],
  ["duration", test(DURATION)],
  ["email", isEmail],
  ["hostname", isHostname],
  ["ipv4", isIPv4],
  ["ipv6", isIpv6Address],
  ["uri", isUri],
  ["uri-reference", (text) => readUri(text) !== undefined],
  ["uri-template", test(URI_TEMPLATE)],
  ["url", isWebUrl],
  ["uuid", test(/^[\da-f]{8}-(?:[\da-f]{4}-){3}[\da-f]{12}$/i)],
  ["json-pointer", test(/^(?:\/(?:[^~/]|~[01])*)*$/)],
  ["json-pointer-uri-fragment", test(/^#(?:\/(?:[\w.!$&'()*+,;:=@-]|%[\da-f]{2}|~[01])*)*$/i)],
  ["relative-json-pointer", test(/^(?:0|[1-9]\d*)(?:#|(?:\/(?:[^~/]|~[01])*)*)$/)],
  ["regex", isRegularExpression],
]);
