/**
 * Statements on a connection to Postgres: one for many rows, which travel as arrays. Writes of
 * several tables go together, and what is sent in one turn of the event loop leaves in one piece.
 */

import type { SqlTransaction, SqlValue, SqlValues } from "../sql/database.js";
import type { SqlTable } from "../sql/table.js";
import {
  ASSUMED_VALUES,
  DELIVERY_VALUES,
  decodeRead,
  EVENT_VALUES,
  KEY_VALUES,
  listAssumed,
  listEventValues,
} from "./append-functions.js";
import { type PgClient, runQuery } from "./client.js";
import {
  DELIVERED_ENDPOINT_VALUES,
  decodeLeased,
  listDelivered,
  listDeliveredEndpoints,
  REFUSED,
} from "./delivery-functions.js";
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

const NOTHING_ASSUMED = Array.from({ length: ASSUMED_VALUES }, () => null);

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
    appends: {
      async read(keys, accounts) {
        const names = accounts.map((name) => [name]);
        const values = [...toArrays(KEY_VALUES, keys), ...toArrays(1, names)];
        const [row] = await sender.send<Parameters<typeof decodeRead>[0]>(statements.appends.read, values);
        return row === undefined ? { known: [], receivers: [] } : decodeRead(row);
      },
      async insert(added, now, assumed) {
        const { times, events, deliveries } = listEventValues(added, now);
        const accounts = listAssumed(assumed);
        const rows = await sender.send<{ position: number | null }>(statements.appends.insert, [
          ...times,
          ...toArrays(EVENT_VALUES, events),
          ...toArrays(DELIVERY_VALUES, deliveries),
          deliveries.length > 0 ? (channel ?? null) : null,
          ...(accounts === null ? NOTHING_ASSUMED : toArrays(ASSUMED_VALUES, accounts)),
        ]);
        // The function returns a row for each event, or none.
        return rows.length < added.length ? undefined : rows.map(({ position }) => position ?? undefined);
      },
    },
    deliveries: {
      async lease({ now, token, leaseUntil, room, perEndpoint, perSecond, turn, isChecking }) {
        const limits = [Math.max(0, room.fast), Math.max(0, room.slow), perEndpoint];
        const values = [now, token, leaseUntil, ...limits, turn, isChecking ? 1 : 0];
        const { lease, ratedLease } = statements.deliveries;
        return decodeLeased(
          perSecond === null
            ? await sender.send(lease, values)
            : await sender.send(ratedLease, [...values, perSecond]),
        );
      },
      async settle(batch) {
        const { now, perEndpoint, perSecond, turn } = batch;
        const { settle, ratedSettle } = statements.deliveries;
        const text = perSecond === null ? settle : ratedSettle;
        const [row] = await sender.send<{ wake_at: number | null }>(text, [
          ...[now, perEndpoint, turn],
          ...toArrays(DELIVERED_ENDPOINT_VALUES, listDeliveredEndpoints(batch)),
          ...toArrays(
            1,
            batch.tokens.map((token) => [token]),
          ),
          ...listDelivered(batch),
          ...(perSecond === null ? [] : [perSecond]),
        ]);
        const wakeAt = row?.wake_at ?? null;
        return wakeAt === REFUSED ? undefined : { wakeAt };
      },
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
