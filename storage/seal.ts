/**
 * Seals what must not be read in a copy of the storage, with AES-256-GCM under the host's keys: the
 * secrets and the secret headers of webhooks, and the data keys of accounts. Without keys they stay
 * as they are.
 */

import { decryptText, encryptText, getKeyName, KEY_BYTES } from "../src/core/encryption.js";
import { PostbellError } from "../src/core/errors.js";
import { value } from "../src/core/options.js";

const MARK = "sealed.1";

export interface Seal {
  /** True if there are keys. */
  hasKeys: boolean;
  /**
   * `place` says where the secret belongs, such as a webhook's id. It is authenticated: a sealed
   * secret copied to another place does not open.
   */
  close(secret: string, place: string): string;
  /** Errors: `storage_unavailable` if no key of the list opens it. */
  open(stored: string, place: string): string;
  /** False for a text that {@link close} would not seal with the same key now. */
  isCurrent(stored: string): boolean;
}

/**
 * The first key seals, and all open. To rotate, put a new key in front, and drop the old one once
 * nothing is sealed with it.
 */
export function createSeal(keys: readonly Buffer[]): Seal {
  const byName = new Map(keys.map((key) => [getKeyName(key), key]));
  const first = [...byName][0];
  return {
    hasKeys: first !== undefined,
    close(secret, place) {
      if (!first) return secret;
      const [name, key] = first;
      return `${MARK}.${name}.${encryptText(key, secret, place)}`;
    },
    open(stored, place) {
      if (!stored.startsWith(`${MARK}.`)) return stored;
      const [name = "", text = ""] = stored.slice(MARK.length + 1).split(".");
      const key = byName.get(name);
      try {
        if (!key) throw new Error(`no key named ${name}`);
        return decryptText(key, text, place);
      } catch (cause) {
        throw new PostbellError(
          "storage_unavailable",
          `The secret of ${place} cannot be opened: give the storage the key it was sealed with, in sealKeys.`,
          { field: "sealKeys", cause },
        );
      }
    },
    isCurrent: (stored) => stored.startsWith(first ? `${MARK}.${first[0]}.` : ""),
  };
}

/** Seals the secret headers of a webhook, in a separate place. */
export const closeHeaders = (seal: Seal, headers: Readonly<Record<string, string>>, id: string): string =>
  seal.close(JSON.stringify(headers), `${id}/headers`);

/** Errors: as {@link Seal.open}. */
export const openHeaders = (seal: Seal, stored: string, id: string): Record<string, string> =>
  JSON.parse(seal.open(stored, `${id}/headers`)) as Record<string, string>;

/** Returns the name of a data key in base64. */
export const nameDataKey = (key: string): string => getKeyName(Buffer.from(key, "base64"));

const toDataKeyPlace = (account: string): string => `account ${account}`;

/** Seals the data key of an account. */
export const closeDataKey = (seal: Seal, key: string, account: string): string =>
  seal.close(key, toDataKeyPlace(account));

/** Errors: as {@link Seal.open}. */
export const openDataKey = (seal: Seal, stored: string, account: string): string =>
  seal.open(stored, toDataKeyPlace(account));

/** Returns `undefined` if `value` is not a key. */
function readSealKey(value: unknown): Buffer | undefined {
  const bytes = typeof value === "string" ? Buffer.from(value, "base64") : value;
  return bytes instanceof Uint8Array && bytes.length === KEY_BYTES ? Buffer.from(bytes) : undefined;
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
