/** Postgres as a storage under test: each address is a schema of its own. */

import pg from "pg";
import { type PostgresStorage, postgresStorage } from "../../../storage/postgres/index.js";
import { startDatabase } from "../../databases/support/database-server.js";
import { startPgBouncer } from "../../databases/support/pgbouncer.js";
import { inspectSql, type SqlConnection } from "./sql-inspector.js";
import type { OpenOptions, StorageAddress, StorageUnderTest } from "./storage-under-test.js";

type PostgresAddress = Extract<StorageAddress, { readonly kind: "postgres" }>;

/** Returns the URL and the schema of an address, which must be one on Postgres. */
export function toPostgres(address: StorageAddress): PostgresAddress {
  if (address.kind !== "postgres") throw new Error(`${address.kind} is not Postgres.`);
  return address;
}

export function connectPostgres(address: StorageAddress): SqlConnection {
  const { url, schema } = toPostgres(address);
  const pool = new pg.Pool({ connectionString: url, max: 2 });
  // The server is killed while nothing runs on a connection.
  pool.on("error", () => {});
  return {
    all: async (text) => (await pool.query(text.replace(/\{(\w+)\}/g, `"${schema}".$1`))).rows as never,
    async listTables() {
      const { rows } = await pool.query("SELECT tablename FROM pg_tables WHERE schemaname = $1", [schema]);
      return rows.map(({ tablename }: { tablename: string }) => tablename);
    },
    close: () => pool.end(),
  };
}

const open = (
  { url, schema, connections }: PostgresAddress,
  { time, contentChanges }: OpenOptions = {},
): PostgresStorage => postgresStorage({ url, schema, connections, time, limits: { contentChanges } });

interface PostgresOptions {
  /** Puts PgBouncer in transaction mode before the server. */
  readonly isPooled?: boolean;
}

/** Starts a Postgres server of its own. */
export async function startPostgresUnderTest({
  isPooled = false,
}: PostgresOptions = {}): Promise<StorageUnderTest> {
  const server = await startDatabase("postgres");
  if (!("port" in server.address)) throw new Error("Postgres listens on a port.");
  const { port } = server.address;
  const pooler = isPooled ? await startPgBouncer(port) : undefined;
  const urlOf = (on: number): string => `postgres://postgres@127.0.0.1:${on}/postgres`;
  let schemas = 0;
  return {
    kind: "postgres",
    server: { name: "Postgres", port, kill: server.kill, restart: server.restart },
    async fresh() {
      const address: PostgresAddress = {
        ...{ kind: "postgres", url: urlOf(pooler?.port ?? port), schema: `faults_${++schemas}` },
        connections: isPooled ? "transaction" : "session",
      };
      const storage = open(address);
      await storage.migrate();
      await storage.close();
      return address;
    },
    open: (address, options) => open(toPostgres(address), options),
    inspect: (address) => inspectSql(connectPostgres({ ...toPostgres(address), url: urlOf(port) })),
    through: (address, on) => ({ ...toPostgres(address), url: urlOf(on) }),
    async stop() {
      await pooler?.stop();
      await server.stop();
    },
  };
}
