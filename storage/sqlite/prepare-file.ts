/** Prepares an open SQLite file: its settings, and the tables of Postbell in it. */

import { PostbellError } from "../../src/core/errors.js";
import { describeLayout, LATEST_LAYOUT } from "../sql/layout.js";
import { isKeyedByNumber, type SchemaDialect } from "../sql/table.js";
import type { SqliteHandle } from "./handle.js";

/**
 * WAL lets readers and one writer work at the same time. The storage waits for locks itself,
 * without blocking the event loop.
 */
const SETTINGS = "PRAGMA busy_timeout = 0; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;";

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

/** Returns the path of the file; `undefined` without a file, or without a log next to it. */
function findLoggedFile(handle: SqliteHandle): string | undefined {
  const [mode] = handle.prepare("PRAGMA journal_mode").all();
  const isLogged = (mode as { journal_mode: string }).journal_mode === "wal";
  const files = handle.prepare("PRAGMA database_list").all() as { name: string; file: string }[];
  const path = files.find(({ name }) => name === "main")?.file;
  return isLogged && path ? path : undefined;
}

/** Reads the version of the tables: 0 if there are no tables yet. */
function readVersion(handle: SqliteHandle): number {
  const tables = handle
    .prepare(`SELECT name FROM sqlite_master WHERE name = '${toTableName("layout")}'`)
    .all();
  if (tables.length === 0) return 0;
  const [row] = handle.prepare(fillTableNames("SELECT max(version) AS version FROM {layout}")).all();
  const version = Number((row as { version: number | null }).version ?? 0);
  if (version > LATEST_LAYOUT) {
    throw new PostbellError(
      "invalid_option",
      `sqliteStorage: the file has layout ${version}, and this version of Postbell knows layouts up to ${LATEST_LAYOUT}. Use the newer version.`,
      { field: "file" },
    );
  }
  return version;
}

function changeTables(handle: SqliteHandle): void {
  handle.exec("BEGIN IMMEDIATE");
  try {
    const version = readVersion(handle);
    handle.exec(fillTableNames("CREATE TABLE IF NOT EXISTS {layout} (version INTEGER NOT NULL)"));
    for (let next = version + 1; next <= LATEST_LAYOUT; next++) {
      for (const statement of describeLayout(next, sqliteSchema)) handle.exec(statement);
      handle.exec(fillTableNames(`INSERT INTO {layout} (version) VALUES (${next})`));
    }
    handle.exec("COMMIT");
  } catch (error) {
    rollBack(handle);
    throw error;
  }
}

/**
 * Creates the tables, or changes those of an older version. Returns the path of the file whose log
 * has to be synced; `undefined` if SQLite does so itself. Throws if another process holds the lock.
 */
export function prepareFile(handle: SqliteHandle): string | undefined {
  handle.exec(SETTINGS);
  // Tables that are up to date need no lock, which a transaction of the host may hold right now.
  if (readVersion(handle) < LATEST_LAYOUT) changeTables(handle);
  const path = findLoggedFile(handle);
  if (path !== undefined) handle.exec(NO_BLOCKING);
  return path;
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
