/** Events written in transactions of the host on the same SQLite file. */

import { afterEach, beforeEach, expect, test } from "vitest";
import { createWebhooks, type WebhooksOptions } from "../../../src/index.js";
import { manualClock } from "../../../src/testing/manual-clock.js";
import { type SqliteHandle, type SqliteStorage, sqliteStorage } from "../../../storage/sqlite/index.js";
import { createDatabaseFile, openDatabase } from "../../support/sqlite.js";

let file: ReturnType<typeof createDatabaseFile>;
let own: SqliteHandle;
let host: SqliteHandle;
let storage: SqliteStorage;

beforeEach(() => {
  file = createDatabaseFile();
  own = openDatabase(file.path);
  host = openDatabase(file.path);
  storage = sqliteStorage({ database: own });
});
afterEach(async () => {
  await storage.close();
  host.close();
  own.close();
  file.destroy();
});

const patient = { resourceType: "Patient", id: "1" } as const;
const event = { type: "patient.updated", account: "clinic", resource: patient } as const;

async function createService(options: Partial<WebhooksOptions> = {}) {
  const webhooks = createWebhooks({
    storage,
    access: { authenticate: () => null, canRead: () => true },
    ...options,
  });
  const { webhook } = await webhooks.registrations.create({
    subscriber: { id: "key", account: "clinic" },
    url: "https://subscriber.example/hook",
  });
  const list = async () =>
    (await webhooks.deliveries.list({ webhookId: webhook.id })).items.map(({ id }) => id);
  return { webhooks, list };
}

test("an event is stored if its transaction commits, and does not exist otherwise", async () => {
  const { webhooks, list } = await createService();
  host.exec("CREATE TABLE patients (id TEXT)");

  host.exec("BEGIN IMMEDIATE");
  host.exec("INSERT INTO patients VALUES ('1')");
  const rolledBack = await webhooks.emit(event, { transaction: host });
  expect(rolledBack).toMatchObject({ deliveries: [{}], webhooks: 1 });
  host.exec("ROLLBACK");
  expect(await list()).toEqual([]);

  host.exec("BEGIN IMMEDIATE");
  host.exec("INSERT INTO patients VALUES ('2')");
  const committed = await webhooks.emit([event, event], { transaction: host });
  expect(committed.map(({ duplicate, webhooks: count }) => [duplicate, count])).toEqual([
    [false, 1],
    [false, 1],
  ]);
  expect(await list()).toEqual([]);
  host.exec("COMMIT");
  const ids = committed.flatMap(({ deliveries }) => deliveries.map(({ id }) => id));
  expect((await list()).sort()).toEqual(ids.sort());
  expect(host.prepare("SELECT id FROM patients").all()).toMatchObject([{ id: "2" }]);
});

test("an event of a transaction is kept for its keepMs", async () => {
  const clock = manualClock(Date.UTC(2026, 0, 1));
  const send = async () => ({
    kind: "response" as const,
    status: 204,
    headers: {},
    body: new Uint8Array(),
    complete: true,
  });
  const { webhooks, list } = await createService({ clock, logger: false, delivery: { send } });
  host.exec("BEGIN IMMEDIATE");
  const [kept, plain] = await webhooks.emit([{ ...event, keepMs: 3_600_000 }, event], { transaction: host });
  host.exec("COMMIT");
  await webhooks.start();
  await clock.advance(60_000);
  expect(await list()).toHaveLength(2);
  await clock.advance(3_600_000);
  await webhooks.stop();
  expect(kept?.deliveries).toHaveLength(1);
  expect(await list()).toEqual(plain?.deliveries.map(({ id }) => id));
});

test("the storage's own database, one without a transaction, and other objects are refused", async () => {
  const { webhooks, list } = await createService();
  for (const transaction of [own, host, {} as never]) {
    await expect(webhooks.emit(event, { transaction })).rejects.toMatchObject({
      code: "invalid_argument",
      field: "transaction",
    });
  }
  expect(await list()).toEqual([]);
});

test("an event in a transaction that its driver commits too early is refused, and not stored", async () => {
  const { webhooks, list } = await createService();
  // As `database.transaction(fn)` of libsql does it, which does not wait for the promise.
  host.exec("BEGIN IMMEDIATE");
  const emitted = webhooks.emit(event, { transaction: host });
  host.exec("COMMIT");
  await expect(emitted).rejects.toMatchObject({
    ...{ code: "invalid_argument", field: "transaction" },
    message: expect.stringMatching(/COMMIT when emit\(\) has resolved. transaction\(\) of a driver commits/),
  });
  expect(await list()).toEqual([]);
});

test("the memory storage refuses a transaction", async () => {
  const { memoryStorage } = await import("../../../storage/memory/index.js");
  const webhooks = createWebhooks({
    storage: memoryStorage(),
    access: { authenticate: () => null, canRead: () => true },
  });
  await expect(webhooks.emit(event, { transaction: host })).rejects.toMatchObject({ field: "transaction" });
});

test("a process may emit in a transaction before it has done anything else", async () => {
  await createService();
  const [second, other] = [openDatabase(file.path), openDatabase(file.path)];
  const later = createWebhooks({
    storage: sqliteStorage({ database: second }),
    access: { authenticate: () => null, canRead: () => true },
  });
  other.exec("BEGIN IMMEDIATE");
  expect((await later.emit(event, { transaction: other })).deliveries).toHaveLength(1);
  other.exec("COMMIT");
  second.close();
  other.close();
});
