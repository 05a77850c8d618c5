/** A source on Postgres. Each call is one statement, which commits by itself: no transaction is left open by a process that stops. */

import { PostbellError } from "../src/core/errors.js";
import { readOptions, value } from "../src/core/options.js";
import { addOn, rowKeys, type SqlSource, toClaim, toParkedRow, toStats } from "./sql-source.js";
import { quotedName, tableOption } from "./table-name.js";

/** What is used of a client of `pg`, or of whatever else runs a statement with `$1`, `$2` … in the host's transaction. */
export interface PgConnection {
  /** Runs a statement with its values. */
  query(text: string, values: unknown[]): PromiseLike<{ readonly rows: readonly unknown[] }>;
}

/** What is used of a pool of `pg`. */
export interface PgPool extends PgConnection {
  /** Runs a statement on any connection. */
  query(text: string, values?: unknown[]): PromiseLike<{ readonly rows: readonly unknown[] }>;
}

/** What `pgSource` takes. */
export interface PgSourceOptions {
  /** The host's own. The source never ends it. Its connections should have READ COMMITTED as their default isolation, as Postgres has: under a stricter one, processes that claim at once refuse each other's statements. */
  readonly pool: PgPool;
  /** Name of the table, with its schema or without. Default `postbell_outbox`. */
  readonly table?: string | undefined;
}

const pgSourceOptions = {
  pool: value<PgPool | undefined>(
    "a pool of pg",
    (given) =>
      typeof given === "object" &&
      given !== null &&
      typeof (given as { query?: unknown }).query === "function",
    undefined,
  ),
  table: tableOption,
};

type Rows = readonly Readonly<Record<string, unknown>>[];

/** Milliseconds since 1970 of a time, and between two. */
const epochMs = (time: string): string => `(extract(epoch FROM ${time}) * 1000)::float8::text`;

/**
 * Makes a source on a table in Postgres 12 or newer. Does no I/O yet.
 *
 * Errors: `invalid_option`.
 */
export function pgSource(options: PgSourceOptions): SqlSource<PgConnection> {
  const { pool, table } = readOptions("pgSource", pgSourceOptions, options);
  if (!pool) {
    throw new PostbellError("invalid_option", "pgSource: pool is missing: give a pool of pg.", {
      field: "pool",
    });
  }
  const name = quotedName(table, '"');
  const index = quotedName(`${table.split(".").at(-1)}_due`, '"');
  const run = async (text: string, values: unknown[] = []): Promise<Rows> => {
    const { rows } = await pool.query(text, values);
    return rows as Rows;
  };

  // A queue's rows live for seconds: without a threshold of its own the table is vacuumed by its largest size, too late.
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

  return Object.freeze<SqlSource<PgConnection>>({
    schema: () => schema,
    async install() {
      // IF NOT EXISTS alone fails where two processes look at the same moment. Several statements in one text are one transaction.
      await pool.query(`SELECT pg_advisory_xact_lock(hashtext('${table}'));\n${schema}`);
    },
    add: addOn(pool, async (connection: PgConnection, rows) => {
      const ids = rows.map(({ id }) => id);
      const events = rows.map(({ event }) => event);
      await connection.query(
        `INSERT INTO ${name} (event_id, event)
          SELECT event_id, event FROM unnest($1::uuid[], $2::text[]) WITH ORDINALITY AS given (event_id, event, place) ORDER BY place`,
        [ids, events],
      );
    }),
    async claim({ limit, leaseMs }) {
      // clock_timestamp() may change from row to row: no index would end the search at it, and each look would read what is leased, put off and parked too.
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
      await run(`DELETE FROM ${name} WHERE seq = ANY ($1::bigint[])`, [rowKeys(keys)]);
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
        [rowKeys(keys)],
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
