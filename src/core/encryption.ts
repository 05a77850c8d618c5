/** Encrypts texts with AES-256-GCM, for what is stored. */

import { createCipheriv, createDecipheriv, createHash, type KeyObject, randomBytes } from "node:crypto";

/** Bytes of a key. */
export const KEY_BYTES = 32;

const ALGORITHM = "aes-256-gcm";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const OPTIONS = { authTagLength: TAG_BYTES };

/** Returns `count` nonces, drawn together: one call takes as long as that for a single one. */
export function drawNonces(count: number): Buffer[] {
  const bytes = randomBytes(count * NONCE_BYTES);
  return Array.from({ length: count }, (_, index) =>
    bytes.subarray(index * NONCE_BYTES, (index + 1) * NONCE_BYTES),
  );
}

/** Returns a name for a key that does not reveal it. */
export const getKeyName = (key: Buffer): string =>
  createHash("sha256").update(key).digest("base64url").slice(0, 8);

/**
 * Returns nonce, ciphertext and tag in base64url. `place` is authenticated: copied to another
 * place, the text does not decrypt.
 */
export function encryptText(
  key: Buffer | KeyObject,
  text: string,
  place: string,
  nonce: Buffer = randomBytes(NONCE_BYTES),
): string {
  const cipher = createCipheriv(ALGORITHM, key, nonce, OPTIONS).setAAD(Buffer.from(place));
  return Buffer.concat([nonce, cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()]).toString(
    "base64url",
  );
}

/** Decrypts a text of {@link encryptText}. Throws if the text, the key or the place is another. */
export function decryptText(key: Buffer | KeyObject, encrypted: string, place: string): string {
  const bytes = Buffer.from(encrypted, "base64url");
  const decipher = createDecipheriv(ALGORITHM, key, bytes.subarray(0, NONCE_BYTES), OPTIONS)
    .setAAD(Buffer.from(place))
    .setAuthTag(bytes.subarray(-TAG_BYTES));
  const head = decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES));
  return Buffer.concat([head, decipher.final()]).toString("utf8");
}
