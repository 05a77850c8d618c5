/** `postbell backup`: copies the file of a storage on SQLite while processes use it. */

import { access, rename, rm, stat } from "node:fs/promises";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import type { SqliteHandle } from "../storage/sqlite/handle.js";
import { openFile } from "../storage/sqlite/open.js";
import { defineCommand, EXIT, printable, wrongUsage } from "./command.js";

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );

/** Opens a file with the SQLite of Node, or with a driver that the current folder has installed. */
async function openDatabase(file: string): Promise<SqliteHandle> {
  if (process.getBuiltinModule?.("node:sqlite") !== undefined) return openFile(file);
  const require = createRequire(resolve("package.json"));
  for (const name of ["better-sqlite3", "libsql"]) {
    try {
      const Database = require(name) as new (path: string) => SqliteHandle;
      return new Database(file);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code !== "MODULE_NOT_FOUND") throw error;
    }
  }
  throw wrongUsage(
    "This version of Node has no SQLite: use Node 22.13 or newer, or install better-sqlite3 or libsql here.",
  );
}

/** Copies one state of the database, and checks the copy. */
async function copy(from: string, to: string): Promise<void> {
  const source = await openDatabase(from);
  try {
    source.exec("PRAGMA busy_timeout = 10000");
    source.prepare("VACUUM INTO ?").run(to);
  } finally {
    source.close();
  }
  const copied = await openDatabase(to);
  try {
    const [row] = copied.prepare("PRAGMA quick_check(1)").all() as Record<string, unknown>[];
    const [found] = Object.values(row ?? {});
    if (found !== "ok")
      throw new Error(`The copy is damaged, and so is ${printable(from)}: ${String(found)}.`);
  } finally {
    copied.close();
  }
}

export const backup = defineCommand({
  usage: "backup FILE COPY [options]",
  summary: "copy the SQLite file of a storage while processes use it",
  details: `  --json              print the path and size of COPY as JSON

COPY is one state of the file, complete by itself. It must not exist yet, and only its owner should read it:
it contains what the file contains.`,
  options: { json: { type: "boolean", default: false } },
  read({ json }, operands) {
    const [file, to, ...others] = operands;
    if (file === undefined || to === undefined || others.length > 0)
      throw new Error("backup takes two paths: the file, and the copy to write.");
    return { file, to, json };
  },
  async run({ file, to, json }, { stdout }) {
    if (!(await exists(file))) throw wrongUsage(`There is no file ${printable(file)}.`);
    if (await exists(to)) throw wrongUsage(`${printable(to)} exists already; nothing was written.`);
    const part = `${to}.part`;
    await rm(part, { force: true });
    try {
      await copy(file, part);
      await rename(part, to);
    } catch (error) {
      await rm(part, { force: true });
      throw error;
    }
    const { size } = await stat(to);
    stdout.write(json ? `${JSON.stringify({ copy: to, bytes: size })}\n` : `${to}: ${size} bytes.\n`);
    return EXIT.done;
  },
});
