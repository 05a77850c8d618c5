/** `postbell backup`: copies a SQLite file while processes use it. */

import { existsSync, lstatSync } from "node:fs";
import { chmod, open, rename, rm, stat } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import type { SqliteHandle } from "../../storage/sqlite/index.js";
import { importPackage, openFile } from "../../storage/sqlite/open-file.js";
import { defineCommand, EXIT, printable } from "./command.js";

/** How long the copy waits for a lock that another process holds. */
const BUSY_MS = 10_000;

/** SQLite reads the log of a deleted database into a new one of that name. */
const SIDE_FILES = ["", "-wal", "-shm", "-journal"];

export const backUpSqlite = defineCommand({
  usage: "backup FILE TO [options]",
  summary: "copy the file of sqliteStorage(), also while processes use it",
  details: `Writes the state of one moment to TO, without what the file no longer uses. Other processes may read and
write FILE meanwhile. Only the owner may read TO, because it contains secrets. TO must not exist.
FILE must not be a symbolic link.

  --json              print the path and size of TO as JSON`,
  options: { json: { type: "boolean", default: false } },
  read({ json }, [file, to, ...more]) {
    if (!file) throw new Error("The file to copy is missing.");
    if (!to) throw new Error("The file to write is missing: give it after the file to copy.");
    if (more.length > 0) throw new Error(`There is an unexpected argument: '${printable(more[0] ?? "")}'.`);
    return { file, to, json };
  },
  async run({ file, to, json }, { stdout }) {
    // Opening it would create it.
    if (!existsSync(file)) throw new Error(`There is no file ${printable(file)}.`);
    const obstacle = listFiles(to).find((path) => lstatSync(path, { throwIfNoEntry: false }) !== undefined);
    if (obstacle !== undefined) {
      throw new Error(`${printable(obstacle)} exists. Remove it, or give another file to write.`);
    }
    await writeCopy(file, to);
    const { size } = await stat(to);
    stdout.write(
      json ? `${JSON.stringify({ output: to, bytes: size })}\n` : `${printable(to)}: ${size} bytes.\n`,
    );
    return EXIT.done;
  },
});

const listFiles = (path: string): string[] => SIDE_FILES.map((suffix) => path + suffix);

/** Loads a driver from where Postbell is installed, or from the folder that the command runs in. */
const loadDriver = (name: string): Promise<unknown> =>
  importPackage(name).catch(() => createRequire(join(process.cwd(), "package.json"))(name));

/** The copy has its name only when it is complete and on the disk. */
async function writeCopy(file: string, to: string): Promise<void> {
  const part = `${to}.part`;
  for (const path of listFiles(part)) await rm(path, { force: true });
  // SQLite writes into an empty file, which keeps its mode. A new one would be readable by all.
  await (await open(part, "wx", 0o600)).close();
  await chmod(part, 0o600);
  try {
    const database = await openFile(file, { load: loadDriver });
    try {
      copyInto(database, part);
    } finally {
      database.close();
    }
    await sync(part);
    await rename(part, to);
    await sync(dirname(to));
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
}

function copyInto(database: SqliteHandle, part: string): void {
  database.exec(`PRAGMA busy_timeout = ${BUSY_MS}`);
  const tables = database.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").all();
  if (tables.length === 0) throw new Error("The file to copy has no tables.");
  database.prepare("VACUUM INTO ?").run(part);
}

async function sync(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
