/**
 * Statements on a connection to Postgres: one for many rows, which travel as arrays. Writes of
 * several tables go together, and what is sent in one turn of the event loop leaves in one piece.
 */

import type { LeasedRound, SqlTransaction, SqlValue, SqlValues } from "../sql/database.js";
import type { SqlTable } from "../sql/table.js";
import { type PgClient, runQuery } from "./client.js";
import type { PostgresStatements } from "./statements.js";

const toText = (value: SqlValue): string =>
  typeof value === "string"
    ? `"${value.replace(/["\\]/g, "\\$&")}"`
    : value === null
      ? "NULL"
      : String(value);

/** Writes the columns of rows as literals of arrays: quicker than one value for each. */
const toArrays = (count: number, rows: readonly SqlValues[]): string[] =>
  Array.from(
    { length: count },
    (_, column) => `{${rows.map((row) => toText(row[column] ?? null)).join(",")}}`,
  );

export interface PostgresTransaction extends SqlTransaction {
  /** Sends the statements that begin the transaction. */
  readonly begin: (text: string) => void;
  /** Rolls back. Rejects if the connection failed. */
  readonly rollBack: () => Promise<void>;
  /** Commits. Rejects with the error of the first statement that failed: then nothing is stored. */
  readonly commit: () => Promise<void>;
  /** Resolves when all statements succeeded; rejects with the error of the first that failed. */
  readonly settled: () => Promise<void>;
}

/** A statement that changes rows of one table, and whose result nobody reads. */
interface Write {
  readonly table: string;
  readonly text: string;
  readonly values: readonly unknown[];
}

/**
 * Sends the statements of one transaction. They wait for nothing if the connection has `pipeline`,
 * so those that are sent together cost one round trip.
 */
function createSender(client: PgClient, statements: PostgresStatements) {
  const stream = client.connection?.stream;
  /** The last statement: those of a connection without `pipeline` are sent one after another. */
  let last: Promise<unknown> = Promise.resolve();
  let failure: { readonly error: unknown } | undefined;
  let writes: Write[] = [];
  let isCorked = false;

  /** Has the socket send everything of this turn of the event loop at once: each time is costly. */
  const cork = (): void => {
    if (isCorked || client.pipeline !== true || !stream?.cork) return;
    isCorked = true;
    stream.cork();
    process.nextTick(() => {
      isCorked = false;
      stream.uncork?.();
    });
  };
  const start = <R>(run: () => PromiseLike<R>): Promise<R> => {
    cork();
    const own = client.pipeline === true ? Promise.resolve(run()) : last.then(run);
    last = own.catch((error: unknown) => {
      // Statements after it fail too, because the transaction is aborted.
      failure ??= { error };
    });
    return own;
  };
  const run = <R>(text: string, values: unknown[]): Promise<readonly R[]> =>
    start(() => runQuery<R>(client, text, values, statements.nameOf(text)));
  /** Sends the writes that wait, as one statement: each has a table of its own. */
  const flush = (): void => {
    if (writes.length === 0) return;
    const texts = writes.map(({ text, values }) => ({ text, count: values.length }));
    const values = writes.flatMap((write) => write.values);
    writes = [];
    run(statements.combine(texts), values).catch(() => {});
  };

  return {
    /** Sends a query. It rejects with the error of the first statement that failed. */
    send: async <R>(text: string, values: unknown[]): Promise<readonly R[]> => {
      flush();
      try {
        return await run<R>(text, values);
      } catch (error) {
        throw failure?.error ?? error;
      }
    },
    /** Sends a write with the next statement, if not before. If it fails, later calls reject. */
    write: (own: Write): void => {
      if (writes.some(({ table }) => table === own.table)) flush();
      writes.push(own);
    },
    /** Sends one or several statements without values. If they fail, later calls reject. */
    sendPlain: (text: string): void => {
      flush();
      start(() => client.query(text)).catch(() => {});
    },
    /** Rolls back, whatever became of the statements before. */
    rollBack: async (): Promise<void> => {
      writes = [];
      await start(() => client.query("ROLLBACK"));
    },
    /** Resolves when all statements succeeded; rejects with the error of the first that failed. */
    settled: async (): Promise<void> => {
      flush();
      await last;
      if (failure !== undefined) throw failure.error;
    },
  };
}

/** The texts of a statement for many rows and of that for a single row, each written if needed. */
type Texts = readonly [forMany: () => string, forOne: () => string];

/**
 * Returns the statements of one transaction on a connection. `channel`: where appends notify once
 * the transaction commits.
 */
export function createPostgresTransaction(
  client: PgClient,
  schema: string,
  statements: PostgresStatements,
  channel?: string,
): PostgresTransaction {
  const sender = createSender(client, statements);
  /** Runs a statement for many rows, or the one for a single row. */
  const runRows = async <R>(
    [forMany, forOne]: Texts,
    count: number,
    rows: readonly SqlValues[],
  ): Promise<readonly R[]> => {
    const [first, ...others] = rows;
    if (first === undefined) return [];
    if (others.length === 0) return sender.send<R>(forOne(), [...first]);
    return sender.send<R>(forMany(), toArrays(count, rows));
  };
  const write = async (
    { name: table }: SqlTable,
    [forMany, forOne]: Texts,
    count: number,
    rows: readonly SqlValues[],
  ): Promise<void> => {
    const [first, ...others] = rows;
    if (first === undefined) return;
    if (others.length === 0) sender.write({ table, text: forOne(), values: first });
    else sender.write({ table, text: forMany(), values: toArrays(count, rows) });
  };
  const { single } = statements;
  /** Calls a function of the schema. `values`: by the names of its parameters. */
  const call = <R>(name: string, values: Record<string, SqlValue>): Promise<readonly R[]> =>
    sender.send<R>(statements.call(name, Object.keys(values)), Object.values(values));

  return {
    skipLocked: " FOR UPDATE SKIP LOCKED",
    lockOnly: (alias) => ` FOR UPDATE OF ${alias}`,
    settled: sender.settled,
    begin: sender.sendPlain,
    rollBack: sender.rollBack,
    async commit() {
      // After a statement that failed, Postgres rolls back instead.
      sender.sendPlain("COMMIT");
      await sender.settled();
    },
    all: (text, values = []) => sender.send(statements.query(text), [...values]),
    forEach: (text, types, lists) =>
      runRows([() => statements.forEach(text, types), () => statements.query(text)], types.length, lists),
    lockRows: (table, key, values, columns = ["*"]) =>
      runRows(
        [() => statements.lockRows(table, key, columns), () => single.lockRows(table, key, columns)],
        1,
        values.map((value) => [value]),
      ),
    insert: (table, columns, rows, unless) =>
      write(
        table,
        [() => statements.insert(table, columns, unless), () => single.insert(table, columns, unless)],
        columns.length,
        rows,
      ),
    async insertNumbered(table, columns, rows, unless) {
      const inserted = await runRows<{ position: number | null }>(
        [
          () => statements.insertNumbered(table, columns, unless),
          () => single.insertNumbered(table, columns, unless),
        ],
        columns.length,
        rows,
      );
      // A single row that was left out returns nothing.
      return rows.map((_, index) => inserted[index]?.position ?? undefined);
    },
    async appendEvents(events, now, assumed) {
      const hasDeliveries = events.some(({ endpoints }) => endpoints.length > 0);
      const rows = await call<{ append_events: number | null }>("append_events", {
        p_now: now,
        p_events: JSON.stringify(events),
        p_assumed: assumed === undefined ? null : JSON.stringify(assumed),
        p_channel: hasDeliveries && channel !== undefined ? channel : null,
      });
      // The function returns a row for each event, or none.
      return rows.length < events.length ? undefined : rows.map((row) => row.append_events ?? undefined);
    },
    async leaseDue({ now, token, leaseUntil, room, perEndpoint, perSecond, turn, isChecking }) {
      const [row] = await call<Record<"leased_rows" | "served_endpoints" | "next_times", string>>(
        "lease_due",
        {
          p_now: now,
          p_token: token,
          p_lease_until: leaseUntil,
          p_fast_room: Math.max(0, room.fast),
          p_slow_room: Math.max(0, room.slow),
          p_per_endpoint: perEndpoint,
          p_per_second: perSecond,
          p_turn: turn,
          p_is_checking: String(isChecking),
        },
      );
      if (row?.next_times == null) return undefined;
      return {
        rows: JSON.parse(row.leased_rows) as LeasedRound["rows"],
        endpoints: JSON.parse(row.served_endpoints) as LeasedRound["endpoints"],
        next: JSON.parse(row.next_times) as LeasedRound["next"],
      };
    },
    async settleDelivered({ now, perEndpoint, perSecond, turn, endpoints, deliveries }) {
      const [row] = await call<{ is_settled: string; wake_at: number | null }>("settle_delivered", {
        p_now: now,
        p_per_endpoint: perEndpoint,
        p_per_second: perSecond,
        p_turn: turn,
        p_endpoints: JSON.stringify(endpoints),
        p_deliveries: JSON.stringify(deliveries),
      });
      return row?.is_settled === "t" ? { wakeAt: row.wake_at } : undefined;
    },
    update: (table, keys, columns, rows) =>
      write(
        table,
        [() => statements.update(table, keys, columns), () => single.update(table, keys, columns)],
        keys.length + columns.length,
        rows,
      ),
    remove: (table, keys, rows) =>
      write(
        table,
        [() => statements.remove(table, keys), () => single.remove(table, keys)],
        keys.length,
        rows,
      ),
    async lock(name) {
      await sender.send("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", [`${schema} ${name}`]);
    },
  };
}
