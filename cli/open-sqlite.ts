/** Opens a SQLite file with the driver that is installed. */

import { createRequire } from "node:module";
import { join } from "node:path";
import type { SqliteHandle } from "../storage/sqlite/index.js";
import { wrongUsage } from "./command.js";

type Constructor = new (path: string) => SqliteHandle;

/** Drivers with one interface, for versions of Node that have no SQLite. */
const PACKAGES = ["better-sqlite3", "libsql"];

function findConstructor(): Constructor | undefined {
  const sqlite = process.getBuiltinModule?.("node:sqlite") as
    | { readonly DatabaseSync: Constructor }
    | undefined;
  if (sqlite !== undefined) return sqlite.DatabaseSync;
  // The folder in which the command runs, then the one in which Postbell is installed.
  for (const base of [join(process.cwd(), "package.json"), import.meta.url]) {
    const require = createRequire(base);
    for (const name of PACKAGES) {
      try {
        return require(name) as Constructor;
      } catch {
        // Not installed there, or built for another version of Node.
      }
    }
  }
  return undefined;
}

/** Opens a file, which is created if it does not exist. @throws if there is no SQLite. */
export function openSqlite(file: string): SqliteHandle {
  const Database = findConstructor();
  if (Database === undefined) {
    throw wrongUsage(
      "This version of Node has no SQLite. Use Node 22.13 or newer, or install one beside your host: npm install libsql",
    );
  }
  return new Database(file);
}
