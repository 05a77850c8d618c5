/** Statements on an open SQLite database: one for each row, each compiled once. */

import type { SqlTransaction, SqlValue, SqlValues } from "../sql/database.js";
import { compileParameters, type SqliteHandle, type SqliteStatement } from "./handle.js";
import { fillTableNames, toTableName } from "./schema.js";

/** A statement, and which of its parameters each value goes to. */
interface Compiled {
  readonly statement: SqliteStatement;
  readonly order: readonly number[];
  /** True if the parameters are used once each and in order. */
  readonly isPlain: boolean;
  readonly isQuery: boolean;
}

const toParameters = (count: number, from = 1): string =>
  Array.from({ length: count }, (_, index) => `$${index + from}`).join(", ");

const toConditions = (columns: readonly string[]): string =>
  columns.map((column, index) => `${column} = $${index + 1}`).join(" AND ");

export function createSqliteTransaction(handle: SqliteHandle): SqlTransaction {
  // All texts are those of this package, so there is a limited number of them.
  const compiled = new Map<string, Compiled>();

  const compile = (text: string): Compiled => {
    const known = compiled.get(text);
    if (known !== undefined) return known;
    const parameters = compileParameters(fillTableNames(text));
    const made = {
      statement: handle.prepare(parameters.text),
      order: parameters.order,
      isPlain: parameters.order.every((place, index) => place === index),
      isQuery: text.startsWith("SELECT"),
    };
    compiled.set(text, made);
    return made;
  };
  const toValues = ({ order, isPlain }: Compiled, values: SqlValues): SqlValue[] =>
    isPlain ? (values as SqlValue[]) : order.map((place) => values[place] ?? null);
  const query = <R>(text: string, values: SqlValues): R[] => {
    const own = compile(text);
    if (own.isQuery) return own.statement.all(...toValues(own, values)) as R[];
    own.statement.run(...toValues(own, values));
    return [];
  };
  const runEach = (text: string, rows: readonly SqlValues[]): void => {
    if (rows.length === 0) return;
    const own = compile(text);
    for (const row of rows) own.statement.run(...toValues(own, row));
  };
  const toInsert = (table: string, columns: readonly string[], unless?: readonly string[]): string =>
    `INSERT INTO ${toTableName(table)} (${columns.join(", ")}) VALUES (${toParameters(columns.length)})${
      unless === undefined ? "" : ` ON CONFLICT (${unless.join(", ")}) DO NOTHING`
    }`;

  return {
    skipLocked: "",
    lockOnly: () => "",
    all: async (text, values = []) => query(text, values),
    forEach: async (text, _, lists) => lists.flatMap((values) => query(text, values)) as never,
    async lockRows(table, key, values, columns = ["*"]) {
      const text = `SELECT ${columns.join(", ")} FROM {${table.name}} WHERE ${key} = $1`;
      const sorted = [...values].sort((a, b) => ((a ?? 0) < (b ?? 0) ? -1 : 1));
      return sorted.flatMap((value) => query(text, [value])) as never;
    },
    async insert({ name }, columns, rows, unless) {
      runEach(toInsert(name, columns, unless), rows);
    },
    async insertNumbered({ name }, columns, rows, unless) {
      const own = compile(toInsert(name, columns, unless));
      return rows.map((row) => {
        const { changes, lastInsertRowid } = own.statement.run(...toValues(own, row));
        return Number(changes) === 0 ? undefined : Number(lastInsertRowid);
      });
    },
    async update({ name }, keys, columns, rows) {
      const set = columns.map((column, index) => `${column} = $${keys.length + index + 1}`).join(", ");
      runEach(`UPDATE ${toTableName(name)} SET ${set} WHERE ${toConditions(keys)}`, rows);
    },
    async remove({ name }, keys, rows) {
      runEach(`DELETE FROM ${toTableName(name)} WHERE ${toConditions(keys)}`, rows);
    },
    // One connection at a time writes to a file.
    lock: async () => {},
  };
}
