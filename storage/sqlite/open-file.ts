/**
 * Opens a SQLite file with the first driver that there is: that of Node, libsql, better-sqlite3. A
 * new file may be read by its owner only.
 */

import { existsSync } from "node:fs";
import { lstat, open } from "node:fs/promises";
import { resolve } from "node:path";
import { PostbellError } from "../../src/core/errors.js";
import { cannotOpen, fileMissing, getResultCode, toSqliteError } from "./errors.js";
import type { SqliteHandle } from "./handle.js";
import type { SqliteDriver } from "./options.js";

/** Packages with a SQLite, in the order in which they are tried. */
const PACKAGES = ["libsql", "better-sqlite3"] as const;

/** Loads a package. Rejects if it is not installed. */
export type LoadPackage = (name: string) => Promise<unknown>;

/**
 * Bundlers must not look for the packages: most hosts have one of them at most, and their native
 * parts cannot be bundled.
 */
export const importPackage: LoadPackage = (name) => import(/* webpackIgnore: true */ /* @vite-ignore */ name);

/** A package of CommonJS is its own default, unless a bundler has made a namespace of it. */
const toSqliteDriver = (loaded: unknown): SqliteDriver =>
  ((loaded as { default?: SqliteDriver }).default ?? loaded) as SqliteDriver;

const isMissing = (error: unknown): boolean =>
  ["ERR_MODULE_NOT_FOUND", "MODULE_NOT_FOUND"].includes((error as NodeJS.ErrnoException).code ?? "");

/** Errors: `invalid_option` if there is no driver. Names those that are installed and broken. */
async function findDriver(load: LoadPackage): Promise<SqliteDriver> {
  // Node 21 and 22.0 to 22.2 lack the function.
  const builtin = process.getBuiltinModule?.("node:sqlite") as { DatabaseSync: SqliteDriver } | undefined;
  if (builtin !== undefined) return builtin.DatabaseSync;
  const broken: string[] = [];
  let cause: unknown;
  for (const name of PACKAGES) {
    try {
      const Database = toSqliteDriver(await load(name));
      // better-sqlite3 loads its native part now, which another version of Node may have built.
      new Database(":memory:").close();
      return Database;
    } catch (error) {
      cause ??= error;
      if (isMissing(error)) continue;
      if (broken.length === 0) cause = error;
      broken.push(`${name} is installed, but cannot be loaded.`);
    }
  }
  throw new PostbellError(
    "invalid_option",
    [
      "A SQLite file needs a driver, and this version of Node has none.",
      ...broken,
      "Install one: npm install libsql. Or use Node 22.13 or newer.",
    ].join(" "),
    { field: "file", cause },
  );
}

/** The files that SQLite opens besides the file itself. */
const SUFFIXES = ["", "-wal", "-shm", "-journal"];

/**
 * Creates the file if it does not exist. SQLite gives its mode to the log, and would follow a link
 * to a place that somebody else has chosen.
 */
async function createFile(path: string): Promise<void> {
  try {
    await (await open(path, "wx", 0o600)).close();
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== "EEXIST") throw cannotOpen(cause);
  }
  for (const suffix of SUFFIXES) {
    const found = await lstat(path + suffix).catch(() => undefined);
    if (!found?.isSymbolicLink()) continue;
    throw new PostbellError(
      "invalid_option",
      `The SQLite file must not be a symbolic link, nor may the files that SQLite keeps next to it (${JSON.stringify(path + suffix)} is one). Give the path of the file itself.`,
      { field: "file" },
    );
  }
}

export interface OpenFileOptions {
  /** Default: the first driver that there is. */
  driver?: SqliteDriver | undefined;
  mustExist?: boolean | undefined;
  load?: LoadPackage | undefined;
}

/**
 * Opens a file, which is created for its owner if it does not exist. Errors: `invalid_option` if
 * there is no driver, or the path is that of a link; `storage_unavailable`.
 */
export async function openFile(
  file: string,
  { driver, mustExist = false, load = importPackage }: OpenFileOptions = {},
): Promise<SqliteHandle> {
  const Database = driver ?? (await findDriver(load));
  if (file === ":memory:") return new Database(file);
  // An absolute path: libsql takes some names for addresses of servers.
  const path = resolve(file);
  if (mustExist && !existsSync(path)) throw fileMissing();
  await createFile(path);
  try {
    return new Database(path);
  } catch (error) {
    // Not every driver gives a code.
    throw getResultCode(error) === undefined ? cannotOpen(error) : toSqliteError(error);
  }
}
