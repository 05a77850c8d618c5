/**
 * `postbell/sqlite`: a storage in one file, durable and without a server, for the processes of one
 * machine.
 *
 * @module postbell/sqlite
 */

import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import type { ContentStorage } from "../../src/content/store.js";
import { type Clock, systemClock } from "../../src/core/clock.js";
import { PostbellError } from "../../src/core/errors.js";
import type { Logger } from "../../src/core/logger.js";
import { readOptions } from "../../src/core/options.js";
import type { Storage } from "../../src/webhooks/store.js";
import { createSeal, readSealKeys } from "../seal.js";
import { createClockTime, type ServerTime } from "../server-time.js";
import { createSqlContentStore } from "../sql/content-store.js";
import { createSqlWebhookStore } from "../sql/webhook-store.js";
import { createWatchers } from "../watchers.js";
import { createSqliteDatabase } from "./database.js";
import { isChangedFile, requireOpen } from "./errors.js";
import type { FileWatch } from "./file-watch.js";
import { query, type SqliteHandle } from "./handle.js";
import { createLogSync, emptyLog, type LogSync } from "./log-sync.js";
import { openFile } from "./open-file.js";
import { type SqliteStorageOptions, sqliteStorageOptions } from "./options.js";
import { findPath, prepareFile } from "./prepare-file.js";

export type { SqliteHandle, SqliteStatement } from "./handle.js";
export type { SqliteDriver, SqliteStorageOptions } from "./options.js";

export interface SqliteStorage extends Storage, ContentStorage, AsyncDisposable {
  /**
   * Reports what is damaged and what to change. A file of at most `maxBytes` is read, which takes
   * about a second for each gigabyte, in which this process does nothing else; of a larger one,
   * only the settings and the files next to it are looked at. Default 64 MiB: before a larger file
   * is used again after an accident, pass `Number.POSITIVE_INFINITY`. Errors:
   * `storage_unavailable`.
   */
  check(options?: { maxBytes?: number | undefined }): Promise<SqliteReport>;
}

/** The most bytes that `check` reads by default: less than a tenth of a second, once in memory. */
const MAX_CHECKED_BYTES = 64 * 1_048_576;

/** How long the work of another process may wait: SQLite does not tell who else has written. */
const MAX_SLEEP_MS = 500;

type Source = Pick<SqliteStorageOptions, "file" | "database" | "driver" | "mustExist">;

function readSource({ file, database, driver, mustExist }: Source): () => Promise<SqliteHandle> {
  const refuse = (field: string, message: string): PostbellError =>
    new PostbellError("invalid_option", `sqliteStorage: ${message}`, { field });
  if ((file === undefined) === (database === undefined)) {
    throw refuse("file", `give either file or database (got ${file === undefined ? "neither" : "both"}).`);
  }
  if (database !== undefined && driver !== undefined) {
    throw refuse(
      "driver",
      "driver opens the file of the option file, which is missing: pass file, or leave driver out.",
    );
  }
  return async () => database ?? (await openFile(file ?? "", { driver, mustExist }));
}

/** The end of the name of a file that is kept next to the file of the database. */
const MARK = "-mark";

/** Creates the mark of a file, which outlives it. Without it, a lost file is not reported. */
const writeMark = (path: string): Promise<void> =>
  writeFile(
    path + MARK,
    "Postbell keeps webhooks in the file next to this one, and reports if that file is lost. Remove both, or none.\n",
    { flag: "wx", mode: 0o600 },
  ).catch(() => {});

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
    database: hostDatabase,
    driver,
    mustExist,
    sealKeys,
    limits,
  } = readOptions("sqliteStorage", sqliteStorageOptions, options);
  const source = readSource({ file, database: hostDatabase, driver, mustExist });
  const seal = createSeal(readSealKeys(sealKeys));
  const watchers = createWatchers();
  let clock: Clock = systemClock;
  let time: ServerTime | undefined;
  let logger: Logger | undefined;
  let handle: SqliteHandle | undefined;
  let log: LogSync | undefined;
  let watch: FileWatch | undefined;
  /** True if the tables were created again, until the logger has it. */
  let isReset = false;
  let closing: Promise<void> | undefined;
  const database = createSqliteDatabase({
    async open() {
      handle ??= await source();
      requireOpen(handle);
      const path = file === undefined || file === ":memory:" ? findPath(handle) : resolve(file);
      // Before there are tables: another process writes the mark when there are.
      const isMarked = path !== undefined && existsSync(path + MARK);
      const prepared = prepareFile(handle, { path, mustExist });
      watch = prepared.watch;
      if (path !== undefined && !isMarked) await writeMark(path);
      isReset = prepared.isNew && isMarked;
      reportReset();
      log = createLogSync(prepared.hasLog ? path : undefined);
      return handle;
    },
    async sync() {
      await log?.wait();
      watch?.requireSame("unknown");
    },
    watch: () => watch,
    getClock: () => clock,
    closed: () =>
      new PostbellError("storage_unavailable", "The storage is closed.", {
        effect: "none",
        isPermanent: true,
        isOutage: false,
      }),
  });
  function reportReset(): void {
    if (!isReset || logger === undefined) return;
    isReset = false;
    logger.error(
      { code: "store_reset" },
      "the SQLite file was deleted or emptied: its earlier data is gone. Restore a backup, or register the webhooks again",
    );
  }
  /** All services share the time, which the clock of the first one counts. */
  const getTime = (serviceClock: Clock, ownLogger: Logger): ServerTime => {
    logger ??= ownLogger;
    reportReset();
    if (time === undefined) {
      clock = serviceClock;
      time = createClockTime(serviceClock);
    }
    return time;
  };

  const check = async (maxBytes = MAX_CHECKED_BYTES): Promise<SqliteReport> => {
    try {
      return await database.exclusive((open) => {
        watch?.requireSame("none");
        watch?.requireOneBuild();
        return checkFile(open, { maxBytes, logBytes: watch?.logBytes() ?? 0 });
      });
    } catch (error) {
      if (handle === undefined || !isChangedFile(error)) throw error;
      return describeFile(handle, [error.message]);
    }
  };

  const closeAll = async (): Promise<void> => {
    await database.close();
    await log?.close();
    if (file === undefined || handle === undefined) return;
    // SQLite would delete the log, and with it what the other build writes from now on.
    if (watch?.hasOtherBuild() === true) return;
    emptyLog(handle);
    handle.close();
  };

  return Object.freeze<SqliteStorage>({
    webhooks({ clock: serviceClock, logger, perEndpoint, perSecond = null, retention }) {
      const { now } = getTime(serviceClock, logger);
      const { pendingPerAccount } = limits;
      return createSqlWebhookStore(
        {
          database,
          seal,
          clock: serviceClock,
          logger,
          perEndpoint,
          perSecond,
          retention,
          pendingPerAccount,
          notifyWorkers: watchers.notify,
        },
        { concurrency: 1, maxSleepMs: MAX_SLEEP_MS, now, watch: watchers.watch },
      );
    },
    content: ({ clock: serviceClock, logger }) =>
      createSqlContentStore({
        database,
        now: getTime(serviceClock, logger).now,
        changesKept: limits.contentChanges,
      }),
    check: ({ maxBytes } = {}) => check(maxBytes),
    close() {
      closing ??= closeAll();
      return closing;
    },
    [Symbol.asyncDispose]() {
      return this.close();
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
  /** False if the file was not searched for damages: it is larger than `maxBytes`, or replaced. */
  readonly isRead: boolean;
}

/** The most damages that are named. */
const MAX_NAMED = 5;

/** A log of this size takes seconds to move, and a disk that was planned for the file alone. */
const LARGE_LOG_BYTES = 64 * 1_048_576;

const readOne = (handle: SqliteHandle, text: string): unknown =>
  Object.values(query<object>(handle, text)[0] ?? {})[0];

const findDamages = (handle: SqliteHandle): string[] =>
  query<object>(handle, `PRAGMA quick_check(${MAX_NAMED})`)
    .map((row) => String(Object.values(row)[0]))
    .filter((text) => text !== "ok")
    .map(
      (text) =>
        `The file is damaged (${text}). Stop all processes that use it, keep a copy, and restore a backup.`,
    );

function findWrongSettings(handle: SqliteHandle, logBytes: number): string[] {
  const mode = String(readOne(handle, "PRAGMA journal_mode"));
  const level = Number(readOne(handle, "PRAGMA synchronous"));
  const warnings: string[] = [];
  if (mode !== "wal") {
    warnings.push(
      `The file is in journal mode ${mode}, not wal: readers and writers wait for each other. Put it on a local disk.`,
    );
  }
  if (level < 1) {
    warnings.push("synchronous is OFF: a power cut may destroy the file. Do not change it on this database.");
  }
  if (logBytes >= LARGE_LOG_BYTES) {
    warnings.push(
      `The log next to the file has ${Math.round(logBytes / 1_048_576)} MiB. A transaction that stays open keeps SQLite from moving it to the file: end transactions that only read, too.`,
    );
  }
  return warnings;
}

function describeFile(handle: SqliteHandle, warnings: string[], isRead = false): SqliteReport {
  return {
    ok: warnings.length === 0,
    warnings,
    version: String(readOne(handle, "SELECT sqlite_version()")),
    bytes: Number(readOne(handle, "PRAGMA page_count")) * Number(readOne(handle, "PRAGMA page_size")),
    isRead,
  };
}

function checkFile(
  handle: SqliteHandle,
  { maxBytes, logBytes }: { maxBytes: number; logBytes: number },
): SqliteReport {
  const settings = findWrongSettings(handle, logBytes);
  const { bytes } = describeFile(handle, []);
  if (bytes > maxBytes) return describeFile(handle, settings);
  return describeFile(handle, [...findDamages(handle), ...settings], true);
}
