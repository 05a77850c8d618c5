/** Events that a receiver remembers beyond its process: in memory, SQLite and Redis. */

import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { createReceiver, type ReceivedEvents } from "../../src/receiver/index.js";
import { signatureHeader } from "../../src/signature/signature.js";
import { manualClock } from "../../src/testing/manual-clock.js";
import { memoryReceived, redisReceived, sqliteReceived } from "../../storage/received/index.js";
import { receivedEventsContract, receivedExpiryContract } from "../contracts/received-events.js";
import { type RedisServer, startRedis } from "../support/redis-server.js";
import { createDatabaseFile, openDatabase } from "../support/sqlite.js";

const clock = manualClock(Date.UTC(2026, 10, 28));
const cleanup: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of cleanup.splice(0).reverse()) await end();
});

function openSqlite() {
  const { path, destroy } = createDatabaseFile();
  const databases = [openDatabase(path), openDatabase(path)] as const;
  cleanup.push(destroy, ...databases.map((database) => () => database.close()));
  const [first, second] = databases.map((database) => sqliteReceived({ database: database as never, clock }));
  if (first === undefined || second === undefined) throw new Error("two databases");
  first.install();
  second.install();
  return { first, second, database: databases[0], other: databases[1] };
}

describe("memoryReceived", () => {
  const open = async (): Promise<[ReceivedEvents, ReceivedEvents]> => {
    const received = memoryReceived();
    return [received, received];
  };
  receivedEventsContract(open);
  receivedExpiryContract(open);
});

describe("sqliteReceived", () => {
  const open = async (): Promise<[ReceivedEvents, ReceivedEvents]> => {
    const { first, second } = openSqlite();
    return [first, second];
  };
  receivedEventsContract(open);
  receivedExpiryContract(open);

  it("marks an event in the host's transaction: its effect happens once, or not at all", async () => {
    const { first, database } = openSqlite();
    database.exec("CREATE TABLE paid (id TEXT)");
    const count = (): unknown => database.prepare("SELECT count(*) AS n FROM paid").all()[0];
    const pay = (fails: boolean): void => {
      database.exec("BEGIN IMMEDIATE");
      try {
        if (first.markHandled("evt_1")) database.exec("INSERT INTO paid VALUES ('evt_1')");
        if (fails) throw new Error("the process dies");
        database.exec("COMMIT");
      } catch (error) {
        database.exec("ROLLBACK");
        throw error;
      }
    };
    expect(() => pay(true)).toThrow("the process dies");
    expect(count()).toMatchObject({ n: 0 });
    pay(false);
    pay(false);
    expect(count()).toMatchObject({ n: 1 });
    expect(await first.claim({ id: "evt_1", now: clock.now(), leaseUntil: clock.now() + 1 })).toBe("done");
  });

  it("refuses to mark an event while no transaction is open on the database", async () => {
    const { first, database } = openSqlite();
    expect(() => first.markHandled("evt_1")).toThrow(
      expect.objectContaining({
        code: "invalid_argument",
        message: expect.stringContaining("no transaction is open on the database"),
      }),
    );
    expect(await first.claim({ id: "evt_1", now: clock.now(), leaseUntil: clock.now() + 1 })).toBe("new");
    // The drivers name it differently, and older ones do not tell.
    const mark = (property: object): string => {
      const driver = {
        prepare: (text: string) => database.prepare(text),
        exec: (text: string) => database.exec(text),
        ...property,
      };
      try {
        return `marked: ${sqliteReceived({ database: driver as never, clock }).markHandled("evt_2")}`;
      } catch (error) {
        return (error as { code: string }).code;
      }
    };
    expect(mark({ isTransaction: false })).toBe("invalid_argument");
    expect(mark({ inTransaction: false })).toBe("invalid_argument");
    expect(mark({ isTransaction: true })).toBe("marked: true");
    expect(mark({ inTransaction: true })).toBe("marked: false");
    expect(mark({})).toBe("marked: false");
  });

  it("loses no claim to the rollback of a host that awaits, if the receiver has its own database", async () => {
    const { first, second, database, other } = openSqlite();
    database.exec("PRAGMA busy_timeout = 0");
    const claim = (id: string) => first.claim({ id, now: clock.now(), leaseUntil: clock.now() + 1_000 });
    expect([await claim("evt_1"), await claim("evt_2")]).toEqual(["new", "new"]);
    other.exec("BEGIN IMMEDIATE");
    expect(second.markHandled("evt_1")).toBe(true);
    await expect(claim("evt_3")).rejects.toThrow("locked");
    other.exec("ROLLBACK");
    expect([await claim("evt_1"), await claim("evt_2")]).toEqual(["in_flight", "in_flight"]);
    expect(await claim("evt_3")).toBe("new");
  });

  it("deletes all expired events call by call, without waiting for the next minute", async () => {
    const { first, database } = openSqlite();
    const now = clock.now();
    database.exec("BEGIN");
    for (let n = 0; n < 2_500; n += 1)
      database.exec(`INSERT INTO postbell_received (id, until, is_done) VALUES ('old ${n}', ${now}, 1)`);
    database.exec("COMMIT");
    for (const id of ["a", "b", "c"]) await first.claim({ id, now, leaseUntil: now + 1 });
    const rows = database.prepare("SELECT id FROM postbell_received ORDER BY id").all();
    expect(rows).toMatchObject([{ id: "e//a" }, { id: "e//b" }, { id: "e//c" }]);
  });

  it("keeps the events of receivers with different scopes apart, and refuses wrong options", async () => {
    const { first, database } = openSqlite();
    const other = sqliteReceived({ database: database as never, scope: "github" });
    const request = { id: "a", now: 0, leaseUntil: 1_000 };
    expect([await first.claim(request), await other.claim(request)]).toEqual(["new", "new"]);
    for (const [options, field] of [
      [{}, "database"],
      [{ database: {} }, "database"],
      [{ database, table: "a; DROP" }, "table"],
      [{ database, scope: 7 }, "scope"],
    ] as const)
      expect(() => sqliteReceived(options as never)).toThrow(
        expect.objectContaining({ code: "invalid_option", field }),
      );
  });
});

describe("redisReceived", () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());
  receivedEventsContract(async () => {
    await redis.cli("flushall");
    const clients = [new Redis(redis.url), new Redis(redis.url)] as const;
    cleanup.push(...clients.map((client) => () => client.disconnect()));
    return [redisReceived({ client: clients[0] }), redisReceived({ client: clients[1] })];
  });

  it("gives every lease and every event an expiry, and the cursors none", async () => {
    const client = new Redis(redis.url);
    cleanup.push(() => client.disconnect());
    const received = redisReceived({ client, prefix: "acme:" });
    await received.claim({ id: "a", now: 0, leaseUntil: 50_000 });
    const lease = await client.pttl("acme:e:a");
    await received.confirm({ id: "a", now: 0, keepUntil: 900_000 });
    await received.writeCursor({ feed: "f", cursor: "1" });
    const [event, cursor] = [await client.pttl("acme:e:a"), await client.pttl("acme:c:f")];
    expect([lease > 0 && lease <= 50_000, event > 50_000 && event <= 900_000, cursor]).toEqual([
      true,
      true,
      -1,
    ]);
  });
});

describe("a receiver with a storage", () => {
  const secret = "whsec_of_the_endpoint";
  const body = JSON.stringify({ id: "e1", type: "order.paid", timestamp: "2026-11-28T00:00:00Z", data: {} });
  const request = () => ({
    body,
    headers: {
      "x-service-signature": signatureHeader({
        secret,
        timestamp: clock.now() / 1_000,
        body: Buffer.from(body),
      }),
    },
  });
  const open = (storage: ReceivedEvents, onEvent: () => unknown) =>
    createReceiver({ body: "plain", secrets: secret, storage, onEvent, clock, logger: false });

  it("handles an event once over two processes and a restart", async () => {
    const storage = memoryReceived();
    let count = 0;
    const onEvent = (): void => {
      count += 1;
    };
    const [one, two] = [open(storage, onEvent), open(storage, onEvent)];
    expect(await one.receive(request())).toMatchObject({ ok: true, duplicate: false });
    expect(await two.receive(request())).toMatchObject({ ok: true, duplicate: true });
    expect(await open(storage, onEvent).receive(request())).toMatchObject({ ok: true, duplicate: true });
    expect(count).toBe(1);
  });

  it("refuses an event that another process handles, and takes it after that one failed", async () => {
    const storage = memoryReceived();
    let fail = (): void => {};
    const failing = open(
      storage,
      () =>
        new Promise((_, reject) => {
          fail = () => reject(new Error("disk full"));
        }),
    );
    const pending = failing.receive(request());
    await new Promise(setImmediate);
    const other = open(storage, () => {});
    expect(await other.receive(request())).toMatchObject({ ok: false, code: "event_underway", status: 409 });
    fail();
    expect(await pending).toMatchObject({ ok: false, code: "handler_failed" });
    expect(await other.receive(request())).toMatchObject({ ok: true, duplicate: false });
  });

  it("lets another process take an event after five minutes in onEvent, but never the same process", async () => {
    const storage = memoryReceived();
    let finish = (): void => {};
    const slow = open(
      storage,
      () =>
        new Promise<void>((resolve) => {
          finish = resolve;
        }),
    );
    const pending = slow.receive(request());
    await new Promise(setImmediate);
    const other = open(storage, () => {});
    await clock.advance(4 * 60_000);
    expect(await other.receive(request())).toMatchObject({ ok: false, code: "event_underway" });
    await clock.advance(60_000);
    expect(await slow.receive(request())).toMatchObject({ ok: false, code: "event_underway" });
    expect(await other.receive(request())).toMatchObject({ ok: true, duplicate: false });
    finish();
    expect(await pending).toMatchObject({ ok: true, duplicate: false });
    expect(await other.receive(request())).toMatchObject({ ok: true, duplicate: true });
  });

  it("answers 500 and calls nothing if the storage fails before, and 204 if it fails after", async () => {
    const storage = memoryReceived();
    let count = 0;
    const broken = () => Promise.reject(new Error("no connection"));
    const onEvent = (): void => {
      count += 1;
    };
    const before = open({ ...storage, claim: broken }, onEvent);
    expect(await before.receive(request())).toMatchObject({ ok: false, code: "storage_failed", status: 500 });
    expect(count).toBe(0);
    const after = open({ ...storage, confirm: broken }, onEvent);
    expect(await after.receive(request())).toMatchObject({ ok: true, duplicate: false });
    expect(await after.receive(request())).toMatchObject({ ok: true, duplicate: true });
    expect(count).toBe(1);
  });

  it("is refused if it is no storage of events", () => {
    for (const storage of [{}, null, "redis://localhost", { claim() {} }])
      expect(() => open(storage as never, () => {})).toThrow(
        expect.objectContaining({ code: "invalid_option", field: "storage" }),
      );
  });
});
