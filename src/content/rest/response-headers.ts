/** Builds the HTTP headers of responses: caching, validators, JSONP. Pure; knows no route. */

import { createHash } from "node:crypto";
import { type Headers, SHARED_HEADERS } from "./cors.js";
import type { RestHeaders } from "./rest-headers.js";

const COMMON_HEADERS: Headers = Object.freeze({
  "x-content-type-options": "nosniff",
  "x-robots-tag": "noindex",
  ...SHARED_HEADERS,
});

const PRIVATE_HEADERS: Headers = Object.freeze({
  "cache-control": "no-cache, must-revalidate, max-age=0, no-store, private",
  expires: "Wed, 11 Jan 1984 05:00:00 GMT",
});

/**
 * For an origin whose pages may sign in, whose cache must not show the anonymous response later.
 */
const REVALIDATED: Headers = Object.freeze({ "cache-control": "no-cache" });

export const JSON_TYPE = "application/json; charset=UTF-8";
export const JSONP_TYPE = "application/javascript; charset=UTF-8";

export interface ResponseTraits {
  readonly type: string;
  readonly baseUrl: string;
  /** True if nobody may cache it: an error, the response to a write, or one for a known caller. */
  readonly isPrivate: boolean;
  readonly cors: Headers;
  /** The headers that the route set. */
  readonly headers: RestHeaders;
}

/**
 * Builds all headers except the validator. `link` leads to the index first.
 *
 * As in WordPress, `vary` is `Origin` for a public response to an origin that may send credentials.
 * Otherwise it also names `Authorization`, since a known caller gets another response.
 */
export function buildHeaders({
  type,
  baseUrl,
  isPrivate,
  cors,
  headers,
}: ResponseTraits): Record<string, string> {
  const { link, ...others } = headers;
  const root = `<${baseUrl}/>; rel="https://api.w.org/"`;
  const isTrusted = cors["access-control-allow-credentials"] !== undefined;
  return {
    "content-type": type,
    ...COMMON_HEADERS,
    link: link === undefined ? root : `${root}, ${link}`,
    vary: isTrusted && !isPrivate ? "Origin" : "Origin, Authorization",
    ...cors,
    ...(isPrivate ? PRIVATE_HEADERS : isTrusted ? REVALIDATED : {}),
    ...others,
  };
}

/** Returns a weak validator of the bytes and of the headers that belong to them. */
export function entityTag(bytes: Uint8Array, headers: RestHeaders): string {
  const hash = createHash("sha256").update(JSON.stringify(headers)).update(bytes);
  return `W/"${hash.digest("base64url").slice(0, 27)}"`;
}

const CALLBACK = /^[\w.]{1,128}$/;

export const isCallback = (name: unknown): name is string => typeof name === "string" && CALLBACK.test(name);

/**
 * Returns a script that calls `callback` with the value. The comment in front keeps browsers from
 * reading the response as anything but a script.
 */
export const asScript = (callback: string, json: string): string =>
  `/**/${callback}(${json.replaceAll("\u2028", "\\u2028").replaceAll("\u2029", "\\u2029")})`;
