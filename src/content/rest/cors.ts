/** Decides which pages of other origins may read a response. Pure; knows no route. */

import type { HttpRequest, HttpResponse } from "../../http/types.js";

export type Headers = { readonly [name: string]: string };

/** On every response, as in WordPress: what a page may read of it and send with a request. */
export const SHARED_HEADERS: Headers = Object.freeze({
  "access-control-expose-headers": "X-WP-Total, X-WP-TotalPages, Link",
  "access-control-allow-headers": "Authorization, X-WP-Nonce, Content-Disposition, Content-MD5, Content-Type",
});

const PREFLIGHT_SECONDS = "600";

export interface Cors {
  /** Returns the origin if its pages may send credentials, otherwise an empty string. */
  readonly classOf: (origin: string | undefined) => string;
  /**
   * `isPublic`: for a response to an anonymous GET, which any origin may read without credentials.
   */
  readonly headers: (originClass: string, isPublic: boolean) => Headers;
  /** Returns the response to a preflight. */
  readonly preflight: (request: HttpRequest) => HttpResponse;
}

export const isPreflight = ({ method, headers }: HttpRequest): boolean =>
  method === "OPTIONS" &&
  headers["origin"] !== undefined &&
  headers["access-control-request-method"] !== undefined;

/** `origins`: as browsers send them, `https://app.example.org`. */
export function createCors(origins: readonly string[]): Cors {
  const listed = new Set(origins);
  const classOf: Cors["classOf"] = (origin) => (origin !== undefined && listed.has(origin) ? origin : "");
  return {
    classOf,
    headers: (originClass, isPublic) =>
      originClass !== "" ? trust(originClass) : isPublic ? { "access-control-allow-origin": "*" } : {},
    preflight({ headers }) {
      const originClass = classOf(headers["origin"]);
      const own = originClass === "" ? ANY_ORIGIN : { ...SHARED_HEADERS, ...trust(originClass) };
      const common = { "access-control-max-age": PREFLIGHT_SECONDS, vary: "Origin" };
      return { status: 204, headers: { ...own, ...common }, body: null };
    },
  };
}

const trust = (origin: string): Headers => ({
  "access-control-allow-origin": origin,
  "access-control-allow-methods": "OPTIONS, GET, POST, PUT, PATCH, DELETE",
  "access-control-allow-credentials": "true",
});

const ANY_ORIGIN: Headers = {
  "access-control-allow-origin": "*",
  "access-control-allow-methods": "GET, HEAD",
  // No Authorization: the page could not read the response.
  "access-control-allow-headers": "Content-Type, X-WP-Nonce",
};
