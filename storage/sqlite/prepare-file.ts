/** Prepares an open SQLite file: its settings, and the tables of Postbell in it. */

import { PostbellError } from "../../src/core/errors.js";
import { describeTables, LATEST_LAYOUT } from "../sql/layout.js";
import { isKeyedByNumber, type SchemaDialect } from "../sql/table.js";
import { fileMissing } from "./errors.js";
import { FileWatch } from "./file-watch.js";
import { query, returnsPlainRows, type SqliteHandle } from "./handle.js";

/**
 * WAL lets readers and one writer work at the same time. The storage waits for locks itself,
 * without blocking the event loop.
 * A log that a long reader has made larger than 16 MiB is cut when SQLite begins it again; it moves
 * changes to the file at 4 MiB.
 */
const SETTINGS = `PRAGMA busy_timeout = 0; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
  PRAGMA journal_size_limit = ${16 * 1_048_576};`;

/** From here on, the storage waits for the disk itself, without blocking the event loop. */
const NO_BLOCKING = "PRAGMA synchronous = NORMAL;";

/** Ends a transaction that has failed. */
export function rollBack(handle: SqliteHandle): void {
  try {
    handle.exec("ROLLBACK");
  } catch {
    // SQLite has ended the transaction itself: there was no room, or the disk has failed.
  }
}

/** Returns the path of the file; `undefined` for a database that is in no file. */
export function findPath(handle: SqliteHandle): string | undefined {
  const files = query<{ name: string; file: string }>(handle, "PRAGMA database_list");
  return files.find(({ name }) => name === "main")?.file || undefined;
}

/** Reads the version of the tables: 0 if there are no tables yet. */
function readVersion(handle: SqliteHandle): number {
  const tables = query(handle, `SELECT name FROM sqlite_master WHERE name = '${toTableName("layout")}'`);
  if (tables.length === 0) return 0;
  const [row] = query<{ version: number | null }>(
    handle,
    fillTableNames("SELECT max(version) AS version FROM {layout}"),
  );
  const version = row?.version ?? 0;
  if (version > LATEST_LAYOUT) {
    throw new PostbellError(
      "invalid_option",
      `sqliteStorage: the file has layout ${version}, and this version of Postbell knows layouts up to ${LATEST_LAYOUT}. Use the newer version.`,
      { field: "file" },
    );
  }
  return version;
}

/** Creates the tables. Returns false if another process has just done so. */
function createTables(handle: SqliteHandle): boolean {
  handle.exec("BEGIN IMMEDIATE");
  try {
    const isNew = readVersion(handle) === 0;
    if (isNew) {
      handle.exec(fillTableNames("CREATE TABLE {layout} (version INTEGER NOT NULL)"));
      for (const statement of describeTables(sqliteSchema)) handle.exec(statement);
      handle.exec(fillTableNames(`INSERT INTO {layout} (version) VALUES (${LATEST_LAYOUT})`));
    }
    handle.exec("COMMIT");
    return isNew;
  } catch (error) {
    rollBack(handle);
    throw error;
  }
}

export interface PreparedFile {
  /** True if there were no tables. */
  isNew: boolean;
  /** True if there is a log next to the file, which has to be synced. */
  hasLog: boolean;
  /** `undefined` without a file. */
  watch: FileWatch | undefined;
}

/**
 * Creates the tables if they are missing. Throws if another process holds the
 * lock, if `FileWatch` finds fault with the file at `path`, and with `mustExist` if there are no
 * tables.
 */
export function prepareFile(
  handle: SqliteHandle,
  { path, mustExist }: { path: string | undefined; mustExist: boolean },
): PreparedFile {
  handle.exec(SETTINGS);
  if (!returnsPlainRows(handle)) {
    throw new PostbellError(
      "invalid_option",
      "sqliteStorage: database must return rows as objects and integers as numbers, and its driver does not. Open it without settings that change rows.",
      { field: "database" },
    );
  }
  const version = readVersion(handle);
  if (version === 0 && mustExist) throw fileMissing();
  // After the first read, which opens all files, and before the first write.
  const watch = path === undefined ? undefined : new FileWatch(handle, path);
  watch?.requireOneBuild();
  // Tables that exist need no lock, which a transaction of the host may hold right now.
  const isNew = version === 0 && createTables(handle);
  const [mode] = query<{ journal_mode: string }>(handle, "PRAGMA journal_mode");
  const hasLog = mode?.journal_mode === "wal" && path !== undefined;
  if (hasLog) handle.exec(NO_BLOCKING);
  return { isNew, hasLog, watch };
}

/** A file may hold tables of the host too. */
const PREFIX = "postbell_";

export const toTableName = (name: string): string => PREFIX + name;

/** Replaces `{name}` by the name of the table. */
export const fillTableNames = (text: string): string =>
  text.replace(/\{([a-z_]+)\}/g, (_, name: string) => toTableName(name));

const sqliteSchema: SchemaDialect = {
  types: {
    position: "INTEGER PRIMARY KEY AUTOINCREMENT",
    int: "INTEGER NOT NULL",
    "int?": "INTEGER",
    text: "TEXT NOT NULL",
    "text?": "TEXT",
  },
  // A row of a table without rowid that is longer than a quarter of a page is read in two parts.
  suffix: (table) => (table.primaryKey === undefined || isKeyedByNumber(table) ? "" : " WITHOUT ROWID"),
  name: toTableName,
};
