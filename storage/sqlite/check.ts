/** `storage.check()`: reports on a SQLite file. */

import type { SqliteHandle } from "./handle.js";

/** The result of `check`. `ok` is true if there is no warning. */
export interface SqliteReport {
  readonly ok: boolean;
  /** Sentences that say what is wrong and what to change. */
  readonly warnings: readonly string[];
  /** The version of SQLite: `3.51.0`. */
  readonly version: string;
  /** The size of the file in bytes, without the log of changes beside it. */
  readonly bytes: number;
}

/** The most damages that are named. */
const MOST_NAMED = 5;

const read = (handle: SqliteHandle, text: string): readonly Record<string, unknown>[] =>
  handle.prepare(text).all() as Record<string, unknown>[];

const readOne = (handle: SqliteHandle, text: string): unknown =>
  Object.values(read(handle, text)[0] ?? {})[0];

function listWarnings(handle: SqliteHandle): readonly string[] {
  const damages = read(handle, `PRAGMA quick_check(${MOST_NAMED})`)
    .map((row) => String(Object.values(row)[0]))
    .filter((text) => text !== "ok")
    .map(
      (text) =>
        `The file is damaged (${text}). Stop all processes that use it, keep a copy, and restore a backup.`,
    );
  const mode = String(readOne(handle, "PRAGMA journal_mode"));
  const level = Number(readOne(handle, "PRAGMA synchronous"));
  return [
    ...damages,
    ...(mode === "wal"
      ? []
      : [
          `The file is in journal mode ${mode}, not wal: readers and writers wait for each other. Put it on a local disk.`,
        ]),
    ...(level >= 1
      ? []
      : ["synchronous is OFF: a power cut may destroy the file. Do not change it on this database."]),
  ];
}

export function checkFile(handle: SqliteHandle): SqliteReport {
  const warnings = listWarnings(handle);
  return {
    ok: warnings.length === 0,
    warnings,
    version: String(readOne(handle, "SELECT sqlite_version()")),
    bytes: Number(readOne(handle, "PRAGMA page_count")) * Number(readOne(handle, "PRAGMA page_size")),
  };
}
