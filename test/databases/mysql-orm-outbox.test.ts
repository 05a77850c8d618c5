/** Events that the outbox adds in transactions of ORMs and query builders on MariaDB. */

import mysqlCallbacks from "mysql2";
import mysql from "mysql2/promise";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createWebhooks } from "../../src/index.js";
import { memoryStorage } from "../../storage/memory/index.js";
import { mysqlSource, outbox } from "../../storage/outbox/index.js";
import { type DatabaseServer, startDatabase } from "./support/database-server.js";
import { MYSQL_ORMS, type MysqlAddress } from "./support/mysql-orms.js";
import type { Orm } from "./support/orm-transaction.js";

let server: DatabaseServer;
let address: MysqlAddress;
let pool: mysql.Pool;

beforeAll(async () => {
  server = await startDatabase("mariadb");
  if (!("socketPath" in server.address)) throw new Error("MariaDB has no socket");
  const { socketPath } = server.address;
  const setup = await mysql.createConnection({ socketPath, user: "root" });
  await setup.query("CREATE DATABASE host");
  await setup.end();
  address = { socketPath, user: "root", database: "host" };
  pool = mysql.createPool({ ...address, connectionLimit: 3 });
  await pool.query("CREATE TABLE orders (id varchar(50) PRIMARY KEY) ENGINE=InnoDB");
});
afterAll(async () => {
  await pool.end();
  await server.stop();
});

/** Text that an encoding or a driver may change. */
const data = {
  id: "A-1",
  note: 'quotes \' " ` and \\ and ? and $1 and :name, ünïcödé 😀, \u0000 and "null"',
  list: [1, null],
};
const event = { type: "order.paid", account: "shop ' \\ $1 ?", data } as const;

test("a connection of mysql2 is taken with promises, and refused with callbacks before a row is written", async () => {
  const source = mysqlSource({ pool, table: "outbox_mysql2" });
  await source.install();
  const callbacks = mysqlCallbacks.createConnection({ ...address });
  const connection = callbacks.promise();
  await connection.beginTransaction();
  await expect(source.add(callbacks as never, event)).rejects.toMatchObject({
    code: "invalid_argument",
    field: "connection",
    message: expect.stringContaining("pass connection.promise()"),
  });
  await expect(source.add(mysqlCallbacks.createPool({ ...address }) as never, event)).rejects.toThrow(
    "pass the connection that pool.getConnection() has lent",
  );
  const id = await source.add(connection, event);
  await connection.commit();
  await connection.end();
  const rows = await source.claim({ limit: 10, leaseMs: 60_000 });
  expect(rows.map((row) => row.id)).toEqual([id]);
});

describe.each(MYSQL_ORMS)("%s", (name, call, open) => {
  const suffix = name.toLowerCase();
  const source = () => mysqlSource({ pool, table: `outbox_${suffix}` });
  let orm: Orm;

  beforeAll(async () => {
    orm = await open(address);
    await source().install();
  });
  afterAll(() => orm.close());

  const listOrders = async () => (await pool.query("SELECT id FROM orders WHERE id = ?", [suffix]))[0];
  /** Takes the rows that have been committed, and removes them. */
  const takeRows = async () => {
    const rows = await source().claim({ limit: 100, leaseMs: 60_000 });
    await source().remove(rows.map(({ key }) => key));
    return rows;
  };
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

  test("neither the host's row nor the event is there if the transaction is rolled back", async () => {
    await rollBack(async ({ connection, run }) => {
      await run(`INSERT INTO orders VALUES ('${suffix}')`);
      await source().add(connection, event);
    });
    expect([await listOrders(), await takeRows()]).toEqual([[], []]);
  });

  test("events are there in order with the host's row once the transaction commits, unchanged", async () => {
    let ids: readonly string[] = [];
    await orm.transaction(async ({ connection, run }) => {
      await run(`INSERT INTO orders VALUES ('${suffix}')`);
      ids = await source().add(connection, [event, { ...event, data: { id: "A-2" }, keepMs: 3_600_000 }]);
      expect([await listOrders(), await takeRows()]).toEqual([[], []]);
    });
    expect(await listOrders()).toEqual([{ id: suffix }]);
    const rows = await takeRows();
    expect(rows.map(({ id }) => id)).toEqual(ids);
    expect(rows.map((row) => JSON.parse(row.event))).toMatchObject([
      { account: event.account, data },
      { data: { id: "A-2" }, keepMs: 3_600_000 },
    ]);
  });

  test("an event of a savepoint that is rolled back is not there, the others are", async () => {
    const ids: string[] = [];
    await orm.transaction(async (outer) => {
      ids.push(await source().add(outer.connection, event));
      const failed = outer.savepoint(async ({ connection }) => {
        await source().add(connection, event);
        throw new Error("inner");
      });
      await expect(failed).rejects.toThrow("inner");
      await outer.savepoint(async ({ connection }) => {
        ids.push(await source().add(connection, event));
      });
      ids.push(await source().add(outer.connection, event));
    });
    expect((await takeRows()).map(({ id }) => id)).toEqual(ids);
  });

  test("text is stored unchanged while a backslash is no escape and double quotes mark names", async () => {
    await orm.transaction(async ({ connection, run }) => {
      await run("SET SESSION sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'");
      await source().add(connection, event);
      await run("SET SESSION sql_mode = DEFAULT");
    });
    const [row] = await takeRows();
    expect(JSON.parse(row?.event ?? "")).toMatchObject({ account: event.account, data });
  });

  test("the outbox emits what was committed", async () => {
    const webhooks = createWebhooks({
      storage: memoryStorage(),
      events: { "order.paid": {} },
      access: { authenticate: () => null },
    });
    const { webhook } = await webhooks.registrations.create({
      subscriber: { id: "key", account: event.account },
      url: "https://subscriber.example/hook",
    });
    const box = outbox({ webhooks, source: source(), logger: false });
    await rollBack(({ connection }) => source().add(connection, event));
    let id = "";
    await orm.transaction(async ({ connection }) => {
      id = await source().add(connection, event);
    });
    await box.start();
    await box.idle();
    await box.stop();
    const { items } = await webhooks.deliveries.list({ webhookId: webhook.id });
    expect(items.map(({ eventId }) => eventId)).toEqual([id]);
    expect(await source().stats()).toMatchObject({ waiting: 0, parked: 0 });
  });

  test(`what the library itself gives is refused, and the error says to pass ${call}`, async () => {
    await rollBack(async ({ raw }) => {
      await expect(source().add(raw as never, event)).rejects.toMatchObject({
        code: "invalid_argument",
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
});
