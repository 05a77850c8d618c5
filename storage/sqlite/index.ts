/**
 * `postbell/sqlite`: a storage in one file, durable and without a server, for the processes of one
 * machine.
 *
 * @module postbell/sqlite
 */

import { type FileHandle, open } from "node:fs/promises";
import { dirname } from "node:path";
import type { ContentStorage } from "../../src/content/store.js";
import { type Clock, systemClock } from "../../src/core/clock.js";
import { PostbellError } from "../../src/core/errors.js";
import { readOptions } from "../../src/core/options.js";
import type { Storage } from "../../src/webhooks/store.js";
import { createSeal, readSealKeys } from "../seal.js";
import { createClockTime, type ServerTime } from "../server-time.js";
import { createSqlContentStore } from "../sql/content-store.js";
import { createSqlWebhookStore } from "../sql/webhook-store.js";
import { createWatchers } from "../watchers.js";
import { createSqliteDatabase } from "./database.js";
import { requireOpen } from "./errors.js";
import type { SqliteHandle } from "./handle.js";
import { openFile } from "./open-file.js";
import { type SqliteStorageOptions, sqliteStorageOptions } from "./options.js";
import { prepareFile } from "./prepare-file.js";

export type { SqliteHandle, SqliteStatement } from "./handle.js";
export type { SqliteStorageOptions } from "./options.js";

export interface SqliteStorage extends Storage, ContentStorage {
  /**
   * Reads the whole file, and reports what is damaged and what to change. Takes about a second for
   * each gigabyte, in which this process does nothing else. Errors: `storage_unavailable`.
   */
  check(): Promise<SqliteReport>;
}

/** How long the work of another process may wait: SQLite does not tell who else has written. */
const MAX_SLEEP_MS = 500;

/**
 * Moves what is in the log to the file. SQLite does so when the file is closed, but libsql keeps it
 * open until its statements are garbage.
 */
function emptyLog(handle: SqliteHandle): void {
  try {
    handle.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  } catch {
    // Another process uses the file, or the disk has failed. The log keeps everything.
  }
}

function readSource({
  file,
  database,
}: Pick<SqliteStorageOptions, "file" | "database">): () => Promise<SqliteHandle> {
  if (file !== undefined && database === undefined) return () => openFile(file);
  if (database !== undefined && file === undefined) return async () => database;
  throw new PostbellError(
    "invalid_option",
    `sqliteStorage: give either file or database (got ${file === undefined ? "neither" : "both"}).`,
    { field: "file" },
  );
}

/**
 * A storage in a SQLite file, for webhooks and content together. Several processes of one machine
 * may use the file at the same time; it must not be on a network drive.
 *
 * Guarantee: everything the contracts of webhook storage and content store require. What was
 * acknowledged survives a killed process and, with a disk that keeps its word, a power cut. What is
 * asked for in one turn of the event loop is one transaction, which waits for the disk once.
 *
 * `webhooks.emit(event, { transaction: database })` writes an event in a transaction that the host
 * has begun on another connection to the same file.
 *
 * It opens nothing before the first call. `close()` closes the file, and never the database of the
 * host.
 *
 * Errors: `invalid_option` for an unknown or unusable option. The first call also rejects with it
 * if there is no SQLite, if the path is that of a symbolic link, or if a newer version of Postbell
 * has written the file.
 *
 * @example
 * const storage = sqliteStorage({ file: "postbell.db" });
 * const webhooks = createWebhooks({ storage, access });
 */
export function sqliteStorage(options: SqliteStorageOptions): SqliteStorage {
  const {
    file,
    database: given,
    sealKeys,
    limits,
  } = readOptions("sqliteStorage", sqliteStorageOptions, options);
  const source = readSource({ file, database: given });
  const seal = createSeal(readSealKeys(sealKeys));
  const watchers = createWatchers();
  let clock: Clock = systemClock;
  let time: ServerTime | undefined;
  let handle: SqliteHandle | undefined;
  let log: LogSync | undefined;
  let closing: Promise<void> | undefined;
  const database = createSqliteDatabase({
    async open() {
      handle ??= await source();
      requireOpen(handle);
      log = createLogSync(prepareFile(handle));
      return handle;
    },
    sync: async () => log?.wait(),
    getClock: () => clock,
    closed: () =>
      new PostbellError("storage_unavailable", "The storage is closed.", {
        effect: "none",
        isPermanent: true,
        isOutage: false,
      }),
  });
  /** All services share the time, which the clock of the first one counts. */
  const getTime = (own: Clock): ServerTime => {
    if (time === undefined) {
      clock = own;
      time = createClockTime(own);
    }
    return time;
  };

  const closeAll = async (): Promise<void> => {
    await database.close();
    await log?.close();
    if (file === undefined || handle === undefined) return;
    emptyLog(handle);
    handle.close();
  };

  return Object.freeze<SqliteStorage>({
    webhooks({ clock: own, logger, perEndpoint, perSecond = null, retention }) {
      const { now } = getTime(own);
      const { pendingPerAccount } = limits;
      return createSqlWebhookStore(
        {
          ...{ database, seal, clock: own, logger, perEndpoint, perSecond, retention, pendingPerAccount },
          notifyWorkers: watchers.notify,
        },
        { concurrency: 1, maxSleepMs: MAX_SLEEP_MS, now, watch: watchers.watch },
      );
    },
    content: ({ clock: own }) =>
      createSqlContentStore({ database, now: getTime(own).now, changesKept: limits.contentChanges }),
    check: () => database.exclusive(checkFile),
    close() {
      closing ??= closeAll();
      return closing;
    },
  });
}

/** The result of `check`. `ok` is true if there is no warning. */
export interface SqliteReport {
  readonly ok: boolean;
  /** Sentences that say what is wrong and what to change. */
  readonly warnings: readonly string[];
  /** The version of SQLite: `3.51.0`. */
  readonly version: string;
  /** The size of the file in bytes, without the log of changes next to it. */
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

function checkFile(handle: SqliteHandle): SqliteReport {
  const warnings = listWarnings(handle);
  return {
    ok: warnings.length === 0,
    warnings,
    version: String(readOne(handle, "SELECT sqlite_version()")),
    bytes: Number(readOne(handle, "PRAGMA page_count")) * Number(readOne(handle, "PRAGMA page_size")),
  };
}

// Waits until the disk has what was committed, on a thread of its own. SQLite would wait for it
// inside of COMMIT, and the process would do nothing else meanwhile: milliseconds for each.
//
// Source: https://www.sqlite.org/wal.html. A commit is in the log, which is synced here as
// `synchronous = FULL` does it; `NORMAL` keeps the order of log and file at checkpoints.

interface LogSync {
  /** Resolves when everything that was committed before the call is on the disk. */
  wait(): Promise<void>;
  close(): Promise<void>;
}

const NO_SYNC: LogSync = { wait: async () => {}, close: async () => {} };

/** `path`: of the database file; `undefined` for one that is not on a disk, or syncs by itself. */
function createLogSync(path: string | undefined): LogSync {
  if (path === undefined) return NO_SYNC;
  let log: FileHandle | undefined;
  let running: Promise<void> | undefined;
  let next: Promise<void> | undefined;

  /** SQLite may have created the log just now: its name has to be on the disk too. */
  const openLog = async (): Promise<FileHandle> => {
    const opened = await open(`${path}-wal`, "r+");
    // Windows opens no folders, and needs none of this.
    const folder = await open(dirname(path), "r").catch(() => undefined);
    await folder?.sync().catch(() => {});
    await folder?.close();
    return opened;
  };
  const sync = async (): Promise<void> => {
    try {
      log ??= await openLog();
      await log.datasync();
    } catch (cause) {
      throw new PostbellError(
        "storage_unavailable",
        "The disk did not take the changes to the SQLite file; they may or may not survive a power cut. Check the disk.",
        { cause },
      );
    }
  };
  const start = (): Promise<void> => {
    const own = sync().finally(() => {
      if (running === own) running = undefined;
    });
    running = own;
    return own;
  };

  return {
    wait() {
      if (running === undefined) return start();
      // The one that runs may have begun before the commit. All who wait share the one after it.
      next ??= running
        .catch(() => {})
        .then(() => {
          next = undefined;
          return start();
        });
      return next;
    },
    async close() {
      await (next ?? running)?.catch(() => {});
      await log?.close();
      log = undefined;
    },
  };
}
