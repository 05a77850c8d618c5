/** Errors of the SQLite storage: every failure of a driver becomes a `PostbellError`. */

import { isPostbellError, PostbellError } from "../../src/core/errors.js";
import { isClosed, type SqliteHandle } from "./handle.js";

/** The primary result codes of SQLite that have a separate error here. */
const RESULTS: Readonly<Record<number, string>> = {
  5: "SQLITE_BUSY",
  6: "SQLITE_LOCKED",
  8: "SQLITE_READONLY",
  10: "SQLITE_IOERR",
  11: "SQLITE_CORRUPT",
  13: "SQLITE_FULL",
  14: "SQLITE_CANTOPEN",
  26: "SQLITE_NOTADB",
};

/** Returns the result code of SQLite in an error of any driver; `undefined` for other errors. */
export function getResultCode(error: unknown): string | undefined {
  if (typeof error !== "object" || error === null) return undefined;
  const { code, errcode } = error as { code?: unknown; errcode?: unknown };
  // The low byte is the primary code, without its details.
  if (typeof errcode === "number") return RESULTS[errcode & 0xff] ?? "SQLITE_ERROR";
  if (typeof code !== "string" || !code.startsWith("SQLITE_")) return undefined;
  return Object.values(RESULTS).find((result) => code === result || code.startsWith(`${result}_`)) ?? code;
}

/** True if another process holds the lock that a transaction needs. */
export const isBusy = (error: unknown): boolean =>
  ["SQLITE_BUSY", "SQLITE_LOCKED"].includes(getResultCode(error) ?? "");

const DAMAGED =
  "The SQLite file is damaged or is no database; nothing was changed. Stop all processes that use it, keep a copy, and restore a backup.";

/** Results that last until somebody changes the file, its folder or its permissions. */
const PERMANENT = new Set(["SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_CORRUPT", "SQLITE_NOTADB"]);

const MESSAGES: Readonly<Record<string, string>> = {
  SQLITE_BUSY:
    "Another process has held the lock of the SQLite file for too long; nothing was changed. Try again later.",
  SQLITE_LOCKED:
    "The SQLite file is locked by another connection of this process; nothing was changed. Try again later.",
  SQLITE_READONLY:
    "The SQLite file or its folder is read-only; nothing was changed. Let this process write to both.",
  SQLITE_CANTOPEN: "The SQLite file cannot be opened. Create its folder, and let this process write to it.",
  SQLITE_CORRUPT: DAMAGED,
  SQLITE_NOTADB: DAMAGED,
};

const toUnavailable = (code: string, cause: unknown): PostbellError =>
  new PostbellError(
    "storage_unavailable",
    MESSAGES[code] ?? `SQLite failed (${code}); nothing was changed. Try again later.`,
    { effect: "none", reason: code, isPermanent: PERMANENT.has(code), cause },
  );

/** Creates the error of a file that cannot be created or opened. */
export const cannotOpen = (cause: unknown): PostbellError => toUnavailable("SQLITE_CANTOPEN", cause);

/** Creates the error of a state that lasts until the process is stopped and the files repaired. */
const unusable = (reason: string, message: string, effect: "none" | "unknown"): PostbellError =>
  new PostbellError("storage_unavailable", message, {
    effect,
    reason,
    isPermanent: true,
    isOutage: true,
  });

/** Creates the error of a file that exists no longer, or is another one now. */
export const fileReplaced = (suffix: "" | "-wal" | "-shm", effect: "none" | "unknown"): PostbellError =>
  suffix === ""
    ? unusable(
        "FILE_REPLACED",
        `The SQLite file was deleted, moved or replaced while it is in use; ${toEffect(effect)}. Stop all processes that use it, put the file or a backup in place, and start them again.`,
        effect,
      )
    : unusable(
        "LOG_REPLACED",
        `The file that SQLite keeps next to its own as ${suffix} was deleted or replaced while it is in use; ${toEffect(effect)}. Another build of SQLite in this process may have done so: use one driver for all connections, with the option driver. Restart all processes that use the file.`,
        effect,
      );

const toEffect = (effect: "none" | "unknown"): string =>
  effect === "none" ? "nothing was changed" : "the change may be lost";

/** Creates the error of a file that two builds of SQLite in one process have opened. */
export const otherBuild = (): PostbellError =>
  unusable(
    "OTHER_BUILD",
    "Another build of SQLite in this process has opened the file; nothing was changed. The locks of two builds do not exclude each other, so both lose data. Use one driver for all connections to the file: sqliteStorage({ file, driver }).",
    "none",
  );

/** True for the two errors above, which `check` reports. */
export const isChangedFile = (error: unknown): error is PostbellError =>
  isPostbellError(error, "storage_unavailable") &&
  ["FILE_REPLACED", "LOG_REPLACED", "OTHER_BUILD"].includes(error.reason ?? "");

/** Creates the error of a file that the option `mustExist` asks for. */
export const fileMissing = (): PostbellError =>
  unusable(
    "FILE_MISSING",
    "The SQLite file is missing or empty, and mustExist is true; nothing was created. Put the file or a backup in place.",
    "none",
  );

/** Converts an error of a driver whose transaction was rolled back. */
export function toSqliteError(error: unknown): unknown {
  if (isPostbellError(error)) return error;
  const code = getResultCode(error);
  if (code === undefined) return error;
  if (code === "SQLITE_FULL") {
    return new PostbellError(
      "storage_full",
      "The disk or the SQLite file is full; nothing was stored. Make room, or raise max_page_count.",
      { cause: error },
    );
  }
  return toUnavailable(code, error);
}

/** Errors: `storage_unavailable` if the host has closed the database that the storage uses. */
export function requireOpen(handle: SqliteHandle): void {
  if (!isClosed(handle)) return;
  throw new PostbellError(
    "storage_unavailable",
    "The database of sqliteStorage is closed; nothing was changed. Call storage.close() before you close it.",
    { effect: "none", isPermanent: true, isOutage: false },
  );
}
