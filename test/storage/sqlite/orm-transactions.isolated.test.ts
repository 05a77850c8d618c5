/** Events written in transactions of Drizzle, Knex and Kysely on the same SQLite file. */

import Module, { createRequire } from "node:module";
import { Kysely, sql as kyselySql, SqliteDialect } from "kysely";
import { afterEach, beforeEach, expect, test } from "vitest";
import { fromDrizzle, fromKnexSqlite } from "../../../adapters/orm.js";
import { createWebhooks } from "../../../src/index.js";
import { type SqliteHandle, type SqliteStorage, sqliteStorage } from "../../../storage/sqlite/index.js";
import { createDatabaseFile } from "../../support/sqlite.js";

const require = createRequire(import.meta.url);
const Database = require("libsql") as new (file: string) => SqliteHandle;

// better-sqlite3 has to be compiled, and libsql has its interface.
const modules = Module as unknown as { _load: (request: string, ...rest: unknown[]) => unknown };
const load = modules._load;
modules._load = (request, ...rest) => (request === "better-sqlite3" ? Database : load(request, ...rest));
const { drizzle } = require("drizzle-orm/better-sqlite3") as typeof import("drizzle-orm/better-sqlite3");
const createKnex = require("knex") as typeof import("knex").default;
const { sql } = require("drizzle-orm") as typeof import("drizzle-orm");

let file: ReturnType<typeof createDatabaseFile>;
let host: SqliteHandle;
let storage: SqliteStorage;

beforeEach(() => {
  file = createDatabaseFile();
  host = new Database(file.path);
  storage = sqliteStorage({ database: new Database(file.path) });
});
afterEach(async () => {
  await storage.close();
  host.close();
  file.destroy();
});

const event = { type: "order.paid", account: "shop", data: { id: "A-1" } } as const;

async function createService() {
  const webhooks = createWebhooks({
    storage,
    events: { "order.paid": {} },
    access: { authenticate: () => null, canRead: () => true },
  });
  const { webhook } = await webhooks.registrations.create({
    subscriber: { id: "key", account: "shop" },
    url: "https://subscriber.example/hook",
  });
  const list = async () =>
    (await webhooks.deliveries.list({ webhookId: webhook.id })).items.map(({ eventId }) => eventId);
  return { webhooks, list };
}

test("Drizzle: an event is stored if the transaction commits, and does not exist otherwise", async () => {
  const { webhooks, list } = await createService();
  const db = drizzle(host as never);
  db.run(sql`BEGIN IMMEDIATE`);
  await webhooks.emit(event, { transaction: fromDrizzle(db) });
  db.run(sql`ROLLBACK`);
  db.run(sql`BEGIN IMMEDIATE`);
  const { id } = await webhooks.emit(event, { transaction: fromDrizzle(db) });
  expect(await list()).toEqual([]);
  db.run(sql`COMMIT`);
  expect(await list()).toEqual([id]);
  await expect(webhooks.emit(event, { transaction: fromDrizzle(db) })).rejects.toMatchObject({
    code: "invalid_argument",
    field: "transaction",
  });
  await expect(webhooks.emit(event, { transaction: db as never })).rejects.toThrow("pass fromDrizzle(tx)");
});

test("Knex: an event is stored if the transaction commits, also in a savepoint, and not otherwise", async () => {
  const { webhooks, list } = await createService();
  const knex = createKnex({ client: "better-sqlite3", connection: file.path, useNullAsDefault: true });
  let id = "";
  await knex.transaction(async (trx) => {
    ({ id } = await webhooks.emit(event, { transaction: await fromKnexSqlite(trx) }));
    const inner = trx.transaction(async (savepoint) => {
      await webhooks.emit(event, { transaction: await fromKnexSqlite(savepoint) });
      throw new Error("inner");
    });
    await expect(inner).rejects.toThrow("inner");
  });
  const failed = knex.transaction(async (trx) => {
    await webhooks.emit(event, { transaction: await fromKnexSqlite(trx) });
    throw new Error("outer");
  });
  await expect(failed).rejects.toThrow("outer");
  expect(await list()).toEqual([id]);
  const done = await knex.transaction(async (trx) => ({ trx }));
  await expect(fromKnexSqlite(done.trx)).rejects.toMatchObject({ field: "transaction" });
  await knex.destroy();
});

test("Kysely: an event is stored in the transaction of the database that the dialect has", async () => {
  const { webhooks, list } = await createService();
  const db = new Kysely<object>({ dialect: new SqliteDialect({ database: host as never }) });
  let id = "";
  await db.transaction().execute(async (trx) => {
    await kyselySql`CREATE TABLE orders (id TEXT)`.execute(trx);
    ({ id } = await webhooks.emit(event, { transaction: host }));
  });
  const failed = db.transaction().execute(async () => {
    await webhooks.emit(event, { transaction: host });
    throw new Error("rolled back");
  });
  await expect(failed).rejects.toThrow("rolled back");
  expect(await list()).toEqual([id]);
});
