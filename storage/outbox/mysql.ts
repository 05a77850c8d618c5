/** A source on MySQL or MariaDB. */

import { PostbellError } from "../../src/core/errors.js";
import { readOptions, value } from "../../src/core/options.js";
import type { SqlConnection } from "../../src/webhooks/transaction.js";
import {
  createAdd,
  quoteIdentifier,
  type SqlSource,
  selectRowKeys,
  tableOption,
  toClaim,
  toParkedRow,
  toStats,
} from "./sql-source.js";

/**
 * The part of a connection of `mysql2/promise` that the source uses. The server binds values,
 * because escaped values are not safe in every `sql_mode`.
 */
export interface MysqlConnection {
  /** Runs a prepared statement. The first element of the result has the rows. */
  execute(sql: string, values: (string | number)[]): Promise<readonly [unknown, unknown]>;
}

/** The part of a pooled connection that the source uses. */
export interface MysqlPoolConnection extends MysqlConnection {
  /** Runs a statement without values. */
  query(sql: string): Promise<unknown>;
  /** Returns the connection to the pool. */
  release(): void;
  /** Closes the connection, whose state is unknown. */
  destroy(): void;
}

/** The part of a pool of `mysql2/promise` that the source uses. */
export interface MysqlPool extends MysqlConnection {
  /** Runs a statement without values, on any connection. */
  query(sql: string): Promise<unknown>;
  /** Takes a connection from the pool. */
  getConnection(): Promise<MysqlPoolConnection>;
}

/** Options of `mysqlSource`. */
export interface MysqlSourceOptions {
  /** The host's pool of `mysql2/promise`. The source never ends it. */
  pool: MysqlPool;
  /** Name of the table, with or without its database. Default `postbell_outbox`. */
  table?: string | undefined;
}

/** A pool with callbacks has the same methods, and `promise()` in addition. */
function isPromisePool(pool: unknown): boolean {
  if (typeof pool !== "object" || pool === null) return false;
  const { execute, getConnection, promise } = pool as Record<string, unknown>;
  return typeof execute === "function" && typeof getConnection === "function" && promise === undefined;
}

const mysqlSourceOptions = {
  pool: value<MysqlPool | undefined>(
    "a pool of mysql2/promise (of mysql2: pool.promise())",
    isPromisePool,
    undefined,
  ),
  table: tableOption,
};

type Rows = readonly Readonly<Record<string, unknown>>[];

const NOW = "UTC_TIMESTAMP(6)";
/** Whole milliseconds between two times, as text, so that no option of the pool converts them. */
const msBetween = (from: string, to: string): string =>
  `CAST(TIMESTAMPDIFF(MICROSECOND, ${from}, ${to}) DIV 1000 AS CHAR)`;
const epochMs = (time: string): string => msBetween("'1970-01-01'", time);
const inMs = "? * 1000 MICROSECOND";

/**
 * Repeats the last key until the number of keys is a power of two. Each connection caches one
 * prepared statement per number of keys.
 */
function padToPowerOfTwo(keys: readonly string[]): string[] {
  const size = 2 ** Math.ceil(Math.log2(keys.length));
  return Array.from({ length: size }, (_, place) => keys[Math.min(place, keys.length - 1)] ?? "");
}

/**
 * Creates a source on a table in MySQL 8 or newer, or MariaDB 10.6 or newer. Does no I/O yet.
 *
 * @throws `invalid_option`
 */
export function mysqlSource(options: MysqlSourceOptions): SqlSource<MysqlConnection | SqlConnection> {
  const { pool, table } = readOptions("mysqlSource", mysqlSourceOptions, options);
  if (!pool) {
    throw new PostbellError(
      "invalid_option",
      "mysqlSource: pool is missing: give a pool of mysql2/promise.",
      {
        field: "pool",
      },
    );
  }
  const name = quoteIdentifier(table, "`");
  const run = async (
    sql: string,
    values: (string | number)[] = [],
    on: MysqlConnection = pool,
  ): Promise<Rows> => {
    const [rows] = await on.execute(sql, values);
    return rows as Rows;
  };

  /** Runs a statement on the rows of these keys. */
  const runFor = async (keys: readonly string[], sql: (list: string) => string): Promise<void> => {
    const known = selectRowKeys(keys);
    if (known.length === 0) return;
    const values = padToPowerOfTwo(known);
    await run(sql(values.map(() => "?").join(", ")), values);
  };

  const schema = createSchema(name);

  return Object.freeze<SqlSource<MysqlConnection | SqlConnection>>({
    schema: () => schema,
    async install() {
      await pool.query(schema);
    },
    add: createAdd(pool, async (connection: MysqlConnection | SqlConnection, rows) => {
      for (const { id, event } of rows) {
        // A library may put values into the text, where `sql_mode` decides what a backslash means.
        const values = [id, Buffer.from(event).toString("hex")];
        const text = `INSERT INTO ${name} (event_id, event, added_at, due_at) VALUES (?, UNHEX(?), ${NOW}, ${NOW})`;
        if ("execute" in connection) await run(text, values, connection);
        else await connection.query(text, values);
      }
    }),
    claim: ({ limit, leaseMs }) =>
      inTransaction(pool, async (connection) => {
        // LIMIT takes no bound value in every version; this number was checked by the outbox. The
        // index is named, because the optimizer is often wrong about a table that changes all the
        // time. It would then read and lock every due row, and leave none to other processes.
        const rows = await run(
          `SELECT CAST(seq AS CHAR) AS row_key, event_id, event, ${epochMs("added_at")} AS added_ms, claims + 1 AS claims, retries,
              ${msBetween("unsure_since", NOW)} AS unsure_ms
            FROM ${name} FORCE INDEX (due) WHERE due_at <= ${NOW} ORDER BY due_at LIMIT ${Math.trunc(limit)} FOR UPDATE SKIP LOCKED`,
          [],
          connection,
        );
        if (rows.length === 0) return [];
        const keys = padToPowerOfTwo(rows.map((row) => String(row["row_key"])));
        await run(
          `UPDATE ${name} SET claims = claims + 1, due_at = ${NOW} + INTERVAL ${inMs}, unsure_since = COALESCE(unsure_since, ${NOW})
            WHERE seq IN (${keys.map(() => "?").join(", ")})`,
          [leaseMs, ...keys],
          connection,
        );
        return rows.map(toClaim);
      }),
    remove: (keys) => runFor(keys, (list) => `DELETE FROM ${name} WHERE seq IN (${list})`),
    async retry({ key, claims, delayMs, isUnsure }) {
      await run(
        `UPDATE ${name} SET retries = retries + 1, due_at = ${NOW} + INTERVAL ${inMs}, unsure_since = IF(? = 1, unsure_since, NULL)
          WHERE seq = ? AND claims = ? AND due_at IS NOT NULL`,
        [delayMs, isUnsure ? 1 : 0, key, claims],
      );
    },
    async park({ key, claims, reason }) {
      await run(
        `UPDATE ${name} SET due_at = NULL, parked_at = ${NOW}, reason = ? WHERE seq = ? AND claims = ?`,
        [reason, key, claims],
      );
    },
    async parked({ limit }) {
      const rows = await run(
        `SELECT CAST(seq AS CHAR) AS row_key, event_id, reason, ${epochMs("added_at")} AS added_ms, ${epochMs("parked_at")} AS parked_ms
          FROM ${name} WHERE due_at IS NULL ORDER BY parked_at, seq LIMIT ${Math.trunc(limit)}`,
      );
      return rows.map(toParkedRow);
    },
    release: (keys) =>
      runFor(
        keys,
        (list) =>
          `UPDATE ${name} SET due_at = ${NOW}, retries = claims, unsure_since = NULL, parked_at = NULL, reason = NULL
            WHERE seq IN (${list}) AND due_at IS NULL`,
      ),
    async stats() {
      const [row] = await run(
        `SELECT COUNT(due_at) AS waiting, COUNT(*) - COUNT(due_at) AS parked,
            ${msBetween("MIN(IF(due_at IS NULL, NULL, added_at))", NOW)} AS oldest_ms
          FROM ${name}`,
      );
      return toStats(row);
    },
  });
}

/**
 * Runs `work` in a transaction with READ COMMITTED. In REPEATABLE READ, the search for due rows
 * would also lock the gaps into which the host's transactions write their rows.
 */
async function inTransaction<T>(
  pool: MysqlPool,
  work: (connection: MysqlConnection) => Promise<T>,
): Promise<T> {
  const connection = await pool.getConnection();
  try {
    await connection.query("SET TRANSACTION ISOLATION LEVEL READ COMMITTED");
    await connection.query("START TRANSACTION");
    const result = await work(connection);
    await connection.query("COMMIT");
    connection.release();
    return result;
  } catch (error) {
    // Closing the connection rolls back whatever is uncommitted.
    connection.destroy();
    throw error;
  }
}

/**
 * The times have no default: UTC_TIMESTAMP cannot be one, and NOW depends on the time zone of the
 * connection.
 */
const createSchema = (name: string): string => `CREATE TABLE IF NOT EXISTS ${name} (
  seq BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  event_id CHAR(36) CHARACTER SET ascii NOT NULL,
  event LONGTEXT CHARACTER SET ascii NOT NULL,
  added_at DATETIME(6) NOT NULL,
  due_at DATETIME(6) NULL,
  claims INT NOT NULL DEFAULT 0,
  retries INT NOT NULL DEFAULT 0,
  unsure_since DATETIME(6) NULL,
  parked_at DATETIME(6) NULL,
  reason VARCHAR(500) CHARACTER SET ascii NULL,
  KEY due (due_at)
) ENGINE=InnoDB;
`;
