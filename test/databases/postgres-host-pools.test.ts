/** Pools of a host whose settings change what queries return, or when they are given up. */

import pg from "pg";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { type PostgresStorage, postgresStorage } from "../../storage/postgres/index.js";
import { codeOf, driveStore, newEvent } from "../faults/support/store-driver.js";
import { type DatabaseServer, startDatabase } from "./support/database-server.js";

let server: DatabaseServer;
let made = 0;
beforeAll(async () => {
  server = await startDatabase("postgres");
});
afterAll(() => server.stop());

type Query = (...values: unknown[]) => unknown;

/** Makes the queries of a client otherwise, as libraries do that wrap pg. */
const wrap = (client: pg.Client, change: (query: object) => object): void => {
  const query = client.query.bind(client) as Query;
  client.query = ((given: unknown, ...rest: unknown[]) =>
    query(typeof given === "object" && given !== null ? change(given) : given, ...rest)) as never;
};

function openPool(options: pg.PoolConfig, change?: (query: object) => object): pg.Pool {
  const pool = new pg.Pool({ ...server.address, user: "postgres", database: "postgres", max: 4, ...options });
  if (change) pool.on("connect", (client) => wrap(client as never, change));
  onTestFinished(() => pool.end());
  return pool;
}

async function openStorage(pool: pg.Pool, connections: "session" | "transaction"): Promise<PostgresStorage> {
  const storage = postgresStorage({ pool, schema: `pools_${++made}`, connections });
  onTestFinished(() => storage.close());
  await storage.migrate();
  return storage;
}

/** Every call that reads numbers, texts or JSON. */
async function expectDelivered(storage: PostgresStorage): Promise<void> {
  const { append, drain, register, store } = driveStore(storage);
  const { id: webhookId } = await register();
  await Promise.all(Array.from({ length: 5 }, () => append(newEvent("clinic"))));
  expect(await drain()).toHaveLength(5);
  expect(await store.stats()).toMatchObject({ webhooks: 1, events: 5, pending: 0, ended: 5 });
  expect((await store.listDeliveries({ webhookId, limit: 10 })).deliveries).toHaveLength(5);
  expect(await storage.check()).toMatchObject({ ok: true, bytes: expect.any(Number) });
}

const wrong = (): string => "wrong";
const types = { getTypeParser: () => wrong } as never;

describe.each(["session", "transaction"] as const)("a pool with connections: %s", (connections) => {
  it.each<{ what: string; options: pg.PoolConfig; change?: (query: object) => object }>([
    { what: "types that parse everything otherwise", options: { types } },
    { what: "statement_timeout", options: { statement_timeout: 20_000 } },
    { what: "query_timeout", options: { query_timeout: 20_000 } },
    {
      what: "query_timeout and pipeline",
      options: { query_timeout: 20_000, pipeline: true } as pg.PoolConfig,
    },
    {
      what: "idle_in_transaction_session_timeout",
      options: { idle_in_transaction_session_timeout: 20_000 },
    },
    {
      what: 'rowMode: "array" as a default',
      options: {},
      change: (query) => ({ rowMode: "array", ...query }),
    },
  ])("and $what works like any other", async ({ options, change }) => {
    await expectDelivered(await openStorage(openPool(options, change), connections));
  });
});

describe("a pool whose values cannot be read", () => {
  it("is refused as it is handed over if it was made with binary: true", () => {
    const pool = openPool({ binary: true } as pg.PoolConfig);
    expect(() => postgresStorage({ pool })).toThrow(
      expect.objectContaining({
        code: "invalid_option",
        field: "pool",
        message: expect.stringContaining("values as text (got binary: true)"),
      }),
    );
  });

  it.each<readonly [string, string, (client: pg.Client) => void]>([
    ["binary: true of a client", "values as text", (client) => Object.assign(client, { binary: true })],
    [
      'rowMode: "array" that is forced on every query',
      "rows as objects",
      (client) => wrap(client, (query) => ({ ...query, rowMode: "array" })),
    ],
  ])(
    "because of %s has every call reject with invalid_option, and nothing is stored",
    async (_, reason, spoil) => {
      const pool = openPool({});
      const storage = await openStorage(pool, "transaction");
      const { append, register, store } = driveStore(storage);
      await register();
      const bad = openPool({});
      bad.on("connect", (client) => spoil(client as never));
      const other = postgresStorage({ pool: bad, schema: `pools_${made}` });
      onTestFinished(() => other.close());
      const refused = { code: "invalid_option", field: "pool", message: expect.stringContaining(reason) };
      await expect(driveStore(other).append(newEvent("clinic"))).rejects.toMatchObject(refused);
      await expect(other.check()).rejects.toMatchObject(refused);
      const client = await pool.connect();
      spoil(client as never);
      await client.query("BEGIN");
      const events = [newEvent("clinic")];
      const joined = store.append({ events, rememberMs: 1_000, now: store.now(), transaction: client });
      await expect(joined).rejects.toMatchObject(refused);
      await client.query("ROLLBACK");
      client.release(true);
      expect(await codeOf(append(newEvent("clinic")))).toBe("resolved");
      expect(await store.stats()).toMatchObject({ events: 1 });
    },
  );

  it("is refused if it has one connection, which would be kept to listen", () => {
    const pool = openPool({ max: 1 });
    expect(() => postgresStorage({ pool, connections: "session" })).toThrow(
      expect.objectContaining({ code: "invalid_option", field: "connections" }),
    );
  });
});

describe("a migration", () => {
  it("that waits longer than query_timeout of the pool goes on", async () => {
    const schema = `pools_${++made}`;
    const [host, pool] = [openPool({}), openPool({ query_timeout: 300 })];
    const client = await host.connect();
    await client.query("BEGIN");
    await client.query("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", [`${schema} migrate`]);
    const migrated = codeOf(postgresStorage({ pool, schema }).migrate());
    await client.query("SELECT pg_sleep(1)");
    await client.query("COMMIT");
    client.release();
    expect(await migrated).toBe("resolved");
  });
});
