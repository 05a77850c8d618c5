/** Events that a receiver remembers in Postgres, and in the transactions of its host. */

import type pg from "pg";
import { afterAll, beforeAll, describe, expect, it, test } from "vitest";
import { createReceiver } from "../../src/receiver/index.js";
import { signatureHeader } from "../../src/signature/signature.js";
import { pgReceived } from "../../storage/received/index.js";
import { receivedEventsContract, receivedExpiryContract } from "../contracts/received-events.js";
import { eventually } from "../support/eventually.js";
import { startPostgresPool } from "./support/database-server.js";
import { ORMS } from "./support/orms.js";

let url: string;
let pool: pg.Pool;
let stop: () => Promise<void>;

beforeAll(async () => {
  ({ url, pool, stop } = await startPostgresPool(10));
  await pool.query("CREATE TABLE paid (event_id text)");
});
afterAll(() => stop());

let tables = 0;
const open = async () => {
  const received = pgReceived({ pool, table: `received_${++tables}` });
  await Promise.all([received.install(), received.install()]);
  return received;
};
const openBoth = async () => {
  const first = await open();
  return [first, pgReceived({ pool, table: `received_${tables}` })] as [typeof first, typeof first];
};

describe("pgReceived", () => {
  receivedEventsContract(openBoth);
  receivedExpiryContract(openBoth);

  it("keeps an expired event that another transaction renews while expired events are deleted", async () => {
    const received = await open();
    const table = `received_${tables}`;
    const now = Date.UTC(2026, 10, 28);
    await pool.query(`INSERT INTO ${table} (id, until, is_done) VALUES ('e//renewed', ${now}, 0)`);
    const other = await pool.connect();
    await other.query("BEGIN");
    await other.query(`UPDATE ${table} SET until = ${now + 60_000}, is_done = 1 WHERE id = 'e//renewed'`);
    const claimed = received.claim({ id: "new", now, leaseUntil: now + 1 });
    await eventually(async () => {
      const waiting = await pool.query(
        "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE $1",
        [`DELETE FROM "${table}"%`],
      );
      return waiting.rows.length > 0;
    }, "the deletion waits for the row");
    await other.query("COMMIT");
    other.release();
    expect(await claimed).toBe("new");
    expect(await received.claim({ id: "renewed", now, leaseUntil: now + 1 })).toBe("done");
  });

  it("refuses a pool in place of a transaction, and a value that is neither", async () => {
    const received = await open();
    await expect(received.markHandled("a", pool)).rejects.toMatchObject({ code: "invalid_argument" });
    await expect(received.markHandled("a", {} as never)).rejects.toMatchObject({ field: "transaction" });
  });
});

const countPaid = async (id: string): Promise<number> =>
  Number((await pool.query("SELECT count(*) FROM paid WHERE event_id = $1", [id])).rows[0].count);

test.each(ORMS)(
  "a transaction of %s handles an event once, whatever crashes and whoever else tries",
  async (name, _, openOrm) => {
    const received = await open();
    const orm = await openOrm(url);
    const id = `evt ${name.replace("'", "")}`;
    const pay = (fails: boolean) =>
      orm.transaction(async ({ connection, run }) => {
        if (await received.markHandled(id, connection)) await run(`INSERT INTO paid VALUES ('${id}')`);
        if (fails) throw new Error("the process dies");
      });
    try {
      await expect(pay(true)).rejects.toThrow("the process dies");
      expect(await countPaid(id)).toBe(0);
      await Promise.all([pay(false), pay(false), pay(false)]);
      expect(await countPaid(id)).toBe(1);
      await pay(false);
      expect(await countPaid(id)).toBe(1);
    } finally {
      await orm.close();
    }
  },
);

test("a receiver whose process dies between commit and confirmation handles no event twice", async () => {
  const received = await open();
  const secret = "whsec_of_the_endpoint";
  const body = JSON.stringify({
    id: "evt_1",
    type: "order.paid",
    timestamp: "2026-11-28T00:00:00Z",
    data: {},
  });
  const onEvent = async ({ id }: { id: string }): Promise<void> => {
    const client = await pool.connect();
    try {
      await client.query("BEGIN");
      if (await received.markHandled(id, client)) await client.query("INSERT INTO paid VALUES ($1)", [id]);
      await client.query("COMMIT");
    } finally {
      client.release();
    }
  };
  const dying = { ...received, confirm: () => new Promise<never>(() => {}) };
  const create = (storage: typeof received) =>
    createReceiver({ body: "plain", secrets: secret, storage, onEvent, logger: false });
  const request = () => {
    const timestamp = Math.floor(Date.now() / 1_000);
    return {
      body,
      headers: { "x-service-signature": signatureHeader({ secret, timestamp, body: Buffer.from(body) }) },
    };
  };
  void create(dying as typeof received).receive(request());
  await expect.poll(() => countPaid("evt_1")).toBe(1);
  expect(await create(received).receive(request())).toMatchObject({ ok: true, duplicate: true });
  expect(await countPaid("evt_1")).toBe(1);
});
