/**
 * Statements on an open SQLite database, each compiled once. Several rows travel as one JSON text,
 * which costs half as much as a statement for each.
 */

import type { Columns, SqlTransaction, SqlValue, SqlValues } from "../sql/database.js";
import { compileParameters, prepare, type SqliteHandle, type SqliteStatement } from "./handle.js";
import { fillTableNames, toTableName } from "./prepare-file.js";

/** A statement, and which of its parameters each value goes to. */
interface Compiled {
  statement: SqliteStatement;
  order: number[];
  /** True if the parameters are used once each and in order. */
  isPlain: boolean;
  isQuery: boolean;
}

const toParameters = (count: number, from = 1): string =>
  Array.from({ length: count }, (_, index) => `$${index + from}`).join(", ");

/** From so many rows on, one statement takes less time than a statement for each. */
const MANY = 4;

/** The most statements that are compiled for the columns that are the same in all rows. */
const MAX_COMPILED = 400;

/** Rows as a JSON table: an expression for each column, and the values of its parameters. */
interface JsonTable {
  columns: Columns;
  from: string;
  values: SqlValues;
}

/**
 * Writes rows as a table. A value that all rows have is a separate parameter, unless `isPlain`:
 * each set of such columns makes another text.
 */
function toJsonTable(rows: readonly SqlValues[], count: number, isPlain: boolean): JsonTable {
  const values: SqlValue[] = [];
  const varying: number[] = [];
  const [first = []] = rows;
  const isSame = (column: number): boolean => rows.every((row) => row[column] === first[column]);
  const columns = Array.from({ length: count }, (_, column) => {
    if (isPlain || !isSame(column)) return `r.value ->> ${varying.push(column) - 1}`;
    return `$${values.push(first[column] ?? null)}`;
  });
  values.push(JSON.stringify(rows.map((row) => varying.map((column) => row[column] ?? null))));
  return { columns, from: `json_each($${values.length}) AS r`, values };
}

const toConditions = (columns: Columns): string =>
  columns.map((column, index) => `${column} = $${index + 1}`).join(" AND ");

/**
 * @param requireTransaction throws if the transaction has ended. It is called before each
 *   statement, which would commit by itself then.
 */
export function createSqliteTransaction(
  handle: SqliteHandle,
  requireTransaction: () => void = () => {},
): SqlTransaction {
  // All texts are those of this package, so there is a limited number of them.
  const compiled = new Map<string, Compiled>();

  const compile = (text: string): Compiled => {
    requireTransaction();
    const cached = compiled.get(text);
    if (cached !== undefined) return cached;
    const parameters = compileParameters(fillTableNames(text));
    const made = {
      statement: prepare(handle, parameters.text),
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
    const prepared = compile(text);
    if (prepared.isQuery) return prepared.statement.all(...toValues(prepared, values)) as R[];
    prepared.statement.run(...toValues(prepared, values));
    return [];
  };
  const runEach = (text: string, rows: readonly SqlValues[]): void => {
    if (rows.length === 0) return;
    const prepared = compile(text);
    for (const row of rows) prepared.statement.run(...toValues(prepared, row));
  };
  /** Runs a statement over a JSON table. */
  const runMany = (rows: readonly SqlValues[], count: number, write: (table: JsonTable) => string): void => {
    let table = toJsonTable(rows, count, false);
    let text = write(table);
    if (compiled.size > MAX_COMPILED && !compiled.has(text)) {
      table = toJsonTable(rows, count, true);
      text = write(table);
    }
    runEach(text, [table.values]);
  };
  const toConflict = (unless?: Columns): string =>
    unless === undefined ? "" : ` ON CONFLICT (${unless.join(", ")}) DO NOTHING`;
  const toInsert = (table: string, columns: Columns, unless?: Columns): string =>
    `INSERT INTO ${toTableName(table)} (${columns.join(", ")}) VALUES (${toParameters(columns.length)})${toConflict(unless)}`;

  return {
    skipLocked: "",
    all: async (text, values = []) => query(text, values),
    forEach: async (text, _, lists) => lists.flatMap((values) => query(text, values)) as never,
    async lockRows(table, key, values, columns = ["*"]) {
      const text = `SELECT ${columns.join(", ")} FROM {${table.name}} WHERE ${key}`;
      if (values.length <= 1) return values.flatMap((value) => query(`${text} = $1`, [value])) as never;
      const many = `${text} IN (SELECT value FROM json_each($1)) ORDER BY position`;
      return query(many, [JSON.stringify(values)]) as never;
    },
    async insert({ name }, columns, rows, unless) {
      if (rows.length < MANY) runEach(toInsert(name, columns, unless), rows);
      else {
        const into = `INSERT INTO ${toTableName(name)} (${columns.join(", ")})`;
        runMany(rows, columns.length, (table) => {
          // Without the condition, SQLite takes ON for that of a join.
          return `${into} SELECT ${table.columns.join(", ")} FROM ${table.from} WHERE true${toConflict(unless)}`;
        });
      }
    },
    async insertNumbered({ name }, columns, rows, unless) {
      const prepared = compile(toInsert(name, columns, unless));
      return rows.map((row) => {
        const { changes, lastInsertRowid } = prepared.statement.run(...toValues(prepared, row));
        return Number(changes) === 0 ? undefined : Number(lastInsertRowid);
      });
    },
    async update({ name }, keys, columns, rows) {
      const into = toTableName(name);
      if (rows.length < MANY) {
        const set = columns.map((column, index) => `${column} = $${keys.length + index + 1}`).join(", ");
        runEach(`UPDATE ${into} SET ${set} WHERE ${toConditions(keys)}`, rows);
      } else {
        runMany(rows, keys.length + columns.length, (table) => {
          const set = columns.map((column, index) => `${column} = ${table.columns[keys.length + index]}`);
          const conditions = keys.map((key, index) => `${into}.${key} = ${table.columns[index]}`);
          return `UPDATE ${into} SET ${set.join(", ")} FROM ${table.from} WHERE ${conditions.join(" AND ")}`;
        });
      }
    },
    async remove({ name }, keys, rows) {
      const from = `DELETE FROM ${toTableName(name)} WHERE`;
      if (rows.length < MANY) runEach(`${from} ${toConditions(keys)}`, rows);
      else {
        runMany(rows, keys.length, (table) => {
          return `${from} (${keys.join(", ")}) IN (SELECT ${table.columns.join(", ")} FROM ${table.from})`;
        });
      }
    },
    // One connection at a time writes to a file.
    lock: async () => {},
  };
}
