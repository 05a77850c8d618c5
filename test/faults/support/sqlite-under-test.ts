/** SQLite as a storage under test: each address is a file of its own. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type SqliteStorage, sqliteStorage } from "../../../storage/sqlite/index.js";
import { openDatabase } from "../../support/sqlite.js";
import { inspectSql, type SqlConnection } from "./sql-inspector.js";
import type { StorageAddress, StorageUnderTest } from "./storage-under-test.js";

/** Time that a statement of a test waits for the lock of a process. */
const BUSY_MS = 20_000;

const PREFIX = "postbell_";

/** Returns the file of an address, which must be one on SQLite. */
export function toFile(address: StorageAddress): string {
  if (address.kind !== "sqlite") throw new Error(`${address.kind} is not SQLite.`);
  return address.file;
}

/** Opens a storage that closes its file, on every version of Node. */
export function openSqlite(file: string, contentChanges?: number): SqliteStorage {
  const database = openDatabase(file);
  const storage = sqliteStorage({ database, limits: { contentChanges } });
  let isOpen = true;
  return {
    ...storage,
    async close() {
      await storage.close();
      if (isOpen) database.close();
      isOpen = false;
    },
  };
}

export function connectSqlite(address: StorageAddress): SqlConnection {
  const database = openDatabase(toFile(address));
  database.exec(`PRAGMA busy_timeout = ${BUSY_MS}`);
  return {
    all: async (text) => database.prepare(text.replace(/\{(\w+)\}/g, `${PREFIX}$1`)).all() as never,
    async listTables() {
      const rows = database.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").all();
      return (rows as { name: string }[])
        .filter(({ name }) => name.startsWith(PREFIX))
        .map(({ name }) => name.slice(PREFIX.length));
    },
    close: async () => void database.close(),
  };
}

export async function startSqliteUnderTest(): Promise<StorageUnderTest> {
  const dir = mkdtempSync(join(tmpdir(), "postbell-sqlite-"));
  let files = 0;
  return {
    kind: "sqlite",
    server: undefined,
    fresh: async () => ({ kind: "sqlite", file: join(dir, `${++files}.db`) }),
    open: (address, { contentChanges } = {}) => openSqlite(toFile(address), contentChanges),
    inspect: (address) => inspectSql(connectSqlite(address)),
    through() {
      throw new Error("No server, no proxy.");
    },
    stop: async () => rmSync(dir, { recursive: true, force: true }),
  };
}
