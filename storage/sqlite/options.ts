/** Every option of `sqliteStorage`: its type for hosts, and the table of defaults and ranges. */

import { flag, value, wholeNumber } from "../../src/core/options.js";
import { sealKeysOption } from "../seal.js";
import { isClosed, type SqliteHandle } from "./handle.js";

/** A class of databases: `Database` of better-sqlite3 or libsql, or `DatabaseSync`. */
export type SqliteDriver = new (path: string) => SqliteHandle;

/** Options of {@link sqliteStorage}: `file` or `database`, not both. */
export interface SqliteStorageOptions {
  /**
   * Created with mode 0600 if it does not exist, and opened with `driver`. A symbolic link is
   * refused. Either this or `database`.
   */
  file?: string | undefined;
  /**
   * The class that opens `file`: `Database` of better-sqlite3 or libsql, or `DatabaseSync` of
   * `node:sqlite`. It must be the one that the host opens the same file with. Default: the first of
   * `node:sqlite` (Node 22.13 or newer), `libsql` and `better-sqlite3`.
   */
  driver?: SqliteDriver | undefined;
  /**
   * True refuses a file that is missing or empty with `storage_unavailable`, instead of creating
   * it. Set it once the file was created, so that a lost file or volume is noticed. Default false.
   */
  mustExist?: boolean | undefined;
  /**
   * Instead of `file`; the storage has it for itself and never closes it. It sets how the file is
   * written, and keeps transactions open while others wait.
   */
  database?: SqliteHandle | undefined;
  /**
   * Keys of 32 bytes, or their base64: the first encrypts the secrets of webhooks and the data keys
   * of `sealEvents`, all decrypt them; without keys, secrets are stored as plain text.
   */
  sealKeys?: readonly (Uint8Array | string)[] | undefined;
  limits?:
    | {
        /** Pending deliveries of one account. Default 100 000. */
        pendingPerAccount?: number | undefined;
        /**
         * Changes of content that a process can catch up with; one that missed more loads all
         * content again. Default 20 000.
         */
        contentChanges?: number | undefined;
      }
    | undefined;
}

const isHandle = (option: unknown): boolean =>
  typeof option === "object" &&
  option !== null &&
  ["prepare", "exec", "close"].every(
    (method) => typeof (option as Record<string, unknown>)[method] === "function",
  );

export const sqliteStorageOptions = {
  file: value<string | undefined>(
    "the path of a file",
    // A path with a lone surrogate would name the same file as others.
    (option) => typeof option === "string" && option !== "" && !/[\0\p{Surrogate}]/u.test(option),
    undefined,
    "path",
  ),
  driver: value<SqliteDriver | undefined>(
    "a class of databases",
    (option) => typeof option === "function" && isHandle(option.prototype),
    undefined,
  ),
  mustExist: flag(false),
  database: value<SqliteHandle | undefined>(
    "an open database of better-sqlite3, libsql or node:sqlite",
    (option) => isHandle(option) && !isClosed(option as object),
    undefined,
  ),
  sealKeys: sealKeysOption,
  limits: {
    pendingPerAccount: wholeNumber("count", 100_000, { min: 1 }),
    contentChanges: wholeNumber("count", 20_000, { min: 100 }),
  },
};
