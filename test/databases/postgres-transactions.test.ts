/** Events written in transactions of the host: in effect exactly if they commit. */

import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { createWebhooks } from "../../src/index.js";
import { manualClock } from "../../src/testing/index.js";
import { type PostgresStorage, postgresStorage } from "../../storage/postgres/index.js";
import { response } from "../support/webhook-harness.js";
import { type DatabaseServer, startDatabase } from "./support/database-server.js";

let server: DatabaseServer;
let pool: pg.Pool;
let storage: PostgresStorage;
let made = 0;

beforeAll(async () => {
  server = await startDatabase("postgres");
  pool = new pg.Pool({ ...server.address, user: "postgres", database: "postgres", max: 6 });
});
afterAll(async () => {
  await pool.end();
  await server.stop();
});
beforeEach(async () => {
  storage = postgresStorage({ pool, schema: `host_${++made}`, time: "clock" });
  await storage.migrate();
});
afterEach(() => storage.close());

const createService = () =>
  createWebhooks({ storage, access: { authenticate: () => null, canRead: () => true } });

const patient = { resourceType: "Patient", id: "1" } as const;
const event = { type: "patient.updated", account: "clinic", resource: patient } as const;

async function register(webhooks: ReturnType<typeof createService>) {
  const { webhook } = await webhooks.registrations.create({
    subscriber: { id: "key", account: "clinic" },
    url: "https://subscriber.example/hook",
  });
  return webhook.id;
}

/** Runs `work` in a transaction that ends with `end`. */
async function inTransaction<T>(end: "COMMIT" | "ROLLBACK", work: (client: pg.PoolClient) => Promise<T>) {
  const client = await pool.connect();
  try {
    await client.query("BEGIN");
    const result = await work(client);
    await client.query(end);
    return result;
  } finally {
    client.release();
  }
}

test("an event is delivered if its transaction commits, and does not exist before or otherwise", async () => {
  const webhooks = createService();
  const webhookId = await register(webhooks);
  const list = async () => (await webhooks.deliveries.list({ webhookId })).items.map(({ id }) => id);

  const rolledBack = await inTransaction("ROLLBACK", (client) =>
    webhooks.emit(event, { transaction: client }),
  );
  expect(rolledBack).toMatchObject({ deliveries: [{}], webhooks: 1 });
  expect(await list()).toEqual([]);

  const committed = await inTransaction("COMMIT", async (client) => {
    const emitted = await webhooks.emit(event, { transaction: client });
    expect(await list()).toEqual([]);
    return emitted;
  });
  expect(await list()).toEqual(committed.deliveries.map(({ id }) => id));
});

test("an event goes to the webhooks as another process has left them since the last one", async () => {
  const webhooks = createService();
  const first = await register(webhooks);
  const emit = () => inTransaction("COMMIT", (client) => webhooks.emit(event, { transaction: client }));
  const listReceivers = async () => (await emit()).deliveries.map(({ webhookId }) => webhookId).sort();
  expect(await listReceivers()).toEqual([first]);

  const elsewhere = postgresStorage({ pool, schema: `host_${made}`, time: "clock" });
  const other = createWebhooks({
    storage: elsewhere,
    access: { authenticate: () => null, canRead: () => true },
  });
  const second = await register(other);
  expect(await listReceivers()).toEqual([first, second].sort());
  await other.registrations.update({ id: first, eventTypes: ["patient.created"] });
  expect(await listReceivers()).toEqual([second]);
  await other.registrations.remove(second);
  expect(await listReceivers()).toEqual([]);
  await elsewhere.close();
});

test("several events of one transaction are all written, and an id that was emitted before adds nothing", async () => {
  const webhooks = createService();
  const webhookId = await register(webhooks);
  const ids = await inTransaction("COMMIT", async (client) => {
    const emitted = await webhooks.emit([event, event, event], { transaction: client });
    const [first] = emitted;
    const again = await webhooks.emit({ ...event, id: first?.id }, { transaction: client });
    expect(again).toMatchObject({ id: first?.id, duplicate: true });
    return emitted.map(({ id }) => id);
  });
  const { items: deliveries } = await webhooks.deliveries.list({ webhookId });
  expect(deliveries.map(({ eventId }) => eventId).sort()).toEqual([...ids].sort());
});

test("an event is kept for the keepMs it was committed with, and a rollback leaves nothing of it", async () => {
  const HOUR_MS = 3_600_000;
  const start = Date.parse("2026-11-20T09:30:00Z");
  /** Runs `work` with a process that starts at this time. */
  const runAt = async <T>(now: number, work: (webhooks: ReturnType<typeof createService>) => Promise<T>) => {
    const opened = postgresStorage({ pool, schema: `host_${made}`, time: "clock" });
    const webhooks = createWebhooks({
      storage: opened,
      clock: manualClock(now),
      access: { authenticate: () => null, canRead: () => true },
      delivery: { send: async () => response(200) },
    });
    const result = await work(webhooks);
    await opened.close();
    return result;
  };
  const webhookId = await runAt(start, register);
  const times = [HOUR_MS, undefined, 30 * 24 * HOUR_MS];
  const emitAll = (end: "COMMIT" | "ROLLBACK") =>
    runAt(start, (webhooks) =>
      inTransaction(end, (client) =>
        Promise.all(times.map((keepMs) => webhooks.emit({ ...event, keepMs }, { transaction: client }))),
      ),
    );
  const countRows = async () => {
    const tables = ["events", "bodies", "deliveries", "completed", "remembered"];
    const counts = tables.map((table) => `(SELECT count(*)::int FROM "host_${made}".${table}) AS ${table}`);
    return (await pool.query(`SELECT ${counts.join(", ")}`)).rows[0];
  };
  const none = { events: 0, bodies: 0, deliveries: 0, completed: 0, remembered: 0 };

  await emitAll("ROLLBACK");
  expect(await countRows()).toEqual(none);
  const ids = (await emitAll("COMMIT")).map(({ id }) => id);
  /** Delivers what is due and removes what is over. Returns the times of the remaining events. */
  const listTimesAfter = (ms: number) =>
    runAt(start + ms, async (webhooks) => {
      await webhooks.drain();
      const { items } = await webhooks.deliveries.list({ webhookId });
      return times.filter((_, place) => items.some(({ eventId }) => eventId === ids[place]));
    });
  expect(await listTimesAfter(0)).toEqual(times);
  expect(await listTimesAfter(HOUR_MS - 1)).toEqual(times);
  expect(await listTimesAfter(HOUR_MS)).toEqual([undefined, 30 * 24 * HOUR_MS]);
  expect(await listTimesAfter(72 * HOUR_MS)).toEqual([30 * 24 * HOUR_MS]);
  expect(await listTimesAfter(30 * 24 * HOUR_MS - 1)).toEqual([30 * 24 * HOUR_MS]);
  expect(await listTimesAfter(30 * 24 * HOUR_MS)).toEqual([]);
  expect(await countRows()).toEqual(none);
});

test("a transaction that stays open delays no other event, claim or settlement of its webhook", async () => {
  const webhooks = createService();
  const webhookId = await register(webhooks);
  await inTransaction("COMMIT", async (client) => {
    await webhooks.emit(event, { transaction: client });
    await webhooks.emit(event);
    await webhooks.registrations.update({ id: webhookId, url: "https://subscriber.example/moved" });
    await webhooks.registrations.remove(webhookId);
  });
  // The webhook was removed meanwhile, so the late delivery is deleted too.
  const store = storage.webhooks({
    clock: (await import("../../src/core/clock.js")).systemClock,
    logger: (await import("../../src/core/logger.js")).silentLogger,
    perEndpoint: 5,
    retention: { keepMs: 1_000, events: 10 },
  });
  const claim = () =>
    store.claim({
      now: store.now(),
      token: "t",
      leaseUntil: store.now() + 1_000,
      room: { fast: 9, slow: 9 },
    });
  expect((await claim()).claims).toEqual([]);
  for (let round = 0; round < 5; round++) await claim();
  const counts = await pool.query(`SELECT count(*) AS count FROM "host_${made}".deliveries`);
  expect(Number(counts.rows[0].count)).toBe(0);
});

test("a connection that ends while the event is prepared has emit reject, and not the process end", async () => {
  const host = new pg.Client({ ...server.address, user: "postgres", database: "postgres" });
  await host.connect();
  const ended = new Promise((resolve) => host.once("end", resolve));
  const webhooks = createWebhooks({
    storage,
    access: { authenticate: () => null, canRead: () => true },
    async resolveReference() {
      const { rows } = await pool.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state = 'idle in transaction'",
      );
      expect(rows).toHaveLength(1);
      await ended;
      return null;
    },
  });
  await register(webhooks);
  await host.query("BEGIN");
  const resource = { ...patient, generalPractitioner: [{ reference: "Practitioner/1" }] };
  await expect(webhooks.emit({ ...event, resource }, { transaction: host })).rejects.toMatchObject({
    code: "storage_unavailable",
    effect: "none",
  });
});

test("the pool, another object, and an unknown option are refused with what to change", async () => {
  const webhooks = createService();
  await expect(webhooks.emit(event, { transaction: pool })).rejects.toMatchObject({
    code: "invalid_argument",
    field: "transaction",
  });
  await expect(webhooks.emit(event, { transaction: {} as never })).rejects.toMatchObject({
    field: "transaction",
  });
  await expect(webhooks.emit(event, { client: {} } as never)).rejects.toMatchObject({ field: "client" });
});

test("without the tables, calls say what to do", async () => {
  const other = postgresStorage({ pool, schema: "nothing_here" });
  const webhooks = createWebhooks({
    storage: other,
    access: { authenticate: () => null, canRead: () => true },
  });
  await expect(webhooks.emit(event)).rejects.toMatchObject({ code: "invalid_option", field: "schema" });
});
