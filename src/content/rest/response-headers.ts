/** How an answer looks over HTTP: headers every answer has, who may keep it, validators, JSONP. Pure; knows no route. */

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

/** What an origin is answered that may sign in: its own cache must not show it the anonymous answer afterwards. */
const ASKED_AGAIN: Headers = Object.freeze({ "cache-control": "no-cache" });

export const JSON_TYPE = "application/json; charset=UTF-8";
export const JSONP_TYPE = "application/javascript; charset=UTF-8";

export interface ResponseTraits {
  readonly type: string;
  readonly baseUrl: string;
  /** Nobody may keep it: it is an error, the answer to a write, or to somebody in person. */
  readonly isPrivate: boolean;
  readonly cors: Headers;
  /** Of the answer itself. */
  readonly headers: RestHeaders;
}

/**
 * The headers of an answer but for its validator. `Link` leads to the index first. `Vary` is `Origin` where the answer is for an origin that may send
 * credentials and is not private, as in the reference; otherwise it names `Authorization` too, since another answer goes to somebody who is known.
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
    ...(isPrivate ? PRIVATE_HEADERS : isTrusted ? ASKED_AGAIN : {}),
    ...others,
  };
}

/** A weak validator of the bytes and of the headers that belong to them. */
export function entityTag(bytes: Uint8Array, headers: RestHeaders): string {
  const hash = createHash("sha256").update(JSON.stringify(headers)).update(bytes);
  return `W/"${hash.digest("base64url").slice(0, 27)}"`;
}

const CALLBACK = /^[\w.]{1,128}$/;

export const isCallback = (name: unknown): name is string => typeof name === "string" && CALLBACK.test(name);

/** A script that calls `callback` with the value. The comment keeps the answer from being read as anything else than a script. */
export const asScript = (callback: string, json: string): string =>
  `/**/${callback}(${json.replaceAll("\u2028", "\\u2028").replaceAll("\u2029", "\\u2029")})`;
