// Opens a SQLite file: with the SQLite of Node, or with libsql where Node has none.
import { createRequire } from "node:module";

export async function openDatabase(file) {
  const sqlite = process.getBuiltinModule?.("node:sqlite");
  if (sqlite) return new sqlite.DatabaseSync(file);
  try {
    const Database = createRequire(import.meta.url)("libsql");
    return new Database(file);
  } catch {
    throw new Error("This version of Node has no SQLite. Use Node 22.13 or newer, or: npm install libsql");
  }
}
