/** Statements on a connection to Postgres: one for many rows, which travel as arrays. */

import type { SqlTransaction, SqlValue, SqlValues } from "../sql/database.js";
import type { PgClient } from "./client.js";
import { createStatementSender } from "./statement-sender.js";
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

/** Returns the statements of one transaction on a connection. */
export function createPostgresTransaction(
  client: PgClient,
  schema: string,
  statements: PostgresStatements,
): PostgresTransaction {
  const sender = createStatementSender(client, (text) => statements.nameOf(text));
  /** Runs a statement for many rows, if there are any. */
  const runRows = async <R>(
    text: string,
    count: number,
    rows: readonly SqlValues[],
  ): Promise<readonly R[]> => (rows.length === 0 ? [] : sender.send<R>(text, toArrays(count, rows)));
  /** Sends a statement whose result nobody reads, and goes on. */
  const write = async (text: string, count: number, rows: readonly SqlValues[]): Promise<void> => {
    if (rows.length > 0) sender.sendUnread(text, toArrays(count, rows));
  };

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
    forEach: (text, types, lists) => runRows(statements.forEach(text, types), types.length, lists),
    lockRows: (table, key, values, columns = ["*"]) =>
      runRows(
        statements.lockRows(table, key, columns),
        1,
        values.map((value) => [value]),
      ),
    insert: (table, columns, rows, unless) =>
      write(statements.insert(table, columns, unless), columns.length, rows),
    async insertNumbered(table, columns, rows, unless) {
      const text = statements.insertNumbered(table, columns, unless);
      const inserted = await runRows<{ position: number | null }>(text, columns.length, rows);
      return inserted.map(({ position }) => position ?? undefined);
    },
    update: (table, keys, columns, rows) =>
      write(statements.update(table, keys, columns), keys.length + columns.length, rows),
    remove: (table, keys, rows) => write(statements.remove(table, keys), keys.length, rows),
    async lock(name) {
      await sender.send("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", [`${schema} ${name}`]);
    },
  };
}
