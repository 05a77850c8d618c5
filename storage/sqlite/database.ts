/**
 * Transactions on a SQLite file. The calls of one turn of the event loop share one transaction, so
 * they wait for the disk once.
 */

import type { Clock } from "../../src/core/clock.js";
import { PostbellError } from "../../src/core/errors.js";
import { retry } from "../../src/core/retry.js";
import type { SqlDatabase, SqlTransaction } from "../sql/database.js";
import { isBusy, requireOpen, toSqliteError } from "./errors.js";
import type { FileWatch } from "./file-watch.js";
import { isClosed, readBuild, returnsPlainRows, type SqliteHandle } from "./handle.js";
import { findPath, rollBack } from "./prepare-file.js";
import { createSqliteTransaction } from "./transaction.js";

/** A transaction that has run for so long is committed before further work is added to it. */
const MAX_MS = 10;

const READ = { isWrite: false, isDurable: false } as const;

interface Job {
  work: (transaction: SqlTransaction, handle: SqliteHandle) => Promise<unknown>;
  isWrite: boolean;
  /** True if its caller waits until the disk has what it has written. */
  isDurable: boolean;
  resolve: (result: never) => void;
  reject: (error: unknown) => void;
}

export interface SqliteDatabase extends SqlDatabase {
  /** Runs `work` while no transaction is running. */
  exclusive<T>(work: (handle: SqliteHandle) => T): Promise<T>;
  /** Resolves when no transaction is running. Later ones are rejected. */
  close(): Promise<void>;
}

export interface SqliteDatabaseOptions {
  /** Opens the file and creates the tables. Called first, and again after it failed. */
  open: () => Promise<SqliteHandle>;
  /** Resolves when the disk has everything that was committed. */
  sync: () => Promise<void>;
  /** Watches the file that was opened; `undefined` for a database that is in no file. */
  watch: () => FileWatch | undefined;
  getClock: () => Clock;
  closed: () => Error;
}

/** Resolves jobs that are committed. Meanwhile the next transaction may begin. */
function resolveAll(jobs: Job[], results: unknown[], sync: SqliteDatabaseOptions["sync"]): void {
  let synced: Promise<void> | undefined;
  for (const [index, result] of results.entries()) {
    const job = jobs[index];
    if (job === undefined) continue;
    const { isDurable, resolve, reject } = job;
    if (isDurable) {
      synced ??= sync();
      synced.then(() => resolve(result as never), reject);
    } else resolve(result as never);
  }
}

export function createSqliteDatabase({
  open,
  sync,
  watch,
  getClock,
  closed,
}: SqliteDatabaseOptions): SqliteDatabase {
  let queue: Job[] = [];
  let isRunning = false;
  let isClosed = false;
  /** Called when the queue is empty. */
  let onIdle = (): void => {};
  let handle: SqliteHandle | undefined;
  let transaction: SqlTransaction | undefined;
  const join = createJoin();

  const runOnce = async (jobs: Job[]): Promise<unknown[]> => {
    handle ??= await open();
    requireOpen(handle);
    transaction ??= createSqliteTransaction(handle);
    const clock = getClock();
    watch()?.inspect(clock.monotonic());
    handle.exec(jobs.some(({ isWrite }) => isWrite) ? "BEGIN IMMEDIATE" : "BEGIN");
    try {
      const results: unknown[] = [];
      const until = clock.monotonic() + MAX_MS;
      for (const { work } of jobs) {
        if (results.length > 0 && clock.monotonic() > until) break;
        results.push(await work(transaction, handle));
      }
      handle.exec("COMMIT");
      return results;
    } catch (error) {
      rollBack(handle);
      // If it was closed meanwhile, the driver has thrown an error.
      requireOpen(handle);
      throw error;
    }
  };

  /** Runs jobs in one transaction. Returns the results of those for which there was time. */
  const runTogether = (jobs: Job[]): Promise<unknown[]> => whenUnlocked(getClock(), () => runOnce(jobs));

  const runAlone = async (job: Job): Promise<void> => {
    try {
      resolveAll([job], await runTogether([job]), sync);
    } catch (error) {
      job.reject(toSqliteError(error));
    }
  };

  /**
   * Runs jobs together. If one of them fails, none has had an effect, and each is run alone. A lock
   * has kept all of them waiting for long enough.
   */
  const runJobs = async (jobs: Job[]): Promise<void> => {
    try {
      const results = await runTogether(jobs);
      queue = [...jobs.slice(results.length), ...queue];
      resolveAll(jobs, results, sync);
    } catch (error) {
      if (isBusy(error)) for (const { reject } of jobs) reject(toSqliteError(error));
      else for (const job of jobs) await runAlone(job);
    }
  };

  const runQueue = async (): Promise<void> => {
    isRunning = true;
    while (queue.length > 0) {
      // Calls of the same turn go with it.
      await new Promise((resolve) => setImmediate(resolve));
      const jobs = queue;
      queue = [];
      if (jobs.length === 1 && jobs[0]) await runAlone(jobs[0]);
      else await runJobs(jobs);
    }
    isRunning = false;
    onIdle();
  };

  const add = <T>(
    work: Job["work"],
    { isWrite, isDurable }: { isWrite: boolean; isDurable: boolean },
  ): Promise<T> => {
    if (isClosed) return Promise.reject(closed());
    return new Promise<T>((resolve, reject) => {
      queue.push({ work, isWrite, isDurable, resolve: resolve as Job["resolve"], reject });
      if (!isRunning) void runQueue();
    });
  };

  return {
    settlesDelivered: false,
    hasOneWriter: true,
    write: (work, { isDurable = true } = {}) => add(work, { isWrite: true, isDurable }),
    read: (work) => add(work, READ),
    exclusive: (work) => add(async (_, storageHandle) => work(storageHandle), READ),
    async join(connection, work) {
      if (isClosed) throw closed();
      const storageHandle = handle ?? (await add<SqliteHandle>(async (_, opened) => opened, READ));
      try {
        const joined = join(connection, storageHandle, watch());
        // Not `inspect`: the storage's database may have a transaction open.
        watch()?.requireSame("none");
        const result = await work(joined);
        // Statements of libsql go on after their database was closed, and change nothing.
        requireOpenConnection(connection);
        return result;
      } catch (error) {
        requireOpenConnection(connection);
        throw toSqliteError(error);
      }
    },
    async close() {
      isClosed = true;
      if (isRunning) {
        await new Promise<void>((resolve) => {
          onIdle = resolve;
        });
      }
    },
  };
}

/** How long a process waits for the lock of another one, and the longest pause in between. */
const BUSY_MS = 3_000;
const MAX_RETRY_MS = 50;

/** Repeats a call until no other connection holds the lock. */
function whenUnlocked<T>(clock: Clock, call: () => Promise<T>): Promise<T> {
  const until = clock.monotonic() + BUSY_MS;
  return retry(call, {
    clock,
    shouldRetry: (error) => isBusy(error) && clock.monotonic() < until,
    pauseMs: (count) => Math.min(2 ** count, MAX_RETRY_MS) * (0.5 + clock.random()),
  });
}

/** Tells if a transaction is open: better-sqlite3 and libsql, or `node:sqlite`. */
interface Connection extends Partial<SqliteHandle> {
  inTransaction?: unknown;
  isTransaction?: unknown;
}

const refuse = (message: string): PostbellError =>
  new PostbellError("invalid_argument", message, { field: "transaction" });

/** Errors: `invalid_argument` for a connection that the host has closed. */
function requireOpenConnection(connection: object): void {
  if (!isClosed(connection)) return;
  throw refuse(
    "transaction is a closed database, so the event is not stored. Wait for emit() before you commit, and close the database after that.",
  );
}

/** Errors: `invalid_argument` for an open connection without a transaction. */
function requireTransaction(connection: object): void {
  const { inTransaction, isTransaction } = connection as Connection;
  if (inTransaction !== false && isTransaction !== false) return;
  throw refuse(
    "transaction must be a database with an open transaction: run BEGIN IMMEDIATE first, and COMMIT when emit() has resolved. transaction() of a driver commits before.",
  );
}

/**
 * Errors: `invalid_argument` for a connection that cannot write to the file of the storage without
 * harm. `own`: the one of the storage.
 */
function requireSuitable(
  connection: SqliteHandle,
  storageHandle: SqliteHandle,
  watch: FileWatch | undefined,
): void {
  if (!returnsPlainRows(connection)) {
    throw refuse("transaction must return rows as objects and integers as numbers, and its driver does not.");
  }
  const [build, storageBuild] = [readBuild(connection), readBuild(storageHandle)];
  if (build.id !== storageBuild.id) {
    throw refuse(
      `transaction is of another build of SQLite (${build.version}) than the storage (${storageBuild.version}); their locks do not exclude each other. Use one driver for both: sqliteStorage({ file, driver }).`,
    );
  }
  if (watch?.isFile(findPath(connection)) === false) {
    throw refuse("transaction is a database of another file than that of the storage.");
  }
  // Two copies of one driver are two builds as well.
  watch?.requireOneBuild();
}

/** Returns the statements on a connection of the host. */
function createJoin() {
  const transactions = new WeakMap<object, SqlTransaction>();
  return (connection: object, storageHandle: SqliteHandle, watch: FileWatch | undefined): SqlTransaction => {
    requireOpenConnection(connection);
    const { prepare, exec } = connection as Connection;
    if (typeof prepare !== "function" || typeof exec !== "function" || connection === storageHandle) {
      throw refuse(
        "transaction must be another open database of the same file, on which the transaction was begun.",
      );
    }
    requireTransaction(connection);
    const joined = transactions.get(connection);
    if (joined !== undefined) return joined;
    requireSuitable(connection as SqliteHandle, storageHandle, watch);
    const made = createSqliteTransaction(connection as SqliteHandle, () => {
      requireOpenConnection(connection);
      requireTransaction(connection);
    });
    transactions.set(connection, made);
    return made;
  };
}
