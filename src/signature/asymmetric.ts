/**
 * Ed25519 signatures of the Standard Webhooks scheme, `v1a`: reads keys, signs, publishes the
 * public keys, and verifies.
 */

import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign, verify } from "node:crypto";
import { type SignatureInput, type SignatureResult, verifyAge } from "./signature.js";

/** A public key as a JSON Web Key (RFC 8037). `kid` is its thumbprint (RFC 7638). */
export interface PublicJwk {
  kty: "OKP";
  crv: "Ed25519";
  /** The 32 bytes of the key in base64url. */
  x: string;
  kid: string;
  use: "sig";
  alg: "EdDSA";
}

/** A key that signs deliveries. */
export interface SigningKey {
  privateKey: KeyObject;
  jwk: PublicJwk;
}

/** All of them are published, and a receiver tries each. */
export const MAX_SIGNING_KEYS = 5;

/** A PEM of an Ed25519 key takes 119 characters. */
const MAX_KEY_LENGTH = 1_024;
const KEY_BYTES = 32;
/** The DER of a PKCS#8 Ed25519 key up to its 32 bytes (RFC 8410 section 7). */
const PKCS8_PREFIX = Buffer.from("302e020100300506032b657004220420", "hex");
const PRIVATE_PREFIX = "whsk_";
const PUBLIC_PREFIX = "whpk_";
const BASE64 = /^[A-Za-z0-9+/_-]+={0,2}$/;

/** Returns the bytes after the prefix, also from base64url, which JSON Web Keys use. */
function decode(text: string, prefix: string): Buffer | undefined {
  const encoded = text.slice(prefix.length);
  return text.startsWith(prefix) && BASE64.test(encoded) ? Buffer.from(encoded, "base64") : undefined;
}

const getPublicBytes = (key: KeyObject): Buffer =>
  Buffer.from(String(createPublicKey(key).export({ format: "jwk" }).x), "base64url");

/** Reads a seed, or a seed and its public key, as other libraries write private keys. */
function readPrivateBytes(bytes: Buffer): KeyObject | undefined {
  if (bytes.length !== KEY_BYTES && bytes.length !== 2 * KEY_BYTES) return undefined;
  const der = Buffer.concat([PKCS8_PREFIX, bytes.subarray(0, KEY_BYTES)]);
  const key = createPrivateKey({ key: der, format: "der", type: "pkcs8" });
  const written = bytes.subarray(KEY_BYTES);
  return written.length === 0 || written.equals(getPublicBytes(key)) ? key : undefined;
}

function readPrivateKey(pem: unknown): KeyObject | undefined {
  if (typeof pem !== "string" || pem.length > MAX_KEY_LENGTH) return undefined;
  try {
    const bytes = decode(pem, PRIVATE_PREFIX);
    if (bytes !== undefined) return readPrivateBytes(bytes);
    const key = createPrivateKey({ key: pem, format: "pem" });
    return key.asymmetricKeyType === "ed25519" ? key : undefined;
  } catch {
    return undefined;
  }
}

/** Checks an item of `signature.ed25519`: returns the end of "must be …", or `undefined`. */
export const checkSigningKey = (pem: unknown): string | undefined =>
  readPrivateKey(pem) === undefined
    ? `a private Ed25519 key: PEM (PKCS#8, not encrypted), or '${PRIVATE_PREFIX}' and Base64`
    : undefined;

/** @param pem a key that {@link checkSigningKey} accepts. */
export function readSigningKey(pem: string): SigningKey {
  const privateKey = readPrivateKey(pem) as KeyObject;
  const x = getPublicBytes(privateKey).toString("base64url");
  // RFC 7638: these members, in this order, without spaces.
  const kid = createHash("sha256").update(`{"crv":"Ed25519","kty":"OKP","x":"${x}"}`).digest("base64url");
  return { privateKey, jwk: { kty: "OKP", crv: "Ed25519", x, kid, use: "sig", alg: "EdDSA" } };
}

/** Returns the bytes that both sides of the scheme sign. */
const toSignedContent = (id: string, timestamp: number | string, body: Uint8Array | string): Buffer =>
  Buffer.concat([Buffer.from(`${id}.${timestamp}.`), Buffer.from(body as Uint8Array)]);

/** Returns `v1a,<Base64>` for `webhook-signature`. */
export function asymmetricSignature({
  key,
  id,
  timestamp,
  body,
}: Omit<SignatureInput, "secret"> & { key: SigningKey; id: string }): string {
  return `v1a,${sign(null, toSignedContent(id, timestamp, body), key.privateKey).toString("base64")}`;
}

/**
 * The encodings of the points of order 1, 2, 4 and 8, without the bit of the sign. Node verifies
 * signatures under them that anyone can make.
 *
 * Source: Cremers and Jackson, "Prime, Order Please!", table 1.
 */
const SMALL_ORDER_POINTS: Set<string> = new Set([
  "0000000000000000000000000000000000000000000000000000000000000000",
  "0100000000000000000000000000000000000000000000000000000000000000",
  "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
  "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
  "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
]);

function hasSmallOrder(point: Buffer): boolean {
  const unsigned = Buffer.from(point);
  unsigned.writeUInt8(unsigned.readUInt8(KEY_BYTES - 1) & 0x7f, KEY_BYTES - 1);
  return SMALL_ORDER_POINTS.has(unsigned.toString("hex"));
}

/**
 * Reads `whpk_` and Base64. Returns `undefined` for any other value, and for a key under which
 * anyone can sign.
 */
export function readPublicKey(text: unknown): KeyObject | undefined {
  if (typeof text !== "string" || text.length > MAX_KEY_LENGTH) return undefined;
  const bytes = decode(text, PUBLIC_PREFIX);
  if (bytes?.length !== KEY_BYTES || hasSmallOrder(bytes)) return undefined;
  try {
    const x = bytes.toString("base64url");
    return createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
  } catch {
    return undefined;
  }
}

/** More signatures than a sender has keys are an attempt to keep the receiver busy. */
const MAX_SIGNATURES = 5;
const MAX_ID_LENGTH = 256;
const MAX_HEADER_LENGTH = 4_096;

/** The arguments of {@link verifyAsymmetricSignature}. */
export interface AsymmetricInput {
  body: Uint8Array | string;
  /** `webhook-id`. */
  id: string | undefined;
  /** `webhook-timestamp`. */
  timestamp: string | undefined;
  /** `webhook-signature`. Signatures other than `v1a` are ignored. */
  signature: string | undefined;
  keys: KeyObject[];
  toleranceMs: number;
  /** Epoch milliseconds. */
  now: number;
}

/** Verifies the `v1a` signatures of a delivery: one of them by one of the keys, then its age. */
export function verifyAsymmetricSignature({
  body,
  id,
  timestamp,
  signature,
  keys,
  toleranceMs,
  now,
}: AsymmetricInput): SignatureResult {
  if (!id || !timestamp || !signature) return { ok: false, code: "missing_header" };
  const isTooLong = id.length > MAX_ID_LENGTH || signature.length > MAX_HEADER_LENGTH;
  if (isTooLong || !/^[0-9]{1,15}$/.test(timestamp)) return { ok: false, code: "malformed_header" };
  const signatures = signature
    .split(" ")
    .flatMap((entry) => /^v1a,([A-Za-z0-9+/]{86}==)$/.exec(entry)?.[1] ?? []);
  if (signatures.length > MAX_SIGNATURES) return { ok: false, code: "malformed_header" };
  const content = toSignedContent(id, timestamp, body);
  const isMatch = signatures.some((encoded) =>
    keys.some((key) => verify(null, content, key, Buffer.from(encoded, "base64"))),
  );
  return isMatch ? verifyAge(Number(timestamp), { now, toleranceMs }) : { ok: false, code: "no_match" };
}
