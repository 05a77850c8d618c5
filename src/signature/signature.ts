/** The signature of a delivery: making it, verifying it, and the same for the Standard Webhooks scheme (making only). */

import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { systemClock } from "../core/clock.js";
import { PostbellError } from "../core/errors.js";

/** The header that carries the signature, unless the sender chose another name. */
export const SIGNATURE_HEADER = "X-Service-Signature";

const SECRET_PREFIX = "whsec_";

/** A new signing secret: `whsec_` and 256 random bits in Base64. The whole string is the key of {@link signatureHeader}. */
export function newSecret(): string {
  return SECRET_PREFIX + randomBytes(32).toString("base64");
}

export interface SignatureInput {
  readonly secret: string;
  /** Unix seconds. */
  readonly timestamp: number;
  /** The bytes that are sent. */
  readonly body: Uint8Array;
}

/**
 * The value of `X-Service-Signature`: `t=<timestamp>, s=<64 lower-case hexadecimal digits>`.
 *
 * HMAC-SHA-256 of the timestamp, a full stop and the body, keyed by the UTF-8 bytes of the whole secret.
 * Errors: `invalid_argument` for an empty secret.
 * Source: Event Notification and Webhook Registration Interface, "Authentication" 3 and 5.
 */
export function signatureHeader({ secret, timestamp, body }: SignatureInput): string {
  checkSecret(secret, "secret");
  return `t=${timestamp}, s=${createHmac("sha256", secret).update(`${timestamp}.`).update(body).digest("hex")}`;
}

/** Why a signature was not accepted. Safe to log. */
export type SignatureProblem =
  /** There is no signature header, or it is empty. */
  | "missing_header"
  /** The header has not exactly one `t` (digits) and one `s` (64 lower-case hexadecimal digits). */
  | "malformed_header"
  /** None of the secrets made this signature over these bytes. */
  | "no_match"
  /** The signature is right, but the time in it is too far from now: perhaps a replay. */
  | "timestamp_out_of_tolerance";

/** Whether a signature holds: with its time, in Unix seconds, or with what is wrong with it. */
export type SignatureResult =
  | { readonly ok: true; readonly timestamp: number }
  | { readonly ok: false; readonly code: SignatureProblem };

/** What {@link verifySignature} looks at. */
export interface VerifyInput {
  /** The raw body, as it came over the wire. A string stands for its UTF-8 bytes. */
  readonly body: Uint8Array | string;
  /** The value of `X-Service-Signature`. */
  readonly header: string | null | undefined;
  /** The endpoint's secret, or several while one replaces another: any may match. */
  readonly secrets: string | readonly string[];
  /** Seconds the time in the header may differ from now, either way. Default 300. */
  readonly toleranceSeconds?: number | undefined;
  /** Epoch milliseconds. Default: the system's time. */
  readonly now?: number | undefined;
}

/**
 * Verifies a delivery's signature: first that one of the secrets made it, then its age. `timestamp` is in Unix seconds.
 *
 * Elements other than `t` and `s` are ignored. A header with two `t` or two `s` is refused: which one counts would be a guess.
 * Signatures are compared in constant time, and all secrets are tried whichever matches.
 * Errors: `raw_body_unavailable` when `body` is neither bytes nor a string; `invalid_argument` for an empty secret, no secret at all,
 * or a tolerance or time that is no number. What a sender can influence never throws.
 * Source: Event Notification and Webhook Registration Interface, "Authentication" 5.
 */
export function verifySignature({
  body,
  header,
  secrets,
  toleranceSeconds = 300,
  now = systemClock.now(),
}: VerifyInput): SignatureResult {
  const keys = readSecrets(secrets);
  if (typeof toleranceSeconds !== "number" || !(toleranceSeconds >= 0))
    throw invalid("toleranceSeconds", "a number of seconds, 0 or more");
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
  const received = Buffer.from(elements.signature);
  let isMatch = false;
  for (const key of keys) {
    const expected = createHmac("sha256", key).update(`${elements.timestamp}.`).update(body).digest("hex");
    isMatch = timingSafeEqual(received, Buffer.from(expected)) || isMatch;
  }
  if (!isMatch) return { ok: false, code: "no_match" };
  const timestamp = Number(elements.timestamp);
  const isFresh = Math.abs(Math.floor(now / 1000) - timestamp) <= toleranceSeconds;
  return isFresh ? { ok: true, timestamp } : { ok: false, code: "timestamp_out_of_tolerance" };
}

/** The one `t`, kept as written since these characters were signed, and the one `s`. */
function readHeader(header: string): { timestamp: string; signature: string } | undefined {
  const elements = header.split(",").map((element) => element.trim());
  const [timestamp = "", ...otherTimes] = valuesOf("t=", elements);
  const [signature = "", ...otherSignatures] = valuesOf("s=", elements);
  if (otherTimes.length > 0 || otherSignatures.length > 0) return undefined;
  const isWellFormed = /^[0-9]{1,15}$/.test(timestamp) && /^[0-9a-f]{64}$/.test(signature);
  return isWellFormed ? { timestamp, signature } : undefined;
}

function valuesOf(prefix: string, elements: readonly string[]): readonly string[] {
  return elements
    .filter((element) => element.startsWith(prefix))
    .map((element) => element.slice(prefix.length));
}

function readSecrets(secrets: string | readonly string[]): readonly string[] {
  const list = typeof secrets === "string" ? [secrets] : secrets;
  if (!Array.isArray(list) || list.length === 0)
    throw invalid("secrets", "a secret, or a list of at least one");
  for (const [index, secret] of list.entries()) {
    checkSecret(secret, typeof secrets === "string" ? "secrets" : `secrets[${index}]`);
  }
  return list;
}

/** Whether `secret` can be one. An empty key would verify what anyone can sign. */
export function isSecret(secret: unknown): secret is string {
  return typeof secret === "string" && secret !== "" && secret !== SECRET_PREFIX;
}

function checkSecret(secret: unknown, field: string): void {
  if (!isSecret(secret)) throw invalid(field, "a secret that is not empty");
}

function invalid(field: string, expected: string): PostbellError {
  return new PostbellError("invalid_argument", `${field} must be ${expected}`, { field });
}

export interface StandardSignatureInput extends SignatureInput {
  /** The event's id: the same in every attempt. */
  readonly id: string;
}

/**
 * The three headers of the Standard Webhooks scheme, for subscribers that verify with one of its libraries.
 *
 * HMAC-SHA-256 of `id.timestamp.body`, keyed by the bytes that the part of the secret after `whsec_` encodes in Base64.
 * Errors: `invalid_argument` when the secret is not of that form.
 * Source: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 */
export function standardHeaders({ secret, id, timestamp, body }: StandardSignatureInput): {
  "webhook-id": string;
  "webhook-timestamp": string;
  "webhook-signature": string;
} {
  const encoded = secret.startsWith(SECRET_PREFIX) ? secret.slice(SECRET_PREFIX.length) : "";
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(encoded) || encoded.length % 4 !== 0) {
    throw invalid("secret", `${SECRET_PREFIX} and the key in Base64`);
  }
  const mac = createHmac("sha256", Buffer.from(encoded, "base64"))
    .update(`${id}.${timestamp}.`)
    .update(body)
    .digest("base64");
  return { "webhook-id": id, "webhook-timestamp": String(timestamp), "webhook-signature": `v1,${mac}` };
}
