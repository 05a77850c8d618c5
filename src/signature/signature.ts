/** Signs deliveries and verifies their signatures. Signs for the Standard Webhooks scheme, too. */

import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { systemClock } from "../core/clock.js";
import { PostbellError } from "../core/errors.js";
import { refuseUnknownKeys } from "../core/known-names.js";

/** The default header of the signature. */
export const SIGNATURE_HEADER = "X-Service-Signature";

const SECRET_PREFIX = "whsec_";

/**
 * Creates a signing secret: `whsec_` and 256 random bits in Base64. The whole string is the key of
 * {@link signatureHeader}.
 */
export function newSecret(): string {
  return SECRET_PREFIX + randomBytes(32).toString("base64");
}

export interface SignatureInput {
  secret: string;
  /** Unix seconds. */
  timestamp: number;
  /** The bytes that are sent. */
  body: Uint8Array;
}

/**
 * Returns the value of `X-Service-Signature`: `t=<timestamp>, s=<64 lower-case hexadecimal
 * digits>`.
 *
 * It is the HMAC-SHA-256 of the timestamp, a full stop and the body, keyed by the UTF-8 bytes of
 * the whole secret.
 *
 * @throws `invalid_argument` for an empty secret.
 *
 * Source: Event Notification and Webhook Registration Interface, "Authentication" 3 and 5.
 */
export function signatureHeader({ secret, timestamp, body }: SignatureInput): string {
  checkSecret(secret, "secret");
  return `t=${timestamp}, s=${createHmac("sha256", secret).update(`${timestamp}.`).update(body).digest("hex")}`;
}

/** Why a signature was refused. Safe to log. */
export type SignatureProblem =
  /** There is no signature header, or it is empty. */
  | "missing_header"
  /** The header does not have exactly one `t` (digits) and one `s` (64 hexadecimal digits). */
  | "malformed_header"
  /** No secret gives this signature for these bytes. */
  | "no_match"
  /** The signature is valid, but its time is too far from now: perhaps a replay. */
  | "timestamp_out_of_tolerance";

/** The result of a verification: the time of the signature in Unix seconds, or the problem. */
export type SignatureResult =
  | { readonly ok: true; readonly timestamp: number }
  | { readonly ok: false; readonly code: SignatureProblem };

/** The arguments of {@link verifySignature}. */
export interface VerifyInput {
  /** The raw body as it was received. A string stands for its UTF-8 bytes. */
  body: Uint8Array | string;
  /** The value of `X-Service-Signature`. */
  header: string | null | undefined;
  /** The endpoint's secret, or several during a rotation: any of them may match. */
  secrets: string | readonly string[];
  /** Largest difference between the time in the header and now. Default 300 000. */
  toleranceMs?: number | undefined;
  /** The current time in epoch milliseconds. Default: the system's. */
  now?: number | undefined;
}

const VERIFY_KEYS: string[] = ["body", "header", "secrets", "toleranceMs", "now"];

/**
 * Verifies the signature of a delivery: first that it was made with one of the secrets, then its
 * age.
 *
 * Elements other than `t` and `s` are ignored. A header with two `t` or two `s` is refused.
 * Signatures are compared in constant time, and all secrets are tried whichever matches.
 *
 * @throws `raw_body_unavailable` if `body` is neither bytes nor a string; `invalid_argument` for an
 * empty secret, no secret, a tolerance or time that is not a number, or a misspelt key. Nothing
 * that a sender can influence throws.
 *
 * @example
 * const result = verifySignature({
 *   body: rawBody,
 *   header: request.headers["x-service-signature"],
 *   secrets: process.env.WEBHOOK_SECRET,
 * });
 * if (!result.ok) return reply(400, result.code);
 */
export function verifySignature(input: VerifyInput): SignatureResult {
  refuseUnknownKeys("verifySignature", input, VERIFY_KEYS);
  const { body, header, secrets, toleranceMs = 300_000, now = systemClock.now() } = input;
  const keys = readSecrets(secrets);
  if (typeof toleranceMs !== "number" || !(toleranceMs >= 0))
    throw invalid("toleranceMs", "a number of milliseconds, 0 or more");
  if (!Number.isFinite(now)) throw invalid("now", "a time in epoch milliseconds");
  if (typeof body !== "string" && !(body instanceof Uint8Array)) {
    throw new PostbellError(
      "raw_body_unavailable",
      "verifySignature needs the raw bytes of the body: a parsed body, serialised again, has other bytes. Read them before any body parser",
      { field: "body" },
    );
  }

  if (typeof header !== "string" || header.trim() === "") return { ok: false, code: "missing_header" };
  const elements = readHeader(header);
  if (elements === undefined) return { ok: false, code: "malformed_header" };
  if (!hasMatchingKey(keys, elements, body)) return { ok: false, code: "no_match" };
  return verifyAge(Number(elements.timestamp), { now, toleranceMs });
}

/**
 * Verifies the time of a signature that matches.
 *
 * @param timestamp Unix seconds.
 */
export function verifyAge(
  timestamp: number,
  { now, toleranceMs }: { now: number; toleranceMs: number },
): SignatureResult {
  const isFresh = Math.abs(Math.floor(now / 1000) - timestamp) * 1000 <= toleranceMs;
  return isFresh ? { ok: true, timestamp } : { ok: false, code: "timestamp_out_of_tolerance" };
}

/** True if one of the keys gives the signature. Takes the same time whichever key matches. */
function hasMatchingKey(
  keys: string[],
  { timestamp, signature }: SignatureElements,
  body: Uint8Array | string,
): boolean {
  const received = Buffer.from(signature);
  let isMatch = false;
  for (const key of keys) {
    const expected = createHmac("sha256", key).update(`${timestamp}.`).update(body).digest("hex");
    isMatch = timingSafeEqual(received, Buffer.from(expected)) || isMatch;
  }
  return isMatch;
}

interface SignatureElements {
  timestamp: string;
  signature: string;
}

/** Returns the one `t`, as written because these characters were signed, and the one `s`. */
function readHeader(header: string): SignatureElements | undefined {
  const elements = header.split(",").map((element) => element.trim());
  const [timestamp = "", ...otherTimes] = selectValues("t=", elements);
  const [signature = "", ...otherSignatures] = selectValues("s=", elements);
  if (otherTimes.length > 0 || otherSignatures.length > 0) return undefined;
  const isWellFormed = /^[0-9]{1,15}$/.test(timestamp) && /^[0-9a-f]{64}$/.test(signature);
  return isWellFormed ? { timestamp, signature } : undefined;
}

function selectValues(prefix: string, elements: string[]): string[] {
  return elements
    .filter((element) => element.startsWith(prefix))
    .map((element) => element.slice(prefix.length));
}

function readSecrets(secrets: string | readonly string[]): string[] {
  const list = typeof secrets === "string" ? [secrets] : secrets;
  if (!Array.isArray(list) || list.length === 0)
    throw invalid("secrets", "a secret, or a list of at least one");
  for (const [index, secret] of list.entries()) {
    checkSecret(secret, typeof secrets === "string" ? "secrets" : `secrets[${index}]`);
  }
  return list;
}

/** A public key in the form of this package, PEM, OpenSSH or JSON Web Keys: everybody knows it. */
const PUBLIC_KEY =
  /^\s*(?:whpk_|-----BEGIN [A-Z0-9 ]*(?:PUBLIC KEY|CERTIFICATE)-----|(?:ssh-|ecdsa-|sk-)\S+ |[{[][\s\S]*"kty")/;

/** True for a usable secret. An empty or public key would verify what anyone can sign. */
export function isSecret(secret: unknown): secret is string {
  return typeof secret === "string" && secret !== "" && secret !== SECRET_PREFIX && !PUBLIC_KEY.test(secret);
}

function checkSecret(secret: unknown, field: string): void {
  if (!isSecret(secret)) throw invalid(field, "a secret that is not empty, and not a public key");
}

function invalid(field: string, expected: string): PostbellError {
  return new PostbellError("invalid_argument", `${field} must be ${expected}`, { field });
}

export interface StandardSignatureInput extends Omit<SignatureInput, "secret"> {
  /** The event's id, the same in every attempt. */
  id: string;
  /** One secret, or both during a rotation. */
  secrets: readonly string[];
}

/**
 * Returns the three headers of the Standard Webhooks scheme, for subscribers that verify with one
 * of its libraries.
 *
 * A signature is the HMAC-SHA-256 of `id.timestamp.body`, keyed by the bytes that the part of the
 * secret after `whsec_` encodes in Base64. `webhook-signature` lists one for each secret, separated
 * by spaces: a receiver that knows any of the secrets accepts the delivery.
 *
 * @throws `invalid_argument` if a secret does not have that form.
 *
 * Source:
 * https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 */
export function standardHeaders({ secrets, id, timestamp, body }: StandardSignatureInput): {
  "webhook-id": string;
  "webhook-timestamp": string;
  "webhook-signature": string;
} {
  const signatures = secrets.map((secret) => {
    const mac = createHmac("sha256", decodeStandardKey(secret)).update(`${id}.${timestamp}.`).update(body);
    return `v1,${mac.digest("base64")}`;
  });
  return {
    "webhook-id": id,
    "webhook-timestamp": String(timestamp),
    "webhook-signature": signatures.join(" "),
  };
}

/** @throws `invalid_argument` for another form than `whsec_` and Base64. */
export function decodeStandardKey(secret: string): Buffer {
  const encoded = secret.startsWith(SECRET_PREFIX) ? secret.slice(SECRET_PREFIX.length) : "";
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(encoded) || encoded.length % 4 !== 0) {
    throw invalid("secret", `${SECRET_PREFIX} and the key in Base64`);
  }
  return Buffer.from(encoded, "base64");
}
