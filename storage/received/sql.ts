/** Remembers events in a table of the host, on Postgres and SQLite, and in its transactions. */

import { type Clock, systemClock } from "../../src/core/clock.js";
import { PostbellError } from "../../src/core/errors.js";
import { type Option, readOptions, value, wholeNumber } from "../../src/core/options.js";
import type { ReceivedEvents } from "../../src/receiver/received-events.js";
import {
  requireTransactionValue,
  type SqlConnection,
  type SqliteConnection,
} from "../../src/webhooks/transaction.js";
import type { PgPool } from "../outbox/pg.js";
import { quoteIdentifier, tableOption } from "../outbox/sql-source.js";

interface TableOptions {
  /** Name of the table, with or without its schema. Default `postbell_received`. */
  table?: string | undefined;
  /** Begins each key. Default: none. Set it if several receivers share the table. */
  scope?: string | undefined;
  /** How long `markHandled` remembers an event, in milliseconds. Default 6 days. */
  keepMs?: number | undefined;
  /** The clock of `markHandled`. Default: the system's. */
  clock?: Clock | undefined;
}

/** Options of `pgReceived`. */
export interface PgReceivedOptions extends TableOptions {
  /** Your own pool of `pg`. It is never closed. */
  pool: PgPool;
}

/** The part of a database of `node:sqlite` or better-sqlite3 that is called. */
export interface SqliteReceivedDatabase extends SqliteConnection {
  /** Compiles a statement. */
  prepare(text: string): {
    /** Runs the statement, and returns its rows. */
    all(...values: never[]): unknown[];
  };
  /** True while a transaction is open, in `node:sqlite`. */
  readonly isTransaction?: boolean | undefined;
  /** The same, in better-sqlite3 and libsql. */
  readonly inTransaction?: boolean | undefined;
}

/** Options of `sqliteReceived`. */
export interface SqliteReceivedOptions extends TableOptions {
  /**
   * Your own database, the one on which you begin transactions. It is never closed. Transactions on
   * it must be synchronous, without an `await` between begin and commit: the claims of other events
   * run on the same database, would become part of the transaction and be rolled back with it. If
   * yours await, pass a database that only the receiver uses, opened from the same file with
   * `PRAGMA busy_timeout = 0`, and call `markHandled` of a second `sqliteReceived` on the one with
   * the transactions. Events that arrive while one is open are then refused, and delivered again.
   */
  database: SqliteReceivedDatabase;
}

interface Installable extends ReceivedEvents {
  /** Returns the statements that create the table, for your migrations. */
  schema(): string;
}

/** Events of a receiver in Postgres. */
export interface PgReceived extends Installable {
  /** Runs `schema()`. Several processes may do so at once. */
  install(): Promise<void>;
  /**
   * Marks an event as handled in a transaction of yours: an effect that is written in the same
   * transaction happens exactly once, whatever crashes. Resolves with false if the event was
   * handled before; then write nothing.
   *
   * @param transaction a client of `pg`, or the result of a function of `postbell/orm`.
   *
   * @example
   * onEvent: (event) =>
   *   db.transaction(async (tx) => {
   *     if (!(await received.markHandled(event.id, fromDrizzle(tx)))) return;
   *     await tx.insert(payments).values(toPayment(event));
   *   }),
   */
  markHandled(id: string, transaction: SqlConnection): Promise<boolean>;
}

/** Events of a receiver in SQLite. */
export interface SqliteReceived extends Installable {
  /** Runs `schema()`. */
  install(): void;
  /**
   * Marks an event as handled in the transaction that is open on the database: an effect that is
   * written in the same transaction happens exactly once, whatever crashes. Returns false if the
   * event was handled before; then write nothing.
   *
   * @throws `invalid_argument` if no transaction is open, where the driver can tell.
   *
   * @example
   * onEvent: database.transaction((event) => {
   *   if (received.markHandled(event.id)) insertPayment.run(toPayment(event));
   * }),
   */
  markHandled(id: string): boolean;
}

const DAY_MS = 86_400_000;

const TABLE_OPTIONS = {
  table: { ...tableOption, default: "postbell_received" } as Option<string>,
  scope: value(
    "a text of at most 100 characters",
    (input) => typeof input === "string" && input.length <= 100,
    "",
  ),
  keepMs: wholeNumber("ms", 6 * DAY_MS, { min: 1 }),
  clock: value<Clock>("a clock", (input) => typeof input === "object" && input !== null, systemClock),
};

const hasMethod = (name: string) => (input: unknown) =>
  typeof (input as Record<string, unknown> | null)?.[name] === "function";

const PG_OPTIONS = {
  pool: value<PgPool | undefined>("a pool of pg", hasMethod("query"), undefined),
  ...TABLE_OPTIONS,
};

const SQLITE_OPTIONS = {
  database: value<SqliteReceivedDatabase | undefined>(
    "a database of node:sqlite or better-sqlite3",
    hasMethod("prepare"),
    undefined,
    "a database",
  ),
  ...TABLE_OPTIONS,
};

function missing(factory: string, field: string, what: string): PostbellError {
  return new PostbellError("invalid_option", `${factory}: ${field} is missing: pass ${what}.`, { field });
}

/** Later than any time: cursors do not expire. */
const FOREVER = Number.MAX_SAFE_INTEGER;
const TIDY_EVERY_MS = 60_000;
const TIDIED_AT_ONCE = 1_000;

/**
 * The statements, with the values of `$1`, `$2` … in this order. A row is a lease until `until`, or
 * a handled event that is remembered until then.
 */
const createStatements = (table: string) => ({
  claim: `INSERT INTO ${table} AS r (id, until, is_done) VALUES ($1, $2, 0)
    ON CONFLICT (id) DO UPDATE SET until = excluded.until, is_done = 0 WHERE r.until <= $3 RETURNING is_done`,
  find: `SELECT is_done FROM ${table} WHERE id = $1`,
  confirm: `INSERT INTO ${table} (id, until, is_done) VALUES ($1, $2, 1)
    ON CONFLICT (id) DO UPDATE SET until = excluded.until, is_done = 1`,
  release: `DELETE FROM ${table} WHERE id = $1 AND until = $2 AND is_done = 0`,
  mark: `INSERT INTO ${table} AS r (id, until, is_done) VALUES ($1, $2, 1)
    ON CONFLICT (id) DO UPDATE SET until = excluded.until, is_done = 1 WHERE r.is_done = 0 OR r.until <= $3
    RETURNING is_done`,
  readCursor: `SELECT place FROM ${table} WHERE id = $1`,
  writeCursor: `INSERT INTO ${table} (id, until, is_done, place) VALUES ($1, $2, 1, $3)
    ON CONFLICT (id) DO UPDATE SET place = excluded.place`,
  // `until` is compared twice: Postgres repeats only the outer condition for a row that another
  // transaction has renewed in the meantime.
  tidy: `DELETE FROM ${table} WHERE until <= $1
    AND id IN (SELECT id FROM ${table} WHERE until <= $2 LIMIT $3) RETURNING is_done`,
});

type Rows = readonly unknown[];
type Run = (text: string, values: (string | number)[]) => PromiseLike<Rows>;

/** The methods of the port, which both databases share. */
function createReceived(run: Run, sql: ReturnType<typeof createStatements>, scope: string): ReceivedEvents {
  let tidiedAt = Number.NEGATIVE_INFINITY;
  const tidy = async (now: number): Promise<void> => {
    if (now - tidiedAt < TIDY_EVERY_MS) return;
    tidiedAt = now;
    const deleted = await run(sql.tidy, [now, now, TIDIED_AT_ONCE]);
    // There may be more: the next call goes on, so that the table does not outgrow what is deleted.
    if (deleted.length >= TIDIED_AT_ONCE) tidiedAt = Number.NEGATIVE_INFINITY;
  };
  return {
    async claim({ id, now, leaseUntil }) {
      await tidy(now);
      const key = toKey(scope, id);
      if ((await run(sql.claim, [key, leaseUntil, now])).length > 0) return "new";
      const [row] = (await run(sql.find, [key])) as { is_done: unknown }[];
      return Number(row?.is_done) === 1 ? "done" : "in_flight";
    },
    async confirm({ id, keepUntil }) {
      await run(sql.confirm, [toKey(scope, id), keepUntil]);
    },
    async release({ id, leaseUntil }) {
      await run(sql.release, [toKey(scope, id), leaseUntil]);
    },
    async readCursor(feed) {
      const [row] = (await run(sql.readCursor, [`c/${scope}/${feed}`])) as { place: string | null }[];
      return row?.place ?? undefined;
    },
    async writeCursor({ feed, cursor }) {
      await run(sql.writeCursor, [`c/${scope}/${feed}`, FOREVER, cursor]);
    },
  };
}

const toKey = (scope: string, id: string): string => `e/${scope}/${id}`;

const createSchema = (table: string, index: string): string =>
  `CREATE TABLE IF NOT EXISTS ${table} (
  id varchar(500) NOT NULL PRIMARY KEY,
  until bigint NOT NULL,
  is_done smallint NOT NULL,
  place varchar(500)
);
CREATE INDEX IF NOT EXISTS ${index} ON ${table} (until);
`;

const toIndex = (table: string): string =>
  quoteIdentifier(`${table.slice(table.lastIndexOf(".") + 1).slice(0, 50)}_until`, '"');

/**
 * Remembers events in a table in Postgres 12 or newer. Does no I/O yet: call `install()` once, or
 * run `schema()` in a migration.
 *
 * @throws `invalid_option`
 *
 * @example
 * const received = pgReceived({ pool });
 * await received.install();
 * const receiver = createReceiver({ verify: stripe(secret), storage: received, onEvent });
 */
export function pgReceived(options: PgReceivedOptions): PgReceived {
  const { pool, table, scope, keepMs, clock } = readOptions("pgReceived", PG_OPTIONS, options);
  if (pool === undefined) throw missing("pgReceived", "pool", "a pool of pg");
  const name = quoteIdentifier(table, '"');
  const sql = createStatements(name);
  const schema = createSchema(name, toIndex(table));
  const run = async (text: string, values: unknown[]): Promise<Rows> => (await pool.query(text, values)).rows;
  return Object.freeze<PgReceived>({
    ...createReceived(run, sql, scope),
    schema: () => schema,
    async install() {
      // IF NOT EXISTS alone fails if two processes run it at the same moment. Several statements in
      // one text are one transaction.
      await pool.query(`SELECT pg_advisory_xact_lock(hashtext('${table}'));\n${schema}`);
    },
    async markHandled(id, transaction) {
      requireTransactionValue(transaction, "transaction");
      const now = clock.now();
      return (await transaction.query(sql.mark, [toKey(scope, id), now + keepMs, now])).rows.length > 0;
    },
  });
}

/**
 * Remembers events in a table in SQLite 3.35 or newer. Does no I/O yet: call `install()` once, or
 * run `schema()` in a migration.
 *
 * @throws `invalid_option`
 *
 * @example
 * const received = sqliteReceived({ database });
 * received.install();
 * const receiver = createReceiver({ verify: stripe(secret), storage: received, onEvent });
 */
export function sqliteReceived(options: SqliteReceivedOptions): SqliteReceived {
  const { database, table, scope, keepMs, clock } = readOptions("sqliteReceived", SQLITE_OPTIONS, options);
  if (database === undefined) throw missing("sqliteReceived", "database", "an open database");
  const name = quoteIdentifier(table, '"');
  const sql = createStatements(name);
  const schema = createSchema(name, toIndex(table));
  // The statements name their values in order and once each, so `?` has the same ones.
  const run = (text: string, values: (string | number)[]): unknown[] =>
    database.prepare(text.replace(/\$[1-9]/g, "?")).all(...(values as never[]));
  return Object.freeze<SqliteReceived>({
    ...createReceived(async (text, values) => run(text, values), sql, scope),
    schema: () => schema,
    install: () => void database.exec(schema),
    markHandled(id) {
      if ((database.isTransaction ?? database.inTransaction) === false) {
        const message =
          "sqliteReceived: markHandled was called while no transaction is open on the database: begin it on the same database, and call markHandled before its end.";
        throw new PostbellError("invalid_argument", message);
      }
      const now = clock.now();
      return run(sql.mark, [toKey(scope, id), now + keepMs, now]).length > 0;
    },
  });
}
