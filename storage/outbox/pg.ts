/**
 * A source on Postgres. Each call is one statement that commits itself, so that a process that
 * stops leaves no transaction open.
 */

import { guardPool, ignoreErrors } from "../../src/core/error-events.js";
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

/** The part of a pool of `pg` that the source uses. */
export interface PgPool extends SqlConnection {
  /** Runs a statement on any connection. */
  query(text: string, values?: unknown[]): PromiseLike<{ readonly rows: readonly unknown[] }>;
}

/** Options of `pgSource`. */
export interface PgSourceOptions {
  /**
   * The host's pool. The source never ends it. Its connections should have the default
   * isolation level of Postgres, READ COMMITTED. With a stricter level, statements of processes
   * that claim at the same time fail.
   */
  pool: PgPool;
  /** Name of the table, with or without its schema. Default `postbell_outbox`. */
  table?: string | undefined;
}

const pgSourceOptions = {
  pool: value<PgPool | undefined>(
    "a pool of pg",
    (pool) =>
      typeof pool === "object" && pool !== null && typeof (pool as { query?: unknown }).query === "function",
    undefined,
  ),
  table: tableOption,
};

type Rows = readonly Readonly<Record<string, unknown>>[];

/**
 * Converts a time to epoch milliseconds, or an interval to milliseconds. Whole numbers, because
 * extra_float_digits rounds others.
 */
const epochMs = (time: string): string => `trunc(extract(epoch FROM ${time}) * 1000)::bigint::text`;

/**
 * Creates a source on a table in Postgres 12 or newer. Does no I/O yet.
 *
 * Losing a connection does not end the process: the pool gets a listener of `error`, and so do the
 * clients that it lends or that `add` takes. A pool keeps it, however many sources use it.
 *
 * @throws `invalid_option`
 */
export function pgSource(options: PgSourceOptions): SqlSource<SqlConnection> {
  const { pool, table } = readOptions("pgSource", pgSourceOptions, options);
  if (!pool) {
    throw new PostbellError("invalid_option", "pgSource: pool is missing: give a pool of pg.", {
      field: "pool",
    });
  }
  // There is no close(), and a pool without users has idle connections too.
  guardPool(pool);
  const name = quoteIdentifier(table, '"');
  const index = quoteIdentifier(`${table.split(".").at(-1)}_due`, '"');
  const run = async (text: string, values: unknown[] = []): Promise<Rows> => {
    const { rows } = await pool.query(text, values);
    return rows as Rows;
  };

  // The rows of a queue live for seconds. With the default scale factor, vacuuming would be too
  // late.
  const schema = `CREATE TABLE IF NOT EXISTS ${name} (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  event_id uuid NOT NULL,
  event text NOT NULL,
  added_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  due_at timestamptz DEFAULT clock_timestamp(),
  claims integer NOT NULL DEFAULT 0,
  retries integer NOT NULL DEFAULT 0,
  unsure_since timestamptz,
  parked_at timestamptz,
  reason text
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX IF NOT EXISTS ${index} ON ${name} (due_at);
`;

  return Object.freeze<SqlSource<SqlConnection>>({
    schema: () => schema,
    async install() {
      // IF NOT EXISTS alone fails if two processes run it at the same moment. Several statements in
      // one text are one transaction.
      await pool.query(`SELECT pg_advisory_xact_lock(hashtext('${table}'));\n${schema}`);
    },
    add: createAdd(pool, async (connection: SqlConnection, rows) => {
      ignoreErrors(connection);
      // As one text, because libraries encode arrays and JSON differently.
      await connection.query(
        `INSERT INTO ${name} (event_id, event)
          SELECT (added.value ->> 'id')::uuid, added.value ->> 'event'
          FROM json_array_elements($1::text::json) WITH ORDINALITY AS added (value, place) ORDER BY place`,
        [JSON.stringify(rows)],
      );
    }),
    async claim({ limit, leaseMs }) {
      // statement_timestamp() is constant, so that the index can end the search. With
      // clock_timestamp(), each poll would also read leased, scheduled and parked rows.
      const rows = await run(
        `WITH due AS MATERIALIZED (
            SELECT seq, unsure_since FROM ${name} WHERE due_at <= statement_timestamp() ORDER BY due_at LIMIT $1 FOR UPDATE SKIP LOCKED
          )
          UPDATE ${name} AS leased
            SET claims = leased.claims + 1, due_at = clock_timestamp() + $2 * interval '1 ms', unsure_since = coalesce(leased.unsure_since, clock_timestamp())
            FROM due WHERE leased.seq = due.seq
            RETURNING leased.seq::text AS row_key, leased.event_id::text, leased.event, ${epochMs("leased.added_at")} AS added_ms, leased.claims, leased.retries,
              ${epochMs("clock_timestamp() - due.unsure_since")} AS unsure_ms`,
        [limit, leaseMs],
      );
      return rows.map(toClaim);
    },
    async remove(keys) {
      await run(`DELETE FROM ${name} WHERE seq = ANY ($1::bigint[])`, [selectRowKeys(keys)]);
    },
    async retry({ key, claims, delayMs, isUnsure }) {
      await run(
        `UPDATE ${name}
          SET retries = retries + 1, due_at = clock_timestamp() + $3 * interval '1 ms', unsure_since = CASE WHEN $4::boolean THEN unsure_since END
          WHERE seq = $1 AND claims = $2 AND due_at IS NOT NULL`,
        [key, claims, delayMs, isUnsure],
      );
    },
    async park({ key, claims, reason }) {
      await run(
        `UPDATE ${name} SET due_at = NULL, parked_at = clock_timestamp(), reason = $3 WHERE seq = $1 AND claims = $2`,
        [key, claims, reason],
      );
    },
    async parked({ limit }) {
      const rows = await run(
        `SELECT seq::text AS row_key, event_id::text, reason, ${epochMs("added_at")} AS added_ms, ${epochMs("parked_at")} AS parked_ms
          FROM ${name} WHERE due_at IS NULL ORDER BY parked_at, seq LIMIT $1`,
        [limit],
      );
      return rows.map(toParkedRow);
    },
    async release(keys) {
      await run(
        `UPDATE ${name} SET due_at = clock_timestamp(), retries = claims, unsure_since = NULL, parked_at = NULL, reason = NULL
          WHERE seq = ANY ($1::bigint[]) AND due_at IS NULL`,
        [selectRowKeys(keys)],
      );
    },
    async stats() {
      const [row] = await run(
        `SELECT count(due_at)::text AS waiting, (count(*) - count(due_at))::text AS parked,
            ${epochMs("clock_timestamp() - min(added_at) FILTER (WHERE due_at IS NOT NULL)")} AS oldest_ms
          FROM ${name}`,
      );
      return toStats(row);
    },
  });
}
