/** SQLite files of a test, and their databases: of Node where it has SQLite, else of libsql. */

import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SqliteHandle } from "../../storage/sqlite/index.js";

const require = createRequire(import.meta.url);

/** True if this Node has `node:sqlite`. */
export const hasNodeSqlite = process.getBuiltinModule?.("node:sqlite") !== undefined;

/** Opens a file with the driver of this machine. */
export function openDatabase(path: string): SqliteHandle {
  if (hasNodeSqlite) {
    const { DatabaseSync } = require("node:sqlite") as { DatabaseSync: new (path: string) => SqliteHandle };
    return new DatabaseSync(path);
  }
  const Database = require("libsql") as new (path: string) => SqliteHandle;
  return new Database(path);
}

/** Creates a folder of its own for a file that does not exist yet. */
export function createDatabaseFile(): { readonly path: string; readonly destroy: () => void } {
  const dir = mkdtempSync(join(tmpdir(), "postbell-sqlite-"));
  return {
    path: join(dir, "postbell.db"),
    destroy: () => rmSync(dir, { recursive: true, force: true }),
  };
}

/** Counts the statements that are run, and the rows that they return. */
export function countWork(database: SqliteHandle): {
  readonly handle: SqliteHandle;
  readonly work: () => number;
} {
  let count = 0;
  const handle: SqliteHandle = {
    exec: (text) => database.exec(text),
    close: () => database.close(),
    prepare(text) {
      const statement = database.prepare(text);
      return {
        all(...values) {
          const rows = statement.all(...values);
          count += 1 + rows.length;
          return rows;
        },
        run(...values) {
          const result = statement.run(...values);
          count += Math.max(1, Number(result.changes));
          return result;
        },
      };
    },
  };
  return { handle, work: () => count };
}
