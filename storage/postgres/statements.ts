/** Writes the statements on the tables of one schema, each once: they depend on no values. */

import { createHash } from "node:crypto";
import type { Columns, ParameterType } from "../sql/database.js";
import type { SqlTable } from "../sql/table.js";

/** A statement, and how many parameters it has. */
export interface CountedStatement {
  text: string;
  count: number;
}

/**
 * Statements for many rows take an array for each column. With `isOne` they are for a single row,
 * whose values are separate parameters: quicker to plan, which counts where the server keeps no
 * plans.
 */
export interface PostgresStatements {
  /** Returns a text with the names of its tables filled in. */
  query(text: string): string;
  /** Returns a query that runs `text` for each list of values. */
  forEach(text: string, types: readonly ParameterType[]): string;
  insert(isOne: boolean, table: SqlTable, columns: Columns, unless: Columns | undefined): string;
  insertNumbered(isOne: boolean, table: SqlTable, columns: Columns, unless: Columns | undefined): string;
  update(isOne: boolean, table: SqlTable, keys: Columns, columns: Columns): string;
  remove(isOne: boolean, table: SqlTable, keys: Columns): string;
  lockRows(isOne: boolean, table: SqlTable, key: string, columns: Columns): string;
  /** Returns a call of a function of the schema, whose parameters have these names. */
  call(name: string, parameters: Columns): string;
  /** Returns one statement that does what several do which each change another table. */
  combine(parts: CountedStatement[]): string;
  /** Returns the name of the plan that the server keeps for a text; `undefined` without plans. */
  nameOf(text: string): string | undefined;
}

/** Types of parameters that are JSON, which a connection of the host has to be told. */
const JSON_PARAMETERS = new Map([
  ["p_events", "json"],
  ["p_assumed", "json"],
  ["p_endpoints", "jsonb"],
  ["p_deliveries", "jsonb"],
]);

const isTable = (value: unknown): value is SqlTable =>
  typeof value === "object" && value !== null && "columns" in value;

/** Returns the same function, which calls `write` once for each of its arguments. */
function memoize<A extends unknown[]>(write: (...values: A) => string): (...values: A) => string {
  const texts = new Map<string, string>();
  return (...values) => {
    const key = values.map((value) => (isTable(value) ? value.name : String(value))).join("\n");
    let text = texts.get(key);
    if (text === undefined) {
      text = write(...values);
      texts.set(key, text);
    }
    return text;
  };
}

/** The parameters of the columns of rows. */
const toArrays = ({ columns: types }: SqlTable, columns: Columns): string =>
  columns
    .map((column, index) => `$${index + 1}::${types[column]?.startsWith("text") ? "text" : "bigint"}[]`)
    .join(", ");

const toUnnest = (table: SqlTable, columns: Columns): string =>
  `unnest(${toArrays(table, columns)}) AS r(${columns.join(", ")})`;

/** The parameters `$1`, `$2` … */
const toParameters = (columns: Columns): string => columns.map((_, index) => `$${index + 1}`).join(", ");

const toEquals = (columns: Columns, from: number, separator: string): string =>
  columns.map((column, index) => `${column} = $${from + index}`).join(separator);

const toConflict = (unless: Columns | undefined): string =>
  unless === undefined ? "" : ` ON CONFLICT (${unless.join(", ")}) DO NOTHING`;

/** Counts the parameters of a text from another number on. */
const shiftParameters = (text: string, by: number): string =>
  text.replace(/\$([1-9][0-9]?)/g, (_, number: string) => `$${Number(number) + by}`);

/** Several statements as one: each of the others is a part of the last. */
function join(counts: string, ...texts: string[]): string {
  let before = 0;
  const shifted = texts.map((text, index) => {
    const part = shiftParameters(text, before);
    before += Number(counts.split(",")[index]);
    return part;
  });
  const others = shifted.slice(0, -1).map((text, index) => `write_${index + 1} AS (${text})`);
  return `WITH ${others.join(", ")} ${shifted.at(-1)}`;
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
  const hash = memoize((text: string) => createHash("sha256").update(text).digest("hex").slice(0, 24));
  const combine = memoize(join);

  return {
    query: fill,
    forEach: memoize((text, types) => writeForEach(fill(text), types)),
    insert: memoize((isOne, table, columns, unless) => {
      const rows = isOne ? `VALUES (${toParameters(columns)})` : `SELECT * FROM ${toUnnest(table, columns)}`;
      return `INSERT INTO ${toName(table.name)} (${columns.join(", ")}) ${rows}${toConflict(unless)}`;
    }),
    // Takes the positions before the rows are inserted, so that each is known to belong to its row.
    insertNumbered: memoize((isOne, table, columns, unless) => {
      const [name, list, conflict] = [toName(table.name), columns.join(", "), toConflict(unless)];
      if (isOne)
        return `INSERT INTO ${name} (${list}) VALUES (${toParameters(columns)})${conflict} RETURNING position`;
      return `WITH r AS MATERIALIZED (
          SELECT nextval('"${schema}"."${table.name}_position_seq"') AS position, u.*
            FROM unnest(${toArrays(table, columns)}) WITH ORDINALITY AS u(${list}, place)
        ), inserted AS (
          INSERT INTO ${name} (position, ${list}) SELECT position, ${list} FROM r ORDER BY place${conflict} RETURNING position
        ) SELECT inserted.position FROM r LEFT JOIN inserted ON inserted.position = r.position ORDER BY r.place`;
    }),
    update: memoize((isOne, table, keys, columns) => {
      if (isOne)
        return `UPDATE ${toName(table.name)} SET ${toEquals(columns, keys.length + 1, ", ")} WHERE ${toEquals(keys, 1, " AND ")}`;
      const set = columns.map((column) => `${column} = r.${column}`).join(", ");
      const condition = keys.map((key) => `t.${key} = r.${key}`).join(" AND ");
      return `UPDATE ${toName(table.name)} AS t SET ${set} FROM ${toUnnest(table, [...keys, ...columns])} WHERE ${condition}`;
    }),
    remove: memoize((isOne, table, keys) => {
      if (isOne) return `DELETE FROM ${toName(table.name)} WHERE ${toEquals(keys, 1, " AND ")}`;
      const condition = keys.map((key) => `t.${key} = r.${key}`).join(" AND ");
      return `DELETE FROM ${toName(table.name)} AS t USING ${toUnnest(table, keys)} WHERE ${condition}`;
    }),
    lockRows: memoize((isOne, table, key, columns) => {
      const list = columns.map((column) => `t.${column}`).join(", ");
      if (isOne) return `SELECT ${list} FROM ${toName(table.name)} AS t WHERE ${key} = $1 FOR UPDATE`;
      return `SELECT ${list} FROM ${toName(table.name)} AS t JOIN ${toUnnest(table, [key])} ON t.${key} = r.${key}
        ORDER BY t.position FOR UPDATE OF t`;
    }),
    call: memoize((name, parameters) => {
      const list = parameters.map((parameter, index) => {
        const type = JSON_PARAMETERS.get(parameter);
        return `${parameter} => $${index + 1}${type === undefined ? "" : `::${type}`}`;
      });
      return `SELECT * FROM ${toName(name)}(${list.join(", ")})`;
    }),
    combine: (parts) =>
      parts.length === 1 && parts[0]
        ? parts[0].text
        : combine(parts.map(({ count }) => count).join(","), ...parts.map(({ text }) => text)),
    // Every process gives a text the same name.
    nameOf: (text) => (isPrepared ? `postbell_${hash(text)}` : undefined),
  };
}
