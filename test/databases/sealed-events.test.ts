/** `sealEvents` on Postgres, in transactions of the host, and in a backup that was restored. */

import { copyFileSync } from "node:fs";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { createWebhooks, type Storage } from "../../src/index.js";
import type { OutboundRequest } from "../../src/outbound/types.js";
import { postgresStorage } from "../../storage/postgres/index.js";
import { sqliteStorage } from "../../storage/sqlite/index.js";
import { testSealedEvents } from "../support/sealed-events.js";
import { createDatabaseFile, openDatabase } from "../support/sqlite.js";
import { response } from "../support/webhook-harness.js";
import { type DatabaseServer, startDatabase } from "./support/database-server.js";

const SEAL_KEYS = [Buffer.alloc(32, 1)];

let server: DatabaseServer;
let pool: pg.Pool;
let schemas = 0;

beforeAll(async () => {
  server = await startDatabase("postgres");
  pool = new pg.Pool({ ...server.address, user: "postgres", database: "postgres", max: 6 });
});
afterAll(async () => {
  await pool.end();
  await server.stop();
});

const createSchema = async (): Promise<string> => {
  const schema = `sealed_${++schemas}`;
  await postgresStorage({ pool, schema }).migrate();
  return schema;
};

testSealedEvents({
  name: "Postgres",
  hasSealKeys: true,
  async open() {
    const schema = await createSchema();
    return {
      connect: (sealKeys) => postgresStorage({ pool, schema, sealKeys, time: "clock" }),
      async dump() {
        const { rows } = await pool.query<{ name: string }>(
          "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = $1",
          [schema],
        );
        const read = ({ name }: { name: string }) => pool.query(`SELECT * FROM "${schema}"."${name}"`);
        return JSON.stringify((await Promise.all(rows.map(read))).map((result) => result.rows));
      },
      destroy: () => pool.query(`DROP SCHEMA "${schema}" CASCADE`),
    };
  },
});

/** A service that seals, and what its endpoint got. */
function createService(storage: Storage, options: { keyStorage?: Storage } = {}) {
  const bodies: string[] = [];
  const webhooks = createWebhooks({
    storage,
    events: { "order.paid": {} },
    access: { authenticate: () => null },
    delivery: {
      send: async ({ body }: OutboundRequest) => {
        bodies.push(Buffer.from(body ?? "").toString());
        return response(200);
      },
    },
    logger: false,
    sealEvents: true,
    ...options,
  });
  onTestFinished(() => storage.close());
  const register = (account: string) =>
    webhooks.registrations.create({
      subscriber: { id: "key-1", account },
      url: "https://hooks.example.com/a",
    });
  const emit = (order: string, transaction?: object, account = "shop") =>
    webhooks.emit({ type: "order.paid", account, data: { order } }, { transaction: transaction as never });
  /** Delivers what is due, and returns the orders that were sent. */
  const deliver = async (): Promise<string[]> => {
    await webhooks.drain();
    return bodies.splice(0).map((body) => (JSON.parse(body) as { data: { order: string } }).data.order);
  };
  return { webhooks, register, emit, deliver };
}

describe("a sealed event in a transaction of the host", () => {
  it("is the first of its account on Postgres: a rollback leaves the key, a commit the event", async () => {
    const schema = await createSchema();
    const { register, emit, deliver } = createService(postgresStorage({ pool, schema, sealKeys: SEAL_KEYS }));
    await register("shop");
    const client = await pool.connect();
    onTestFinished(() => client.release());
    await client.query("BEGIN");
    await emit("undone", client);
    await client.query("ROLLBACK");
    await client.query("BEGIN");
    await emit("in a transaction", client);
    await emit("outside");
    await client.query("COMMIT");
    const other = createService(postgresStorage({ pool, schema, sealKeys: SEAL_KEYS }));
    expect((await other.deliver()).sort()).toEqual(["in a transaction", "outside"]);
    expect(await deliver()).toEqual([]);
  });

  it("is the first of its account on SQLite: a rollback undoes the key, and no process keeps it", async () => {
    const { path, destroy } = createDatabaseFile();
    onTestFinished(destroy);
    const { register, emit, deliver } = createService(sqliteStorage({ file: path, sealKeys: SEAL_KEYS }));
    await register("shop");
    const host = openDatabase(path);
    onTestFinished(() => void host.close());
    const dataKeys = () => host.prepare("SELECT account FROM postbell_data_keys").all();
    host.exec("BEGIN IMMEDIATE");
    await emit("undone", host);
    host.exec("ROLLBACK");
    expect(dataKeys()).toEqual([]);
    host.exec("BEGIN IMMEDIATE");
    await emit("first", host);
    await emit("second", host);
    host.exec("COMMIT");
    expect(dataKeys()).toHaveLength(1);
    await emit("outside");
    const other = createService(sqliteStorage({ file: path, sealKeys: SEAL_KEYS }));
    expect((await other.deliver()).sort()).toEqual(["first", "outside", "second"]);
    expect(await deliver()).toEqual([]);
  });
});

describe("as many transactions of the host as the pool has connections", () => {
  it("emit the first events of new accounts, and later ones, without waiting for each other", async () => {
    const schema = await createSchema();
    const full = new pg.Pool({ ...server.address, user: "postgres", database: "postgres", max: 3 });
    onTestFinished(() => full.end());
    const storage = postgresStorage({ pool: full, schema, sealKeys: SEAL_KEYS });
    const { register, emit, deliver } = createService(storage);
    const accounts = ["one", "two", "three"];
    for (const account of accounts) await register(account);
    const emitAll = async (order: string): Promise<void> => {
      const clients = await Promise.all(accounts.map(() => full.connect()));
      try {
        await Promise.all(
          clients.map(async (client, index) => {
            await client.query("BEGIN");
            await emit(order, client, accounts[index]);
            await client.query("COMMIT");
          }),
        );
      } finally {
        for (const client of clients) client.release();
      }
    };
    await emitAll("first");
    await emitAll("second");
    expect((await deliver()).sort()).toEqual([
      ...accounts.map(() => "first"),
      ...accounts.map(() => "second"),
    ]);
  });
});

describe("a backup of SQLite from before an account was erased", () => {
  it("opens nothing of that account, and all of the others, with the keyStorage of today", async () => {
    const [file, keys, copy] = [createDatabaseFile(), createDatabaseFile(), createDatabaseFile()];
    for (const { destroy } of [file, keys, copy]) onTestFinished(destroy);
    const keyStorage = sqliteStorage({ file: keys.path, sealKeys: SEAL_KEYS });
    onTestFinished(() => keyStorage.close());
    const storage = sqliteStorage({ file: file.path });
    const { webhooks, register, emit } = createService(storage, { keyStorage });
    const ids: string[] = [];
    for (const account of ["erased", "kept"]) {
      await register(account);
      ids.push((await emit(`order of ${account}`, undefined, account)).id);
    }
    const database = openDatabase(file.path);
    database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    database.close();
    copyFileSync(file.path, copy.path);
    await webhooks.accounts.erase("erased");
    const restored = createService(sqliteStorage({ file: copy.path }), { keyStorage });
    expect(await restored.deliver()).toEqual(["order of kept"]);
    const { items } = await restored.webhooks.deliveries.list({ account: "erased", eventId: ids[0] ?? "" });
    expect(items.map(({ state, reason }) => [state, reason])).toEqual([["failed", "key_erased"]]);
    const inspection = restored.webhooks.deliveries.inspect({ id: items[0]?.id ?? "", includeBody: true });
    await expect(inspection).rejects.toMatchObject({ code: "not_found" });
  });
});
