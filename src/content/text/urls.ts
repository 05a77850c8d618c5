/**
 * Which addresses an author may write: checked by their scheme, as the most lenient browser would
 * read it. Never fetches one.
 */

import { MAX_URL_LENGTH, parseUrl } from "../../core/parse-url.js";

/** WordPress's list without the schemes of services that are gone. */
export const URL_SCHEMES: string[] = [
  "http",
  "https",
  "ftp",
  "ftps",
  "mailto",
  "tel",
  "sms",
  "fax",
  "xmpp",
  "irc",
  "ircs",
  "news",
  "webcal",
  "urn",
];

const SAFE: Set<string> = new Set(URL_SCHEMES);

/**
 * References that a page could resolve before it reads the address, where a client puts the text
 * into one unescaped.
 */
const REFERENCE = /&(?:#(\d+)|#x([\da-f]+)|(colon|tab|newline));?/gi;

/**
 * The address as a browser reads it: without blanks and control characters, references resolved.
 */
const readAs = (url: string): string =>
  url
    .replace(REFERENCE, (_, decimal?: string, hexadecimal?: string, name?: string) => {
      if (name !== undefined) return name.toLowerCase() === "colon" ? ":" : "";
      const code = decimal === undefined ? Number.parseInt(hexadecimal ?? "", 16) : Number(decimal);
      return code < 0x80 ? String.fromCharCode(code) : "";
    })
    .replace(/[\s\p{C}]/gu, "");

/** True if the address is relative or has a scheme that runs nothing. Linear. */
export function isSafeUrl(url: string): boolean {
  const scheme = /^([^/?#:]*):/.exec(readAs(url))?.[1]?.toLowerCase();
  return scheme === undefined || SAFE.has(scheme);
}

/**
 * True if the address is a PDF file among the site's uploads. No query, no fragment and no step
 * upwards, which could lead to another resource of the site.
 */
export const isSitePdf = (url: string, uploads: string): boolean =>
  url.startsWith(`${uploads}/`) && /^[^\s\p{C}?#\\]+\.pdf$/u.test(url) && !/\/\.|%2e/i.test(url);

/**
 * True if a text, which may be no address at all, would run as a script if it were taken for one.
 */
export const isScriptUrl = (text: string): boolean =>
  /^(?:(?:java|vb|live)script:|data:[^,]*(?:html|xml|svg|script))/i.test(readAs(text));

/**
 * An address as it is stored, not escaped for HTML: without quotes, angle brackets, braces,
 * backslashes and control characters, blanks as `%20`. As in WordPress, one that begins like a host
 * gets `http://` (`example.org/x`, also `about`); `/about`, `#top` and `?a=1` stay relative.
 *
 * Guarantee: the result is empty or safe by {@link isSafeUrl}; cleaning it again changes nothing.
 * Empty for `javascript:` and other schemes that are not allowed, and for more than
 * {@link MAX_URL_LENGTH} characters.
 */
export function cleanUrl(url: string): string {
  if (url.length > MAX_URL_LENGTH) return "";
  const clean = url
    .trim()
    .replaceAll(" ", "%20")
    .replace(/["<>\\^`{}\s\p{C}]/gu, "");
  if (clean === "" || !isSafeUrl(clean)) return "";
  const isHost = !clean.includes(":") && !/^[/#?]/.test(clean) && !/^[a-z0-9-]+\.php/i.test(clean);
  const whole = isHost ? `http://${clean}` : clean;
  return whole.length > MAX_URL_LENGTH ? "" : whole;
}

/**
 * Returns an `http:` or `https:` URL as the URL parser writes it, with `'` escaped too: no quotes,
 * angle brackets, blanks or control characters, so that it is safe in HTML, XML and headers.
 * Returns an empty text for anything else, and for more than {@link MAX_URL_LENGTH} characters.
 */
export function toWebUrl(text: string): string {
  const url = parseUrl(text);
  if (url?.protocol !== "https:" && url?.protocol !== "http:") return "";
  const written = url.href.replaceAll("'", "%27");
  return written.length > MAX_URL_LENGTH ? "" : written;
}

/** Matches the empty text, and texts that {@link cleanUrl} does not empty; for OpenAPI. */
export const CLEANABLE_URL = `^$|^(${[...SAFE].join("|")}):|^[/#?]|^[^:]*[A-Za-z0-9][^:]*$`;
