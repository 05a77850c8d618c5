/** Writes the statements on the tables of one schema, each once: they depend on no values. */

import { createHash } from "node:crypto";
import type { Columns, ParameterType } from "../sql/database.js";
import type { SqlTable } from "../sql/table.js";

/** Statements for one row. Their parameters are its values. */
export interface SingleRowStatements {
  insert(table: SqlTable, columns: Columns, unless: Columns | undefined): string;
  insertNumbered(table: SqlTable, columns: Columns, unless: Columns | undefined): string;
  update(table: SqlTable, keys: Columns, columns: Columns): string;
  remove(table: SqlTable, keys: Columns): string;
  lockRows(table: SqlTable, key: string, columns: Columns): string;
}

export interface PostgresStatements {
  /** Returns a text with the names of its tables filled in. */
  query(text: string): string;
  forEach(text: string, types: readonly ParameterType[]): string;
  insert(table: SqlTable, columns: Columns, unless: Columns | undefined): string;
  insertNumbered(table: SqlTable, columns: Columns, unless: Columns | undefined): string;
  update(table: SqlTable, keys: Columns, columns: Columns): string;
  remove(table: SqlTable, keys: Columns): string;
  lockRows(table: SqlTable, key: string, columns: Columns): string;
  /**
   * The same for a single row, whose values are parameters of their own: quicker to plan, which
   * counts where the server keeps no plans.
   */
  readonly single: SingleRowStatements;
  /** Returns a call of a function of the schema, whose parameters have these names. */
  call(name: string, parameters: Columns): string;
  /**
   * Returns one statement that does what several do which each change another table. `count`: how
   * many parameters each of them has.
   */
  combine(parts: readonly { readonly text: string; readonly count: number }[]): string;
  /** Returns the name of the plan that the server keeps for a text; `undefined` without plans. */
  nameOf(text: string): string | undefined;
}

/** Returns the same function, which calls `write` once for each of its arguments. */
function memoize<A extends readonly unknown[]>(write: (...given: A) => string): (...given: A) => string {
  const known = new Map<string, string>();
  return (...given) => {
    const key = given.map((value) => (isTable(value) ? value.name : String(value))).join("\n");
    let text = known.get(key);
    if (text === undefined) {
      text = write(...given);
      known.set(key, text);
    }
    return text;
  };
}

const isTable = (value: unknown): value is SqlTable =>
  typeof value === "object" && value !== null && "columns" in value;

const getType = ({ columns }: SqlTable, column: string): "text" | "bigint" =>
  columns[column]?.startsWith("text") ? "text" : "bigint";

const toConflict = (unless: Columns | undefined): string =>
  unless === undefined ? "" : ` ON CONFLICT (${unless.join(", ")}) DO NOTHING`;

/** The parameters of the columns of rows. */
const toArrays = (table: SqlTable, columns: Columns): string =>
  columns.map((column, index) => `$${index + 1}::${getType(table, column)}[]`).join(", ");

const toUnnest = (table: SqlTable, columns: Columns): string =>
  `unnest(${toArrays(table, columns)}) AS r(${columns.join(", ")})`;

const toCondition = (keys: Columns): string => keys.map((key) => `t.${key} = r.${key}`).join(" AND ");

/** The parameters `$1`, `$2` … */
const toParameters = (columns: Columns): string => columns.map((_, index) => `$${index + 1}`).join(", ");

/** Counts the parameters of a text from another number on. */
const shiftParameters = (text: string, by: number): string =>
  text.replace(/\$([1-9][0-9]?)/g, (_, number: string) => `$${Number(number) + by}`);

const toEquals = (columns: Columns, from: number, separator: string): string =>
  columns.map((column, index) => `${column} = $${from + index}`).join(separator);

function createSingleRowStatements(toName: (name: string) => string): SingleRowStatements {
  const writeInsert = (table: SqlTable, columns: Columns, unless: Columns | undefined): string =>
    `INSERT INTO ${toName(table.name)} (${columns.join(", ")}) VALUES (${toParameters(columns)})${toConflict(unless)}`;
  return {
    insert: memoize(writeInsert),
    insertNumbered: memoize(
      (table: SqlTable, columns: Columns, unless: Columns | undefined) =>
        `${writeInsert(table, columns, unless)} RETURNING position`,
    ),
    update: memoize(
      (table: SqlTable, keys: Columns, columns: Columns) =>
        `UPDATE ${toName(table.name)} SET ${toEquals(columns, keys.length + 1, ", ")} WHERE ${toEquals(keys, 1, " AND ")}`,
    ),
    remove: memoize(
      (table: SqlTable, keys: Columns) =>
        `DELETE FROM ${toName(table.name)} WHERE ${toEquals(keys, 1, " AND ")}`,
    ),
    lockRows: memoize(
      (table: SqlTable, key: string, columns: Columns) =>
        `SELECT ${columns.join(", ")} FROM ${toName(table.name)} WHERE ${key} = $1 FOR UPDATE`,
    ),
  };
}

/**
 * Writes a query that runs `text`, whose parameters are `$1`, `$2` …, for each list of values. Its
 * own parameters are arrays. Only a query with an order needs its place in it.
 */
function writeForEach(text: string, types: readonly ParameterType[]): string {
  const inner = text.replace(/\$([1-9][0-9]?)/g, "r.a$1");
  const arrays = types.map((type, index) => `$${index + 1}::${type === "int" ? "bigint" : "text"}[]`);
  const names = types.map((_, index) => `a${index + 1}`);
  const place = inner.includes("ORDER BY") ? "pg_catalog.row_number() OVER ()" : "1";
  // Several arrays are syntax, and one is a function, which the host's schema may have too.
  const unnest = arrays.length === 1 ? "pg_catalog.unnest" : "unnest";
  return `SELECT q.* FROM ${unnest}(${arrays.join(", ")}) WITH ORDINALITY AS r(${names.join(", ")}, list)
    CROSS JOIN LATERAL (SELECT ${place} AS place, i.* FROM (${inner}) AS i) AS q ORDER BY r.list, q.place`;
}

/**
 * `isPrepared`: the server keeps a plan for each text on a connection. A pooler of transactions
 * gives each transaction another connection.
 */
export function createPostgresStatements(schema: string, isPrepared: boolean): PostgresStatements {
  const toName = (name: string): string => `"${schema}"."${name}"`;
  const fill = memoize((text: string) => text.replace(/\{([a-z_]+)\}/g, (_, name: string) => toName(name)));
  const join = memoize((counts: string, ...texts: readonly string[]) => {
    let before = 0;
    const shifted = texts.map((text, index) => {
      const own = shiftParameters(text, before);
      before += Number(counts.split(",")[index]);
      return own;
    });
    const others = shifted.slice(0, -1).map((text, index) => `write_${index + 1} AS (${text})`);
    return `WITH ${others.join(", ")} ${shifted.at(-1)}`;
  });
  const hash = memoize((text: string) => createHash("sha256").update(text).digest("hex").slice(0, 24));

  return {
    query: fill,
    single: createSingleRowStatements(toName),
    call: memoize((name: string, parameters: Columns) => {
      const list = parameters.map((parameter, index) => `${parameter} => $${index + 1}`).join(", ");
      return `SELECT * FROM ${toName(name)}(${list})`;
    }),
    combine: (parts) =>
      parts.length === 1 && parts[0]
        ? parts[0].text
        : join(parts.map(({ count }) => count).join(","), ...parts.map(({ text }) => text)),
    // Every process gives a text the same name.
    nameOf: (text) => (isPrepared ? `postbell_${hash(text)}` : undefined),
    forEach: memoize((text: string, types: readonly ParameterType[]) => writeForEach(fill(text), types)),
    insert: memoize(
      (table: SqlTable, columns: Columns, unless: Columns | undefined) =>
        `INSERT INTO ${toName(table.name)} (${columns.join(", ")}) SELECT * FROM ${toUnnest(table, columns)}${toConflict(unless)}`,
    ),
    // Takes the positions before the rows are inserted, so that each is known to belong to its row.
    insertNumbered: memoize((table: SqlTable, columns: Columns, unless: Columns | undefined) => {
      const list = columns.join(", ");
      return `WITH r AS MATERIALIZED (
          SELECT nextval('"${schema}"."${table.name}_position_seq"') AS position, u.*
            FROM unnest(${toArrays(table, columns)}) WITH ORDINALITY AS u(${list}, place)
        ), inserted AS (
          INSERT INTO ${toName(table.name)} (position, ${list}) SELECT position, ${list} FROM r ORDER BY place${toConflict(unless)} RETURNING position
        ) SELECT inserted.position FROM r LEFT JOIN inserted ON inserted.position = r.position ORDER BY r.place`;
    }),
    update: memoize((table: SqlTable, keys: Columns, columns: Columns) => {
      const set = columns.map((column) => `${column} = r.${column}`).join(", ");
      return `UPDATE ${toName(table.name)} AS t SET ${set} FROM ${toUnnest(table, [...keys, ...columns])} WHERE ${toCondition(keys)}`;
    }),
    remove: memoize(
      (table: SqlTable, keys: Columns) =>
        `DELETE FROM ${toName(table.name)} AS t USING ${toUnnest(table, keys)} WHERE ${toCondition(keys)}`,
    ),
    lockRows: memoize((table: SqlTable, key: string, columns: Columns) => {
      const list = columns.map((column) => `t.${column}`).join(", ");
      return `SELECT ${list} FROM ${toName(table.name)} AS t JOIN ${toUnnest(table, [key])} ON t.${key} = r.${key}
        ORDER BY t.position FOR UPDATE OF t`;
    }),
  };
}
