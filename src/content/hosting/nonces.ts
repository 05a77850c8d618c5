/**
 * Creates and verifies nonces: tokens that prove that a request comes from a page of the site, not
 * from a page of another site that makes the browser send the session cookie.
 */

import { createHmac, timingSafeEqual } from "node:crypto";
import type { Clock } from "../../core/clock.js";
import { PostbellError } from "../../core/errors.js";
import { hostOptions } from "../../core/host-options.js";
import { readOptions, value, wholeNumber } from "../../core/options.js";

/** The options of {@link createNonces}. */
export interface NonceOptions {
  /** The same in all processes of a site. Required. A new key makes every nonce invalid. */
  secret: string | Uint8Array;
  /**
   * Longest time for which a nonce is valid; the shortest is half of it. Default: 24 hours, as in
   * WordPress.
   */
  lifetimeMs?: number | undefined;
  /** As in `createWebhooks`. */
  clock?: Clock | undefined;
}

/** Nonces for the sessions of a site. */
export interface Nonces {
  /**
   * Returns the nonce of a session, for its pages and for `/wp-admin/admin-ajax.php`. It stays the
   * same for half the lifetime.
   *
   * @param session the secret that identifies the session, such as the value of its cookie
   * @throws PostbellError `invalid_argument` for an empty session
   */
  create(session: string): string;
  /**
   * Returns true if the nonce was created for this session and has not expired. Compares in
   * constant time.
   *
   * @throws PostbellError `invalid_argument` for an empty session
   */
  verify(nonce: string, session: string): boolean;
}

const MIN_SECRET_BYTES = 32;
const HOUR_MS = 3_600_000;
/** 192 bits in Base64. */
const NONCE_LENGTH = 32;

const byteLength = (secret: string | Uint8Array): number =>
  typeof secret === "string" ? Buffer.byteLength(secret) : secret.length;

/** Names, defaults and ranges; the table in docs/options.md is checked against it. */
export const nonceOptions = {
  secret: value<string | Uint8Array | undefined>(
    `a key of at least ${MIN_SECRET_BYTES} bytes, such as randomBytes(32)`,
    (value) =>
      (typeof value === "string" || value instanceof Uint8Array) && byteLength(value) >= MIN_SECRET_BYTES,
    undefined,
  ),
  lifetimeMs: wholeNumber("ms", 24 * HOUR_MS, { min: 2_000, max: 30 * 24 * HOUR_MS }),
  clock: hostOptions.clock,
};

/**
 * Creates the nonces that WordPress's clients send as `X-WP-Nonce` along with a session cookie.
 *
 * A nonce is signed and bound to its session, so nothing has to be stored. Pages of other sites
 * cannot read it. In `authenticate`, accept a session cookie only together with a valid nonce.
 *
 * @example
 * ```ts
 * const nonces = createNonces({ secret: process.env.NONCE_SECRET });
 * const nonce = nonces.create(sessionId); // for the page of the editor
 * nonces.verify(request.headers["x-wp-nonce"], sessionId); // in `authenticate`
 * ```
 *
 * @throws PostbellError `invalid_option`, with the path of the option as `field`
 */
export function createNonces(options: NonceOptions): Nonces {
  const { secret, lifetimeMs, clock } = readOptions("createNonces", nonceOptions, options);
  if (secret === undefined)
    throw new PostbellError(
      "invalid_option",
      "createNonces: secret is missing; pass a key, such as randomBytes(32).",
      { field: "secret" },
    );
  const key = Buffer.from(secret);
  const period = (): number => Math.floor(clock.now() / (lifetimeMs / 2));
  const sign = (session: string, at: number): string => {
    if (typeof session !== "string" || session === "")
      throw new PostbellError("invalid_argument", "session must be a text that is not empty", {
        field: "session",
      });
    const signature = createHmac("sha256", key).update(`nonce.${at}.${session}`).digest("base64url");
    return signature.slice(0, NONCE_LENGTH);
  };
  return Object.freeze<Nonces>({
    create: (session) => sign(session, period()),
    verify(nonce, session) {
      const now = period();
      // Both are compared, so that the time does not tell which of them matched.
      const matches = [now, now - 1].map((at) => isEqual(sign(session, at), nonce));
      return matches.includes(true);
    },
  });
}

function isEqual(expected: string, actual: unknown): boolean {
  if (typeof actual !== "string" || actual.length !== NONCE_LENGTH) return false;
  const bytes = Buffer.from(actual);
  return bytes.length === NONCE_LENGTH && timingSafeEqual(Buffer.from(expected), bytes);
}
