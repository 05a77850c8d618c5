/**
 * Seals the secrets and the secret headers of webhooks with AES-256-GCM under the host's keys.
 * Without keys they stay as they are.
 */

import { createCipheriv, createDecipheriv, createHash, randomBytes } from "node:crypto";
import { PostbellError } from "../src/core/errors.js";
import { value } from "../src/core/options.js";

const MARK = "sealed.1";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const SEAL_KEY_BYTES = 32;

export interface Seal {
  /**
   * `place`, the webhook's id, is authenticated: a sealed secret copied to another webhook does not
   * open.
   */
  close(secret: string, place: string): string;
  /** Errors: `storage_unavailable` if no key of the list opens it. */
  open(stored: string, place: string): string;
}

/** Returns a name for a key that does not reveal it. */
const getKeyName = (key: Buffer): string => createHash("sha256").update(key).digest("base64url").slice(0, 8);

/**
 * The first key seals, and all open. To rotate, put a new key in front, and drop the old one once
 * nothing is sealed with it.
 */
export function createSeal(keys: readonly Buffer[]): Seal {
  const byName = new Map(keys.map((key) => [getKeyName(key), key]));
  const first = [...byName][0];
  return {
    close(secret, place) {
      if (!first) return secret;
      const [name, key] = first;
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv("aes-256-gcm", key, nonce).setAAD(Buffer.from(place));
      const bytes = Buffer.concat([
        nonce,
        cipher.update(secret, "utf8"),
        cipher.final(),
        cipher.getAuthTag(),
      ]);
      return `${MARK}.${name}.${bytes.toString("base64url")}`;
    },
    open(stored, place) {
      if (!stored.startsWith(`${MARK}.`)) return stored;
      const [name = "", text = ""] = stored.slice(MARK.length + 1).split(".");
      const key = byName.get(name);
      const bytes = Buffer.from(text, "base64url");
      try {
        if (!key) throw new Error(`no key named ${name}`);
        const decipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, NONCE_BYTES))
          .setAAD(Buffer.from(place))
          .setAuthTag(bytes.subarray(-TAG_BYTES));
        const head = decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES));
        return Buffer.concat([head, decipher.final()]).toString("utf8");
      } catch (cause) {
        throw new PostbellError(
          "storage_unavailable",
          `The secret of webhook ${place} cannot be opened: give the storage the key it was sealed with, in sealKeys.`,
          { field: "sealKeys", cause },
        );
      }
    },
  };
}

/** Seals the secret headers of a webhook, in a separate place. */
export const closeHeaders = (seal: Seal, headers: Readonly<Record<string, string>>, id: string): string =>
  seal.close(JSON.stringify(headers), `${id}/headers`);

/** Errors: as {@link Seal.open}. */
export const openHeaders = (seal: Seal, stored: string, id: string): Record<string, string> =>
  JSON.parse(seal.open(stored, `${id}/headers`)) as Record<string, string>;

/** Returns `undefined` if `value` is not a key. */
function readSealKey(value: unknown): Buffer | undefined {
  const bytes = typeof value === "string" ? Buffer.from(value, "base64") : value;
  return bytes instanceof Uint8Array && bytes.length === SEAL_KEY_BYTES ? Buffer.from(bytes) : undefined;
}

/** Reads the value of {@link sealKeysOption}. */
export const readSealKeys = (keys: readonly (Uint8Array | string)[]): readonly Buffer[] =>
  keys.flatMap((key) => readSealKey(key) ?? []);

/** The option `sealKeys` of a storage. */
export const sealKeysOption = value<readonly (Uint8Array | string)[]>(
  "a list of keys of 32 bytes, as bytes or in base64",
  (value) => Array.isArray(value) && value.every((key) => readSealKey(key) !== undefined),
  [],
  "list of keys",
);
