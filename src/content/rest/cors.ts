/** Decides which pages of other origins may read a response. Pure; knows no route. */

import type { HttpRequest, HttpResponse } from "../../http/types.js";

export type Headers = { [name: string]: string };

/**
 * On every response, as in WordPress: what a page may read of it and send with a request. A
 * response to a trusted origin has longer lists.
 */
export const SHARED_HEADERS: Headers = Object.freeze({
  "access-control-expose-headers": "X-WP-Total, X-WP-TotalPages, Link",
  "access-control-allow-headers": "Authorization, X-WP-Nonce, Content-Disposition, Content-MD5, Content-Type",
});

/** WordPress's, and what its editor sends to save: a method override, and our precondition. */
const TRUSTED_REQUEST_HEADERS = [
  "Authorization",
  "X-WP-Nonce",
  "Content-Disposition",
  "Content-MD5",
  "Content-Type",
  "X-HTTP-Method-Override",
  "If-Unmodified-Since",
];

/** WordPress's, and those from which clients learn what they may do, and where and when. */
const TRUSTED_EXPOSED_HEADERS = "X-WP-Total, X-WP-TotalPages, Link, Allow, Location, Retry-After";

const PREFLIGHT_SECONDS = "600";

export interface Cors {
  /** Returns the origin if its pages may send credentials, otherwise an empty string. */
  classOf: (origin: string | undefined) => string;
  /**
   * `isPublic`: for a response to an anonymous GET, which any origin may read without credentials.
   */
  headers: (originClass: string, isPublic: boolean) => Headers;
  /** Returns the response to a preflight. */
  preflight: (request: HttpRequest) => HttpResponse;
}

export const isPreflight = ({ method, headers }: HttpRequest): boolean =>
  method === "OPTIONS" &&
  headers["origin"] !== undefined &&
  headers["access-control-request-method"] !== undefined;

export function createCors({
  origins,
  allowedHeaders,
}: {
  /** Origins whose pages may send credentials, as browsers send them: `https://app.example.org`. */
  origins: string[];
  /** Request headers that these pages may send in addition to {@link TRUSTED_REQUEST_HEADERS}. */
  allowedHeaders: string[];
}): Cors {
  const listed = new Set(origins);
  const requestHeaders = [...TRUSTED_REQUEST_HEADERS, ...allowedHeaders].join(", ");
  const trust = (origin: string): Headers => ({
    "access-control-allow-origin": origin,
    "access-control-allow-methods": "OPTIONS, GET, POST, PUT, PATCH, DELETE",
    "access-control-allow-credentials": "true",
    "access-control-allow-headers": requestHeaders,
    "access-control-expose-headers": TRUSTED_EXPOSED_HEADERS,
  });
  const classOf: Cors["classOf"] = (origin) => (origin !== undefined && listed.has(origin) ? origin : "");
  return {
    classOf,
    headers: (originClass, isPublic) =>
      originClass !== "" ? trust(originClass) : isPublic ? { "access-control-allow-origin": "*" } : {},
    preflight({ headers }) {
      const originClass = classOf(headers["origin"]);
      const allowed = originClass === "" ? ANY_ORIGIN : trust(originClass);
      const common = { "access-control-max-age": PREFLIGHT_SECONDS, vary: "Origin" };
      return { status: 204, headers: { ...allowed, ...common }, body: null };
    },
  };
}

const ANY_ORIGIN: Headers = {
  "access-control-allow-origin": "*",
  "access-control-allow-methods": "GET, HEAD",
  // No Authorization: the page could not read the response.
  "access-control-allow-headers": "Content-Type, X-WP-Nonce",
};
