/** The two databases behind one face, so that each test runs on both. */

import mysql from "mysql2/promise";
import pg from "pg";
import type { EventInput } from "../../../src/index.js";
import type { OutboxTransaction } from "../../../src/testing/index.js";
import { mysqlSource, pgSource, type SqlSource } from "../../../storage/outbox/index.js";
import { type DatabaseServer, startDatabase } from "./database-server.js";

export interface Table {
  readonly source: Omit<SqlSource<never>, "add">;
  /** A transaction on a connection of its own. */
  readonly begin: () => Promise<
    OutboxTransaction & { readonly addAll: (events: readonly EventInput[]) => Promise<readonly string[]> }
  >;
  /** Runs a statement with the name of the table in place of `outbox`. Resolves with its rows. */
  readonly sql: (text: string) => Promise<readonly Readonly<Record<string, unknown>>[]>;
  /** How the server would carry out the statement by which `claim` looks for due rows. */
  readonly claimPlan: () => Promise<string>;
  /** Ends the leases and delays of all rows that are not parked. */
  readonly expire: () => Promise<void>;
}

export interface Database {
  readonly kind: "postgres" | "mariadb";
  readonly server: DatabaseServer;
  /** With the table installed, and empty. */
  readonly table: (name: string) => Promise<Table>;
  readonly close: () => Promise<void>;
}

const POOL_SIZE = 20;

/**
 * How PostgreSQL and MariaDB report that they ended a statement because it and another waited for
 * each other.
 */
const DEADLOCK_CODES: readonly unknown[] = ["40P01", "ER_LOCK_DEADLOCK"];

/**
 * An update of all rows locks them in no particular order, so that two of them beside each other
 * may deadlock.
 */
async function untilNoDeadlock(statement: () => Promise<unknown>): Promise<void> {
  for (;;) {
    try {
      await statement();
      return;
    } catch (error) {
      if (!(error instanceof Error && "code" in error && DEADLOCK_CODES.includes(error.code))) throw error;
    }
  }
}

async function openPostgres(): Promise<Database> {
  const server = await startDatabase("postgres");
  const pool = new pg.Pool({ ...server.address, user: "postgres", database: "postgres", max: POOL_SIZE });
  // A connection that breaks while nothing runs on it tells the pool, or its holder.
  pool.on("error", () => {});
  pool.on("connect", (client) => client.on("error", () => {}));
  return {
    kind: "postgres",
    server,
    async table(name) {
      const source = pgSource({ pool, table: name });
      await source.install();
      const claimPlan = async (): Promise<string> => {
        let plan: unknown;
        const query = async (text: string, values: unknown[] = []) => {
          plan = (await pool.query(`EXPLAIN ${text}`, values)).rows;
          return { rows: [] };
        };
        await pgSource({ pool: { query }, table: name }).claim({ limit: 100, leaseMs: 60_000 });
        return JSON.stringify(plan);
      };
      const sql: Table["sql"] = async (text) =>
        (await pool.query(text.replaceAll("outbox", name))).rows as never;
      return {
        source,
        sql,
        claimPlan,
        expire: () =>
          untilNoDeadlock(() => sql("UPDATE outbox SET due_at = clock_timestamp() WHERE due_at IS NOT NULL")),
        async begin() {
          const client = await pool.connect();
          let isOver = false;
          const end = async (statement: string): Promise<void> => {
            if (isOver) return;
            isOver = true;
            try {
              await client.query(statement);
              client.release();
            } catch (error) {
              client.release(true);
              throw error;
            }
          };
          try {
            await client.query("BEGIN");
          } catch (error) {
            client.release(true);
            throw error;
          }
          return {
            add: (event) => source.add(client, event),
            addAll: (events) => source.add(client, events),
            commit: () => end("COMMIT"),
            rollback: () => end("ROLLBACK"),
          };
        },
      };
    },
    async close() {
      await pool.end();
      await server.stop();
    },
  };
}

async function openMariadb(): Promise<Database> {
  const server = await startDatabase("mariadb");
  const setup = await mysql.createConnection({ ...server.address, user: "root" });
  await setup.query("CREATE DATABASE host");
  await setup.end();
  const pool = mysql.createPool({
    ...server.address,
    user: "root",
    database: "host",
    connectionLimit: POOL_SIZE,
  });
  return {
    kind: "mariadb",
    server,
    async table(name) {
      const source = mysqlSource({ pool, table: name });
      await source.install();
      const claimPlan = async (): Promise<string> => {
        let plan: unknown;
        const execute = async (text: string): Promise<[unknown, unknown]> => {
          [plan] = await pool.query(`EXPLAIN ${text}`);
          return [[], undefined];
        };
        const query = async (): Promise<void> => {};
        const connection = { execute, query, release() {}, destroy() {} };
        const spy = { execute, query, getConnection: async () => connection };
        await mysqlSource({ pool: spy, table: name }).claim({ limit: 100, leaseMs: 60_000 });
        return JSON.stringify(plan);
      };
      const sql: Table["sql"] = async (text) =>
        (await pool.query(text.replaceAll("outbox", name)))[0] as never;
      return {
        source,
        sql,
        claimPlan,
        expire: () =>
          untilNoDeadlock(() => sql("UPDATE outbox SET due_at = UTC_TIMESTAMP(6) WHERE due_at IS NOT NULL")),
        async begin() {
          const connection = await pool.getConnection();
          let isOver = false;
          const end = async (statement: string): Promise<void> => {
            if (isOver) return;
            isOver = true;
            try {
              await connection.query(statement);
              connection.release();
            } catch (error) {
              connection.destroy();
              throw error;
            }
          };
          try {
            await connection.query("START TRANSACTION");
          } catch (error) {
            connection.destroy();
            throw error;
          }
          return {
            add: (event) => source.add(connection, event),
            addAll: (events) => source.add(connection, events),
            commit: () => end("COMMIT"),
            rollback: () => end("ROLLBACK"),
          };
        },
      };
    },
    async close() {
      await pool.end();
      await server.stop();
    },
  };
}

export const DATABASES = { postgres: openPostgres, mariadb: openMariadb } as const;
