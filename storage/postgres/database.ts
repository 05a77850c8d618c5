/** Transactions on Postgres: each on a connection that the pool lends for it. */

import { type Clock, systemClock } from "../../src/core/clock.js";
import { PostbellError } from "../../src/core/errors.js";
import { retry } from "../../src/core/retry.js";
import type { SqlConnection } from "../../src/webhooks/transaction.js";
import type { SqlDatabase, SqlReadOptions, SqlTransaction, TransactionOptions } from "../sql/database.js";
import type { PgClient, PgPoolClient, PostgresPool } from "./client.js";
import {
  getCode,
  isRefusal,
  isStalePlan,
  isTransactionConflict,
  toJoinError,
  toPostgresError,
} from "./errors.js";
import { toHostClient } from "./host-connection.js";
import type { PostgresTransaction } from "./transaction.js";

/**
 * Not longer than the four seconds that the service gives a storage. The server ends a transaction
 * whose client has vanished without a goodbye: its locks would stop the deliveries of all others.
 */
const LIMITS =
  "SET LOCAL statement_timeout = 3000; SET LOCAL lock_timeout = 2000; SET LOCAL idle_in_transaction_session_timeout = 4000";

/**
 * A role, a database or the host's pool may have set these otherwise. Then a function of the host
 * could take the place of one of Postgres, and a null in an array would be the text "NULL".
 */
const SETTINGS = `${LIMITS}; SET LOCAL search_path = pg_catalog, pg_temp; SET LOCAL array_nulls = on`;

const BEGIN = `BEGIN ISOLATION LEVEL READ COMMITTED; ${SETTINGS}`;

/** Does not wait for the disk of the server. */
const BEGIN_LOOSE = `${BEGIN}; SET LOCAL synchronous_commit = off`;

/** One statement sees one state of the database, several see one as of the first. */
const BEGIN_READ = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; ${SETTINGS}`;

/** How often a transaction that conflicts with others is repeated, and how long it waits before. */
const RETRIES = 4;
const PAUSE_MS = 20;

const LOCK_TIMEOUT = "55P03";

/** How many connections with stale plans a transaction tries: more than a pool usually has. */
const MAX_STALE = 20;

export interface PostgresDatabaseOptions {
  pool: () => Promise<PostgresPool>;
  /** Returns the statements of one transaction on a connection. */
  createTransaction: (client: PgClient) => PostgresTransaction;
  /** The same on a connection of the host, which may lead through a pooler. */
  joinTransaction: (client: PgClient) => PostgresTransaction;
  /** Checks that the tables exist. Called before each transaction. */
  prepare: () => Promise<void>;
  getClock: () => Clock;
  /** Called when a statement has waited for a lock in vain. */
  onLockTimeout: () => void;
}

/** A connection that breaks while it is lent tells so, and must not end the process. */
const ignore = (): void => {};

/**
 * A transaction takes less, because its statements have limits. If it does not end, its connection
 * has fallen silent, which neither pg nor the system notices for a quarter of an hour.
 */
const SILENT_MS = 8_000;

/**
 * Runs `work` with a client of the pool. A client whose connection failed is not used again. After
 * `limitMs` the connection is cut, so that what waits for it rejects; `null` sets no limit.
 */
export async function borrow<T>(
  pool: PostgresPool,
  work: (client: PgPoolClient) => Promise<T>,
  limitMs: number | null = SILENT_MS,
): Promise<T> {
  const client = await pool.connect();
  client.on("error", ignore);
  const cut = (): void => void client.connection?.stream?.destroy();
  const timer = limitMs === null ? undefined : systemClock.setTimeout(cut, limitMs);
  let failed: Error | undefined;
  try {
    return await work(client);
  } catch (error) {
    if (!isRefusal(error) && !(error instanceof PostbellError)) {
      failed = error instanceof Error ? error : new Error("the connection failed");
    }
    throw error;
  } finally {
    systemClock.clearTimeout(timer);
    client.removeListener("error", ignore);
    client.release(failed);
  }
}

const NO_FREE_CLIENT = new PostbellError("storage_unavailable", "No connection of the pool is free.");

/** Returns true if `connect` lends a client at once. A pool that does not tell has none. */
function hasFreeClient({ totalCount, idleCount, waitingCount, options }: PostgresPool): boolean {
  if (totalCount === undefined || idleCount === undefined || waitingCount === undefined) return false;
  return idleCount + (options?.max ?? 0) - totalCount > waitingCount;
}

export function createPostgresDatabase(options: PostgresDatabaseOptions): SqlDatabase {
  const { createTransaction, joinTransaction, prepare, getClock } = options;

  /**
   * Runs `work` between two statements. Without `begin`, its only statement runs on its own: in one
   * round trip, and with the limit of the connection only.
   */
  const runOnce = async <T>(
    begin: string | undefined,
    work: (transaction: SqlTransaction) => Promise<T>,
    isPossible: (pool: PostgresPool) => boolean = () => true,
  ): Promise<T> => {
    let isCommitting = false;
    try {
      const pool = await options.pool();
      // `borrow` asks for the client in the same turn, so nobody else takes it.
      if (!isPossible(pool)) throw NO_FREE_CLIENT;
      return await borrow(pool, async (client) => {
        const transaction = createTransaction(client);
        if (begin === undefined) return work(transaction);
        transaction.begin(begin);
        let result: T;
        try {
          result = await work(transaction);
        } catch (error) {
          await transaction.rollBack();
          throw error;
        }
        isCommitting = true;
        await transaction.commit();
        return result;
      });
    } catch (error) {
      if (getCode(error) === LOCK_TIMEOUT) options.onLockTimeout();
      throw isTransactionConflict(error) || isStalePlan(error) ? error : toPostgresError(error, isCommitting);
    }
  };

  const run = async <T>(
    begin: string | undefined,
    work: (transaction: SqlTransaction) => Promise<T>,
    isPossible?: (pool: PostgresPool) => boolean,
  ): Promise<T> => {
    await prepare();
    const clock = getClock();
    let stale = 0;
    try {
      return await retry(() => runOnce(begin, work, isPossible), {
        clock,
        retries: RETRIES,
        shouldRetry: isTransactionConflict,
        // The connection of a stale plan is not used again.
        shouldConsumeRetry: (error) => !(isStalePlan(error) && stale++ < MAX_STALE),
        pauseMs: (count) => PAUSE_MS * 2 ** count * clock.random(),
      });
    } catch (error) {
      throw toPostgresError(error, false);
    }
  };

  return {
    settlesDelivered: true,
    hasOneWriter: false,
    write: (work, { isDurable = true }: TransactionOptions = {}) =>
      run(isDurable ? BEGIN : BEGIN_LOOSE, work),
    read: (work, { isOneStatement = false }: SqlReadOptions = {}) =>
      run(isOneStatement ? undefined : BEGIN_READ, work),
    async writeIfFree(work) {
      try {
        return await run(BEGIN, work, hasFreeClient);
      } catch (error) {
        if (error === NO_FREE_CLIENT) return undefined;
        throw error;
      }
    },
    async join(connection, work) {
      const { query, on } = connection as Partial<PgClient>;
      if (typeof query !== "function") {
        throw new PostbellError(
          "invalid_argument",
          "transaction must be of Postgres, as the storage is: a client of pg, an object with query(text, values), or the result of a function of postbell/orm.",
          { field: "transaction" },
        );
      }
      await prepare();
      const isPg = typeof on === "function";
      const transaction = joinTransaction(
        isPg ? (connection as PgClient) : toHostClient(connection as SqlConnection),
      );
      try {
        const result = await work(transaction);
        await transaction.settled();
        return result;
      } catch (error) {
        throw toJoinError(error);
      }
    },
  };
}
