/** Every option of `sqliteStorage`: its type for hosts, and the table of defaults and ranges. */

import { value, wholeNumber } from "../../src/core/options.js";
import { sealKeysOption } from "../seal.js";
import { isClosed, type SqliteHandle } from "./handle.js";

/** Options of {@link sqliteStorage}: `file` or `database`, not both. */
export interface SqliteStorageOptions {
  /**
   * The path of the file, which is opened at the first call: with `node:sqlite` if this Node has
   * it, else with the package `libsql` or `better-sqlite3`. It is created if it does not exist,
   * readable by its owner only. A symbolic link is refused. Either this or `database`.
   */
  readonly file?: string | undefined;
  /**
   * An open database of better-sqlite3, libsql or `node:sqlite`, which the storage has for itself:
   * it sets how the file is written, and keeps transactions open while others wait. The storage
   * never closes it.
   */
  readonly database?: SqliteHandle | undefined;
  /**
   * Keys of 32 bytes, as bytes or in base64. The first seals the secrets of webhooks, and all
   * unseal them. Without keys, secrets are stored as plain text.
   */
  readonly sealKeys?: readonly (Uint8Array | string)[] | undefined;
  readonly limits?:
    | {
        /** Pending deliveries of one account. Default 100 000. */
        readonly pendingPerAccount?: number | undefined;
        /**
         * Changes of content that a process can catch up with. A process that missed more loads the
         * content again. Default 20 000.
         */
        readonly contentChanges?: number | undefined;
      }
    | undefined;
}

const isHandle = (given: unknown): boolean =>
  typeof given === "object" &&
  given !== null &&
  ["prepare", "exec", "close"].every(
    (method) => typeof (given as Record<string, unknown>)[method] === "function",
  ) &&
  !isClosed(given);

export const sqliteStorageOptions = {
  file: value<string | undefined>(
    "the path of a file",
    // A path with a lone surrogate would name the same file as others.
    (given) => typeof given === "string" && given !== "" && !/[\0\p{Surrogate}]/u.test(given),
    undefined,
    "path",
  ),
  database: value<SqliteHandle | undefined>(
    "an open database of better-sqlite3, libsql or node:sqlite",
    isHandle,
    undefined,
  ),
  sealKeys: sealKeysOption,
  limits: {
    pendingPerAccount: wholeNumber("count", 100_000, { min: 1 }),
    contentChanges: wholeNumber("count", 20_000, { min: 100 }),
  },
};
