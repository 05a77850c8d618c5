/** Statements on a connection to Postgres: one for many rows, which travel as arrays. */

import type { SqlTransaction, SqlValue, SqlValues } from "../sql/database.js";
import {
  ASSUMED_VALUES,
  DELIVERY_VALUES,
  decodeRead,
  EVENT_VALUES,
  KEY_VALUES,
  listAssumed,
  listEventValues,
} from "./append-functions.js";
import type { PgClient } from "./client.js";
import { createStatementSender } from "./statement-sender.js";
import type { PostgresStatements } from "./statements.js";

const toText = (value: SqlValue): string =>
  typeof value === "string"
    ? `"${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`
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
  const sender = createStatementSender(client, (text) => statements.nameOf(text));
  /** Runs a statement for many rows, or the one for a single row. */
  const runRows = async <R>(
    [forMany, forOne]: readonly [forMany: () => string, forOne: () => string],
    count: number,
    rows: readonly SqlValues[],
  ): Promise<readonly R[]> => {
    const [first, ...others] = rows;
    if (first === undefined) return [];
    if (others.length === 0) return sender.send<R>(forOne(), [...first]);
    return sender.send<R>(forMany(), toArrays(count, rows));
  };
  /** Sends a statement whose result nobody reads, and goes on. */
  const write = async (
    [forMany, forOne]: readonly [forMany: () => string, forOne: () => string],
    count: number,
    rows: readonly SqlValues[],
  ): Promise<void> => {
    const [first, ...others] = rows;
    if (first === undefined) return;
    if (others.length === 0) sender.sendUnread(forOne(), [...first]);
    else sender.sendUnread(forMany(), toArrays(count, rows));
  };
  const { single } = statements;

  return {
    skipLocked: " FOR UPDATE SKIP LOCKED",
    lockOnly: (alias) => ` FOR UPDATE OF ${alias}`,
    settled: sender.settled,
    begin: sender.sendPlain,
    rollBack: () => sender.sendLast("ROLLBACK"),
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
    update: (table, keys, columns, rows) =>
      write(
        [() => statements.update(table, keys, columns), () => single.update(table, keys, columns)],
        keys.length + columns.length,
        rows,
      ),
    remove: (table, keys, rows) =>
      write([() => statements.remove(table, keys), () => single.remove(table, keys)], keys.length, rows),
    async lock(name) {
      await sender.send("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", [`${schema} ${name}`]);
    },
  };
}
