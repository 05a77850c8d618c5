/** Statements on a connection to Postgres: one for many rows, which travel as arrays. */

import { createHash } from "node:crypto";
import type { ParameterType, SqlTransaction, SqlValue, SqlValues } from "../sql/database.js";
import type { Table } from "../sql/table.js";
import type { PgClient } from "./client.js";
import { createSender } from "./sender.js";

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

const getType = ({ columns }: Table, column: string): "text" | "bigint" =>
  columns[column]?.startsWith("text") ? "text" : "bigint";

const toUnnest = (types: readonly string[], names: readonly string[]): string =>
  `unnest(${types.map((type, index) => `$${index + 1}::${type}[]`).join(", ")}) AS r(${names.join(", ")})`;

/** Texts of statements, which depend on a table and the names of columns only. */
class StatementTexts {
  readonly #known = new Map<string, string>();

  get(key: string, write: () => string): string {
    let text = this.#known.get(key);
    if (text === undefined) {
      text = write();
      this.#known.set(key, text);
    }
    return text;
  }
}

export interface PostgresTransaction extends SqlTransaction {
  /** Resolves when all statements have succeeded; rejects with the error of the first that failed. */
  settled(): Promise<void>;
  /** Sends the statements that begin the transaction. */
  begin(text: string): void;
  /** Rolls back. Rejects if the connection failed. */
  rollBack(): Promise<void>;
  /** Commits. Rejects with the error of the first statement that failed: then nothing is stored. */
  commit(): Promise<void>;
}

export interface PostgresStatements {
  /** Returns the statements on one connection. */
  on(client: PgClient): PostgresTransaction;
}

/** Names texts, so that every process gives a text the same name. */
const createNames = (): ((text: string) => string) => {
  const names = new StatementTexts();
  return (text) =>
    names.get(text, () => `postbell_${createHash("sha256").update(text).digest("hex").slice(0, 24)}`);
};

/**
 * Writes the statements for the tables of one schema. `isPrepared`: the server plans each text once
 * for a connection. A pooler of transactions gives each transaction another connection.
 */
export function createPostgresStatements(schema: string, isPrepared: boolean): PostgresStatements {
  const texts = new StatementTexts();
  const nameOf = isPrepared ? createNames() : () => undefined;
  const toName = (name: string): string => `"${schema}"."${name}"`;
  const fill = (text: string): string =>
    texts.get(text, () => text.replace(/\{([a-z_]+)\}/g, (_, name: string) => toName(name)));

  const writeForEach = (text: string, types: readonly ParameterType[]): string => {
    const parameters = types.map((type, index) => `$${index + 1}::${type === "int" ? "bigint" : "text"}[]`);
    const names = types.map((_, index) => `a${index + 1}`);
    const inner = fill(text).replace(/\$([1-9][0-9]?)/g, "r.a$1");
    // Only a query with an order of its own needs its place in it.
    const ordered = text.includes("ORDER BY")
      ? `(SELECT row_number() OVER () AS place, i.* FROM (${inner}) AS i)`
      : `(SELECT 1 AS place, i.* FROM (${inner}) AS i)`;
    return `SELECT q.* FROM unnest(${parameters.join(", ")}) WITH ORDINALITY AS r(${names.join(", ")}, list)
      CROSS JOIN LATERAL ${ordered} AS q ORDER BY r.list, q.place`;
  };

  const writeForEachOf = (text: string, outer: string): string => {
    const inner = fill(text).replace(/\$([1-9][0-9]?)/g, "r.a$1");
    return `SELECT q.* FROM (SELECT row_number() OVER () AS list, o.* FROM (${fill(outer)}) AS o) AS r
      CROSS JOIN LATERAL (SELECT row_number() OVER () AS place, i.* FROM (${inner}) AS i) AS q ORDER BY r.list, q.place`;
  };

  const writeInsert = (table: Table, columns: readonly string[], unless?: readonly string[]): string => {
    const types = columns.map((column) => getType(table, column));
    const conflict = unless === undefined ? "" : ` ON CONFLICT (${unless.join(", ")}) DO NOTHING`;
    return `INSERT INTO ${toName(table.name)} (${columns.join(", ")}) SELECT * FROM ${toUnnest(types, columns)}${conflict}`;
  };

  /** Takes the positions before the rows are inserted, so that each is known to belong to its row. */
  const writeNumbered = (table: Table, columns: readonly string[], unless?: readonly string[]): string => {
    const list = columns.join(", ");
    const types = columns.map((column, index) => `$${index + 1}::${getType(table, column)}[]`);
    const conflict = unless === undefined ? "" : ` ON CONFLICT (${unless.join(", ")}) DO NOTHING`;
    return `WITH r AS MATERIALIZED (
        SELECT nextval('"${schema}"."${table.name}_position_seq"') AS position, u.*
          FROM unnest(${types.join(", ")}) WITH ORDINALITY AS u(${list}, place)
      ), inserted AS (
        INSERT INTO ${toName(table.name)} (position, ${list}) SELECT position, ${list} FROM r ORDER BY place${conflict} RETURNING position
      ) SELECT inserted.position FROM r LEFT JOIN inserted ON inserted.position = r.position ORDER BY r.place`;
  };

  const writeUpdate = (table: Table, keys: readonly string[], columns: readonly string[]): string => {
    const names = [...keys, ...columns];
    const types = names.map((column) => getType(table, column));
    const set = columns.map((column) => `${column} = r.${column}`).join(", ");
    const where = keys.map((key) => `t.${key} = r.${key}`).join(" AND ");
    return `UPDATE ${toName(table.name)} AS t SET ${set} FROM ${toUnnest(types, names)} WHERE ${where}`;
  };

  const writeRemove = (table: Table, keys: readonly string[]): string => {
    const types = keys.map((key) => getType(table, key));
    const where = keys.map((key) => `t.${key} = r.${key}`).join(" AND ");
    return `DELETE FROM ${toName(table.name)} AS t USING ${toUnnest(types, keys)} WHERE ${where}`;
  };

  const writeLock = (table: Table, key: string, columns: readonly string[]): string =>
    `SELECT ${columns.map((column) => `t.${column}`).join(", ")} FROM ${toName(table.name)} AS t JOIN ${toUnnest([getType(table, key)], ["wanted"])} ON t.${key} = r.wanted
      ORDER BY t.${key} FOR UPDATE OF t`;

  const on = (client: PgClient): PostgresTransaction => {
    const sender = createSender(client, nameOf);
    const run = <R>(text: string, values: unknown[]): Promise<readonly R[]> => sender.send(text, values);
    /** Runs a statement for many rows, if there are any. */
    const runRows = async <R>(
      text: string,
      count: number,
      rows: readonly SqlValues[],
    ): Promise<readonly R[]> => (rows.length === 0 ? [] : run<R>(text, toArrays(count, rows)));
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
      all: (text, values = []) => run(fill(text), [...values]),
      forEach: (text, types, lists) =>
        runRows(
          texts.get(`each ${types.join()} ${text}`, () => writeForEach(text, types)),
          types.length,
          lists,
        ),
      forEachOf: (text, outer) =>
        run(
          texts.get(`of ${outer.text} ${text}`, () => writeForEachOf(text, outer.text)),
          [...outer.values],
        ),
      lockRows: (table, key, values, columns = ["*"]) =>
        runRows(
          texts.get(`lock ${table.name} ${key} ${columns.join()}`, () => writeLock(table, key, columns)),
          1,
          values.map((value) => [value]),
        ),
      async insert(table, columns, rows, unless) {
        const key = `insert ${table.name} ${columns.join()} ${unless?.join()}`;
        await write(
          texts.get(key, () => writeInsert(table, columns, unless)),
          columns.length,
          rows,
        );
      },
      async insertNumbered(table, columns, rows, unless) {
        const key = `number ${table.name} ${columns.join()} ${unless?.join()}`;
        const text = texts.get(key, () => writeNumbered(table, columns, unless));
        const inserted = await runRows<{ position: number | null }>(text, columns.length, rows);
        return inserted.map(({ position }) => position ?? undefined);
      },
      async update(table, keys, columns, rows) {
        const key = `update ${table.name} ${keys.join()} ${columns.join()}`;
        const text = texts.get(key, () => writeUpdate(table, keys, columns));
        await write(text, keys.length + columns.length, rows);
      },
      async remove(table, keys, rows) {
        const key = `remove ${table.name} ${keys.join()}`;
        await write(
          texts.get(key, () => writeRemove(table, keys)),
          keys.length,
          rows,
        );
      },
      async lock(name) {
        await run("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", [`${schema} ${name}`]);
      },
    };
  };
  return { on };
}
