/** Which pages of other origins may read an answer. Pure; knows no route. */

export type Headers = { readonly [name: string]: string };

/** What a page may learn of an answer and send with a request; on every answer, as in the reference. */
export const SHARED_HEADERS: Headers = Object.freeze({
  "Access-Control-Expose-Headers": "X-WP-Total, X-WP-TotalPages, Link",
  "Access-Control-Allow-Headers": "Authorization, X-WP-Nonce, Content-Disposition, Content-MD5, Content-Type",
});

const PREFLIGHT_SECONDS = "600";

export interface Cors {
  /** The origin if it is one that may send credentials, else empty: what an answer depends on. */
  readonly classOf: (origin: string | undefined) => string;
  /** `isPublic`: an answer to an anonymous GET, which any origin may read, without credentials. Never both. */
  readonly headers: (originClass: string, isPublic: boolean) => Headers;
  /** Of the answer to a preflight. */
  readonly preflight: (originClass: string) => Headers;
}

/** `origins`: as browsers send them, `https://app.example.org`. */
export function createCors(origins: readonly string[]): Cors {
  const listed = new Set(origins);
  const trusted = (origin: string): Headers => ({
    "Access-Control-Allow-Origin": origin,
    "Access-Control-Allow-Methods": "OPTIONS, GET, POST, PUT, PATCH, DELETE",
    "Access-Control-Allow-Credentials": "true",
  });
  return {
    classOf: (origin) => (origin !== undefined && listed.has(origin) ? origin : ""),
    headers: (originClass, isPublic) =>
      originClass !== "" ? trusted(originClass) : isPublic ? { "Access-Control-Allow-Origin": "*" } : {},
    preflight: (originClass) => ({
      ...(originClass !== ""
        ? { ...SHARED_HEADERS, ...trusted(originClass) }
        : {
            "Access-Control-Allow-Origin": "*",
            "Access-Control-Allow-Methods": "GET, HEAD",
            // No Authorization: what it would lead to could not be read.
            "Access-Control-Allow-Headers": "Content-Type, X-WP-Nonce",
          }),
      "Access-Control-Max-Age": PREFLIGHT_SECONDS,
      Vary: "Origin",
    }),
  };
}
