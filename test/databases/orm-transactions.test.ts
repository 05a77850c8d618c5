/** Events written in transactions of ORMs and query builders, with the real libraries. */

import type pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fromPrisma } from "../../adapters/orm.js";
import { createWebhooks } from "../../src/index.js";
import { pgSource } from "../../storage/outbox/index.js";
import { type PostgresStorage, postgresStorage } from "../../storage/postgres/index.js";
import { startPostgresPool } from "./support/database-server.js";
import type { Orm } from "./support/orm-transaction.js";
import { createPrismaClient, ORMS } from "./support/orms.js";

let url: string;
let pool: pg.Pool;
let stop: () => Promise<void>;

beforeAll(async () => {
  ({ url, pool, stop } = await startPostgresPool(6));
  await pool.query("CREATE TABLE orders (id text PRIMARY KEY)");
});
afterAll(() => stop());

/** Text that an encoding or a driver may change. */
const data = {
  id: "A-1",
  note: 'quotes \' " and \\ and ? and $1 and :name, ünïcödé 😀, \u0000 and "null"',
  list: [1, null],
};
const event = { type: "order.paid", account: "shop ' \\ $1 ?", data } as const;

describe.each(ORMS)("%s", (name, call, open) => {
  const suffix = name.replace(/[^a-z]/gi, "_").toLowerCase();
  const schema = `orm_${suffix}`;
  let orm: Orm;
  let storage: PostgresStorage;
  let webhooks: ReturnType<typeof createService>;
  let webhookId: string;

  const createService = () =>
    createWebhooks({
      storage,
      events: { "order.paid": {} },
      access: { authenticate: () => null, canRead: () => true },
    });
  const listEvents = async () =>
    (await webhooks.deliveries.list({ webhookId })).items.map(({ eventId }) => eventId).sort();
  /** Runs `work` in a transaction that is rolled back. */
  const rollBack = async (work: Parameters<Orm["transaction"]>[0]) => {
    const marker = new Error("roll back");
    await expect(
      orm.transaction(async (transaction) => {
        await work(transaction);
        throw marker;
      }),
    ).rejects.toBe(marker);
  };

  beforeAll(async () => {
    orm = await open(url);
    storage = postgresStorage({
      pool,
      schema,
      time: "clock",
    });
    await storage.migrate();
    webhooks = createService();
    const created = await webhooks.registrations.create({
      subscriber: { id: "key", account: event.account },
      url: "https://subscriber.example/hook",
    });
    webhookId = created.webhook.id;
  });
  afterAll(async () => {
    await orm.close();
    await storage.close();
  });

  test("an event is stored with the host's row if the transaction commits, and not before", async () => {
    const before = await listEvents();
    let id = "";
    await orm.transaction(async ({ connection, run }) => {
      await run(`INSERT INTO orders VALUES ('${suffix}')`);
      ({ id } = await webhooks.emit(event, { transaction: connection }));
      expect(await listEvents()).toEqual(before);
    });
    expect(await listEvents()).toEqual([...before, id].sort());
    const { rows } = await pool.query("SELECT FROM orders WHERE id = $1", [suffix]);
    expect(rows).toHaveLength(1);
  });

  test("the body that is stored is the one that emit stores without a transaction, byte for byte", async () => {
    const occurredAt = "2026-01-02T03:04:05.000Z";
    const plain = await webhooks.emit({ ...event, occurredAt });
    const bodies = async (ids: string[]) => {
      const { rows } = await pool.query(
        `SELECT e.id, b.payload, e.bytes, e.digest FROM "${schema}".events e JOIN "${schema}".bodies b ON b.event = e.position WHERE e.id = ANY ($1)`,
        [ids],
      );
      return new Map(rows.map((row) => [row.id, row.payload.replaceAll(row.id, "<id>")]));
    };
    let id = "";
    await orm.transaction(async ({ connection }) => {
      ({ id } = await webhooks.emit({ ...event, occurredAt }, { transaction: connection }));
    });
    const stored = await bodies([plain.id, id]);
    expect(stored.get(id)).toBe(stored.get(plain.id));
    expect(stored.get(id)).toContain("ünïcödé 😀");
  });

  test("an event never existed if the transaction is rolled back", async () => {
    const before = await listEvents();
    await rollBack(async ({ connection }) => {
      const emitted = await webhooks.emit(event, { transaction: connection });
      expect(emitted).toMatchObject({ webhooks: 1, deliveries: [{ webhookId }] });
    });
    expect(await listEvents()).toEqual(before);
  });

  test("an event is stored with its keepMs, which a repetition does not change", async () => {
    const keepMs = 3_600_000;
    await rollBack(({ connection }) => webhooks.emit({ ...event, keepMs: 1 }, { transaction: connection }));
    let id = "";
    await orm.transaction(async ({ connection }) => {
      ({ id } = await webhooks.emit({ ...event, keepMs }, { transaction: connection }));
      await webhooks.emit({ ...event, id, keepMs: 2 * keepMs }, { transaction: connection });
    });
    const { rows } = await pool.query(`SELECT id, keep_ms FROM "${schema}".events WHERE keep_ms IS NOT NULL`);
    expect(rows).toEqual([{ id, keep_ms: String(keepMs) }]);
  });

  test("an event of a savepoint that is rolled back never existed, the others are stored", async () => {
    const before = await listEvents();
    const ids: string[] = [];
    await orm.transaction(async (outer) => {
      ids.push((await webhooks.emit(event, { transaction: outer.connection })).id);
      const failed = outer.savepoint(async ({ connection }) => {
        await webhooks.emit(event, { transaction: connection });
        throw new Error("inner");
      });
      await expect(failed).rejects.toThrow("inner");
      await outer.savepoint(async ({ connection }) => {
        ids.push((await webhooks.emit(event, { transaction: connection })).id);
      });
      ids.push((await webhooks.emit(event, { transaction: outer.connection })).id);
    });
    expect(await listEvents()).toEqual([...before, ...ids].sort());
  });

  test("lists, concurrent events and one that was emitted before are stored once each", async () => {
    const before = await listEvents();
    let ids: string[] = [];
    await orm.transaction(async ({ connection, run }) => {
      const [list, one, other] = await Promise.all([
        webhooks.emit([event, event, event], { transaction: connection }),
        webhooks.emit(event, { transaction: connection }),
        webhooks.emit(event, { transaction: connection }),
        run("SELECT 1"),
      ]);
      ids = [...list, one, other].map(({ id }) => id);
      const again = await webhooks.emit({ ...event, id: one.id }, { transaction: connection });
      expect(again).toMatchObject({ id: one.id, duplicate: true, deliveries: one.deliveries });
      const changed = { ...event, id: one.id, data: { id: "A-2" } };
      await expect(webhooks.emit(changed, { transaction: connection })).rejects.toMatchObject({
        code: "event_conflict",
      });
    });
    expect(await listEvents()).toEqual([...before, ...ids].sort());
  });

  test("an event that no webhook receives is remembered, so that its repetition is a duplicate", async () => {
    const other = { ...event, account: "nobody" };
    await orm.transaction(async ({ connection }) => {
      const first = await webhooks.emit(other, { transaction: connection });
      const again = await webhooks.emit({ ...other, id: first.id }, { transaction: connection });
      expect(again).toMatchObject({ duplicate: true, deliveries: [] });
    });
  });

  test("a connection that the server ends has emit reject, and nothing is stored", async () => {
    const before = await listEvents();
    const work = orm.transaction(async ({ connection, run }) => {
      await run("SELECT 1");
      await webhooks.emit(event, { transaction: connection });
      await pool.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state = 'idle in transaction' AND pid <> pg_backend_pid()",
      );
      if (orm.crashesAfterLoss) return new Promise(() => {});
      await expect(webhooks.emit(event, { transaction: connection })).rejects.toMatchObject({
        code: "storage_unavailable",
        effect: "none",
      });
      throw new Error("the connection is gone");
    });
    await expect(work).rejects.toThrow(Error);
    expect(await listEvents()).toEqual(before);
  });

  test("after a failed statement, emit says that the transaction has to be rolled back", async () => {
    const work = orm.transaction(async ({ connection, run }) => {
      await run("SELECT 1 / 0").catch(() => {});
      await expect(webhooks.emit(event, { transaction: connection })).rejects.toMatchObject({
        code: "invalid_argument",
        field: "transaction",
        message: expect.stringContaining("An earlier statement of the transaction has failed"),
      });
      throw new Error("rolled back");
    });
    await expect(work).rejects.toThrow(Error);
  });

  test(`what the library itself gives is refused, and the error says to pass ${call}`, async () => {
    await rollBack(async ({ raw }) => {
      await expect(webhooks.emit(event, { transaction: raw as never })).rejects.toMatchObject({
        code: "invalid_argument",
        field: "transaction",
        message: expect.stringContaining(`pass ${call}(`),
      });
      await expect(pgSource({ pool }).add(raw as never, event)).rejects.toMatchObject({
        field: "connection",
        message: expect.stringContaining(`pass ${call}(`),
      });
    });
  });

  test("an object of the library without a transaction is refused", () => {
    expect(() => orm.outside()).toThrow(
      expect.objectContaining({ code: "invalid_argument", message: expect.stringContaining(call) }),
    );
  });

  test("the outbox adds events in the transaction, in order", async () => {
    const table = `outbox_${suffix}`;
    const source = pgSource({ pool, table });
    await source.install();
    await rollBack(({ connection }) => source.add(connection, event));
    expect((await source.stats()).waiting).toBe(0);
    let ids: readonly string[] = [];
    await orm.transaction(async ({ connection }) => {
      ids = await source.add(connection, [event, { ...event, data: { id: "A-2" } }]);
    });
    const claimed = await source.claim({ limit: 10, leaseMs: 1_000 });
    expect(claimed.map(({ id }) => id)).toEqual(ids);
    expect(JSON.parse(claimed[0]?.event ?? "")).toMatchObject({ data });
  });
});

test("Prisma: a row that a model creates and an event are there together, or neither is", async () => {
  const prisma = createPrismaClient(url);
  const storage = postgresStorage({ pool, schema: "prisma_models", time: "clock" });
  await storage.migrate();
  const webhooks = createWebhooks({
    storage,
    events: { "order.paid": {} },
    access: { authenticate: () => null },
  });
  const { webhook } = await webhooks.registrations.create({
    subscriber: { id: "key", account: event.account },
    url: "https://subscriber.example/hook",
  });
  const pay = (id: string, end: () => void) =>
    prisma.$transaction(async (tx) => {
      const order = await tx.order.create({ data: { id } });
      await webhooks.emit(
        { type: "order.paid", account: event.account, data: order, subject: order.id },
        { transaction: fromPrisma(tx) },
      );
      end();
    });
  await expect(
    pay("prisma-1", () => {
      throw new Error("roll back");
    }),
  ).rejects.toThrow("roll back");
  await pay("prisma-2", () => {});
  const orders = await prisma.order.findMany({ where: { id: { startsWith: "prisma-" } } });
  expect(orders).toEqual([{ id: "prisma-2" }]);
  const { items } = await webhooks.deliveries.list({ webhookId: webhook.id });
  expect(items.map(({ subject }) => subject)).toEqual(["prisma-2"]);
  await prisma.$disconnect();
  await storage.close();
});
