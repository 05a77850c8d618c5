import { randomUUID } from "node:crypto";
import { inspect } from "node:util";
import mysqlCallbacks from "mysql2";
import mysql from "mysql2/promise";
import pg from "pg";
import { describe, expect, it, onTestFinished } from "vitest";
import { type ClinicalEventType, createWebhooks, type EventInput, PostbellError } from "../../src/index.js";
import { manualClock } from "../../src/testing/index.js";
import { memoryStorage } from "../../storage/memory/index.js";
import {
  type MysqlPool,
  memorySource,
  mysqlSource,
  type OutboxOptions,
  outbox,
  pgSource,
} from "../../storage/outbox/index.js";

const START = Date.parse("2026-11-20T09:30:00Z");
const HOUR = 3_600_000;
const ACCOUNT = "clinic";

const eventFor = (patient: string, more: Partial<EventInput> = {}): EventInput => ({
  type: "patient.updated",
  account: ACCOUNT,
  resource: { resourceType: "Patient", id: patient },
  ...more,
});

interface Logged {
  readonly level: string;
  readonly message: string;
  readonly fields: object;
}

/**
 * A memory source, a webhook service with one endpoint, and an outbox between them that is not
 * started yet.
 */
async function openScene(
  options: Partial<OutboxOptions> & { readonly isBroken?: () => Error | undefined } = {},
) {
  const { isBroken = () => undefined, ...given } = options;
  const clock = manualClock(START);
  const source = memorySource({ clock });
  const access = { authenticate: () => null, canRead: () => true };
  const webhooks = createWebhooks({ storage: memoryStorage(), access, clock });
  const subscriber = { id: "key-1", account: ACCOUNT };
  const { webhook } = await webhooks.registrations.create({
    subscriber,
    url: "https://hooks.example.com/in",
  });
  const log: Logged[] = [];
  const note =
    (level: string) =>
    (fields: object, message: string): void =>
      void log.push({ level, message, fields });
  const logger = { debug: note("debug"), info: note("info"), warn: note("warn"), error: note("error") };
  const tried: string[] = [];
  const open = (more: Partial<OutboxOptions> = {}) => {
    const box = outbox({
      source,
      clock,
      logger,
      webhooks: {
        async emit(event) {
          tried.push(event.id ?? "");
          const error = isBroken();
          if (error) throw error;
          return webhooks.emit(event as EventInput<ClinicalEventType>);
        },
      },
      ...given,
      ...more,
    });
    onTestFinished(() => void box.stop({ graceMs: 0 }));
    return box;
  };
  const held = async (): Promise<string[]> => {
    const { items: deliveries } = await webhooks.deliveries.list({ webhookId: webhook.id, limit: 100 });
    return deliveries.map(({ eventId }) => eventId).sort();
  };
  return { clock, source, webhooks, log, tried, open, held };
}

const away = (): Error => new PostbellError("storage_unavailable", "The storage did not answer.");

describe("an outbox", () => {
  it("moves events without a resource, too", async () => {
    const { source, open, clock } = await openScene();
    const keys = { subject: "order/A-1", tags: ["invoice"] };
    const [id] = await source.add([
      { type: "order.paid", account: "shop-7", data: { order: "A-1" }, ...keys },
    ]);
    const seen: unknown[] = [];
    const box = open({
      webhooks: {
        emit: async (event) => {
          seen.push(event);
          return { duplicate: false };
        },
      },
    });
    await box.start();
    await box.idle();
    const occurredAt = new Date(clock.now());
    expect(seen).toEqual([
      { id, type: "order.paid", account: "shop-7", data: { order: "A-1" }, occurredAt, ...keys },
    ]);
  });

  it("emits what is in the source, with its ids and times, and leaves nothing there", async () => {
    const { source, webhooks, open, held, clock } = await openScene();
    const id = randomUUID();
    const ids = await source.add([eventFor("p1"), eventFor("p2", { id })]);
    await clock.advance(HOUR);
    const seen: EventInput[] = [];
    const box = open({
      webhooks: {
        emit: (event) => {
          seen.push(event as EventInput);
          return webhooks.emit(event as EventInput<ClinicalEventType>);
        },
      },
    });
    await box.start();
    await box.idle();
    expect(ids[1]).toBe(id);
    expect(await held()).toEqual([...ids].sort());
    expect(seen.map(({ occurredAt }) => new Date(occurredAt ?? 0).getTime())).toEqual([START, START]);
    expect(await box.stats()).toEqual({ waiting: 0, parked: 0, oldestMs: null, emitted: 2, duplicates: 0 });
  });

  it("logs an outage of its source when it begins, once a minute, and when it is over", async () => {
    const { clock, source, log, open } = await openScene();
    let isAway = true;
    const box = open({
      source: {
        ...source,
        claim: async (request) => {
          if (isAway) throw new Error("connect ECONNREFUSED");
          return source.claim(request);
        },
      },
    });
    await box.start();
    await clock.advance(150_000);
    isAway = false;
    await clock.advance(60_000);
    await box.idle();
    expect(log.map(({ level, message }) => `${level} ${message}`)).toEqual([
      "error the source could not be queried for due events",
      "error the source could not be queried for due events",
      "error the source could not be queried for due events",
      "warn the source can be queried again",
    ]);
    expect(log.at(-1)?.fields).toEqual({ forMs: expect.any(Number), failed: expect.any(Number) });
  });

  it("does nothing before it is started, nor after it is stopped, and may be started again", async () => {
    const { source, open, clock, tried } = await openScene();
    const box = open();
    await source.add(eventFor("p1"));
    await clock.advance(10_000);
    expect(tried).toEqual([]);
    await expect(box.idle()).rejects.toMatchObject({ code: "not_started" });
    await box.start();
    await box.start();
    await box.idle();
    await box.stop();
    await box.stop();
    expect(tried.length).toBe(1);
    await source.add(eventFor("p2"));
    await clock.advance(600_000);
    expect(tried.length).toBe(1);
    await box.start();
    await box.idle();
    expect(tried.length).toBe(2);
  });

  it("looks again every pollMs, at once where a batch was full, and at once when it is woken", async () => {
    const { source, open, clock, tried } = await openScene({ pollMs: 5_000, batch: 2 });
    const box = open();
    await box.start();
    await clock.advance(1);
    await source.add(Array.from({ length: 5 }, (_, at) => eventFor(`p${at}`)));
    await clock.advance(4_900);
    expect(tried.length).toBe(0);
    await clock.advance(200);
    expect(tried.length).toBe(5);
    await source.add(eventFor("p6"));
    box.wake();
    await clock.advance(1);
    expect(tried.length).toBe(6);
  });

  it("parks what is refused, with the reason, says so in the log without its content, and goes on with the rest", async () => {
    const { source, open, held, log } = await openScene();
    const used = await source.add(eventFor("p0"));
    const box = open();
    await box.start();
    await box.idle();
    await source.add([
      eventFor("secret-name", { type: "patient.upated" }),
      eventFor("secret-name", { resource: { resourceType: "Encounter" } }),
      eventFor("secret-name", { id: used }),
      eventFor("secret-name", { related: "none" as never }),
    ]);
    const good = await source.add(eventFor("p9"));
    await box.idle();
    expect(await held()).toEqual([used, good].sort());
    const parked = await box.parked();
    expect(parked.map(({ reason }) => reason.split(":")[0] ?? "").sort()).toEqual([
      "event_conflict",
      "invalid_argument",
      "invalid_argument",
      "unknown_event_type",
    ]);
    expect(await box.stats()).toMatchObject({ waiting: 0, parked: 4 });
    const errors = log.filter(({ level }) => level === "error");
    expect(errors.length).toBe(4);
    expect(errors.map(({ fields }) => (fields as { row: string }).row).sort()).toEqual(
      parked.map(({ key }) => key).sort(),
    );
    expect(JSON.stringify(log)).not.toContain("secret-name");
  });

  it("tries a released row again, and forgets a discarded one", async () => {
    let types = { "patient.updated": "Patient" } as Record<string, string>;
    const { source, open, clock } = await openScene();
    const access = { authenticate: () => null, canRead: () => true };
    const service = (): OutboxOptions["webhooks"] =>
      createWebhooks({ storage: memoryStorage(), access, clock, events: types });
    await source.add([eventFor("p1", { type: "patient.merged" }), eventFor("p2", { type: "patient.split" })]);
    const old = open({ webhooks: service() });
    await old.start();
    await old.idle();
    const [first, second] = await old.parked();
    await old.stop();
    types = { ...types, "patient.merged": "Patient" };
    const renewed = open({ webhooks: service() });
    await renewed.start();
    await renewed.release([first?.key ?? ""]);
    await renewed.discard([second?.key ?? ""]);
    await renewed.idle();
    expect(await renewed.stats()).toMatchObject({ waiting: 0, parked: 0, emitted: 1 });
    await expect(renewed.release("1" as never)).rejects.toMatchObject({
      code: "invalid_argument",
      field: "keys",
    });
    await expect(renewed.parked({ limit: 0 })).rejects.toMatchObject({
      code: "invalid_argument",
      field: "limit",
    });
  });

  it("waits longer and longer while Postbell's storage is away, with a single row, and catches up when it is back", async () => {
    let isAway = true;
    const scene = await openScene({ isBroken: () => (isAway ? away() : undefined) });
    const { source, open, clock, tried, held, log } = scene;
    const ids = await source.add(Array.from({ length: 30 }, (_, at) => eventFor(`p${at}`)));
    const box = open({ batch: 10 });
    await box.start();
    await clock.advance(HOUR);
    // One batch, then one row at a time: after 1, 2, 4 … 256 s, then every 5 minutes.
    expect(tried.length).toBeGreaterThanOrEqual(10 + 17);
    expect(tried.length).toBeLessThanOrEqual(10 + 22);
    expect(log.every(({ level }) => level === "warn")).toBe(true);
    isAway = false;
    await clock.advance(300_000);
    await box.idle();
    await clock.advance(300_000);
    await box.idle();
    expect(await held()).toEqual([...ids].sort());
  });

  it("lets no account wait for one that has no room left, however many events of that wait", async () => {
    const { source, open, clock } = await openScene();
    const emitted: (string | undefined)[] = [];
    const box = open({
      webhooks: {
        async emit({ account, id }) {
          if (account === "full") throw new PostbellError("storage_full", "limits.pendingPerAccount");
          emitted.push(id);
          return { duplicate: false };
        },
      },
    });
    await source.add(Array.from({ length: 1_000 }, () => eventFor("p1", { account: "full" })));
    await box.start();
    for (let minute = 0; minute < 20; minute++) {
      const id = await source.add(eventFor("p2"));
      await clock.advance(60_000);
      expect(emitted).toHaveLength(minute + 1);
      expect(emitted.at(-1)).toBe(id);
    }
    expect((await box.stats()).waiting).toBe(1_000);
  });

  it("emits a row again as long as Postbell knows its id, and parks it when nobody can tell any more", async () => {
    const { source, webhooks, open, held, clock, log } = await openScene();
    const id = await source.add(eventFor("p1"));
    /** A process that dies after its emit. */
    const dies = async (): Promise<void> => {
      const [claim] = await source.claim({ limit: 1, leaseMs: 60_000 });
      if (claim)
        await webhooks.emit({
          ...eventFor("p1"),
          id: claim.id,
          occurredAt: new Date(claim.addedAt),
        } as never);
    };
    await dies();
    await clock.advance(22 * HOUR);
    await dies();
    expect(await held()).toEqual([id]);
    await clock.advance(HOUR);
    const box = open();
    await box.start();
    await box.idle();
    const [parked] = await box.parked();
    expect(parked).toMatchObject({ id, reason: expect.stringMatching(/^unsure: /) });
    expect(log).toMatchObject([{ level: "error", fields: { event: id } }]);
    expect(await held()).toEqual([id]);
  });

  it("emits a row however old it is, as long as it is certain that nobody emitted it", async () => {
    let isFull = true;
    const full = (): Error => new PostbellError("storage_full", "The storage is full.");
    const { source, open, held, clock } = await openScene({ isBroken: () => (isFull ? full() : undefined) });
    const id = await source.add(eventFor("p1"));
    const box = open();
    await box.start();
    await clock.advance(100 * HOUR);
    isFull = false;
    await clock.advance(HOUR);
    expect(await held()).toEqual([id]);
    expect(await box.parked()).toEqual([]);
  });

  it("lets the row that kills its process take no other with it, and parks it in the end", async () => {
    const { source, open, webhooks, held, clock } = await openScene();
    const poison = await source.add(eventFor("poison"));
    const others = await source.add(Array.from({ length: 6 }, (_, at) => eventFor(`p${at}`)));
    const died = new Promise<never>(() => {});
    for (let life = 0; life < 25; life++) {
      let isDead = false;
      // All that is left of a killed process is its leases: it emits nothing more, and records
      // nothing.
      const dead =
        <A extends unknown[], R>(call: (...args: A) => Promise<R>) =>
        (...args: A) =>
          isDead ? died : call(...args);
      const box = open({
        source: {
          ...source,
          remove: dead((keys) => source.remove(keys)),
          retry: dead((request) => source.retry(request)),
          park: dead((request) => source.park(request)),
        },
        webhooks: {
          emit: (event) => {
            if (event.id === poison) isDead = true;
            return isDead ? died : webhooks.emit(event as EventInput<ClinicalEventType>);
          },
        },
      });
      await box.start();
      await clock.advance(10);
      void box.stop({ graceMs: 0 });
      await clock.advance(61_000);
    }
    expect(await held()).toEqual([...others].sort());
    expect(await source.parked({ limit: 10 })).toMatchObject([
      { id: poison, reason: expect.stringMatching(/^crashed: /) },
    ]);
    expect(await source.stats()).toMatchObject({ waiting: 0 });
  });

  it("emits nothing of what it claimed before it stood still for a lease, and leaves it to the next", async () => {
    const { source, open, clock, tried } = await openScene();
    const id = await source.add(eventFor("p1"));
    let stoodStillMs = 0;
    const box = open({
      clock: { ...clock, monotonic: () => clock.monotonic() + stoodStillMs },
      source: {
        ...source,
        async claim(request) {
          const claims = await source.claim(request);
          stoodStillMs = request.leaseMs;
          return claims;
        },
      },
    });
    await box.start();
    await clock.advance(1);
    expect(tried).toEqual([]);
    expect(await source.claim({ limit: 1, leaseMs: 1 })).toMatchObject([
      { id, claims: 2, retries: 1, unsureMs: null },
    ]);
    await clock.advance(10_000);
    expect(tried).toEqual([id]);
  });

  it("goes on when the source was away, and says so to who waits for it", async () => {
    const { source, open, clock, held, log } = await openScene();
    const id = await source.add(eventFor("p1"));
    let isAway = true;
    const box = open({
      source: {
        ...source,
        claim: (request) =>
          isAway ? Promise.reject(new Error("ECONNREFUSED for user:secret@db")) : source.claim(request),
      },
    });
    await box.start();
    await expect(box.idle()).rejects.toThrow("ECONNREFUSED");
    await clock.advance(HOUR);
    isAway = false;
    await clock.advance(300_000);
    expect(await held()).toEqual([id]);
    // Not as JSON, which leaves the message of an Error out.
    expect(inspect(log, { depth: 9 })).not.toContain("secret@db");
  });

  it("stops within its grace though an emit hangs", async () => {
    const { source, open, clock } = await openScene();
    await source.add(eventFor("p1"));
    const box = open({ webhooks: { emit: () => new Promise(() => {}) } });
    await box.start();
    await clock.advance(1);
    let isStopped = false;
    const stopping = box.stop({ graceMs: 2_000 }).then(() => {
      isStopped = true;
    });
    await clock.advance(1_900);
    expect(isStopped).toBe(false);
    await clock.advance(200);
    await stopping;
  });

  it.each<[object, string]>([
    [{}, "webhooks"],
    [{ webhooks: { emit() {} } }, "source"],
    [{ webhooks: { emit() {} }, source: {} }, "source"],
    [{ webhooks: { emit() {} }, source: memorySource(), batchSize: 5 }, "batchSize"],
    [{ webhooks: { emit() {} }, source: memorySource(), leaseMs: 1_000 }, "leaseMs"],
  ])("refuses options that it cannot work with: %#", (options, field) => {
    expect(() => outbox(options as OutboxOptions)).toThrow(
      expect.objectContaining({ code: "invalid_option", field }),
    );
  });
});

describe("an event that is added", () => {
  it.each<[string, unknown, string | undefined]>([
    ["no event", null, undefined],
    ["an unknown field", { ...eventFor("p1"), occuredAt: new Date() }, "occuredAt"],
    ["no account", { type: "patient.updated", resource: { resourceType: "Patient" } }, "account"],
    ["an account with a lone surrogate", { ...eventFor("p1"), account: "a\ud800" }, "account"],
    ["no resource", { type: "patient.updated", account: "a" }, "resource"],
    ["an id that is no UUID", eventFor("p1", { id: "1" }), "id"],
    ["an invalid time", eventFor("p1", { occurredAt: "yesterday" }), "occurredAt"],
    ["a subject that is no text", { ...eventFor("p1"), subject: 7 } as never, "subject"],
    ["tags that are no list", eventFor("p1", { tags: "invoice" as never }), "tags"],
    ["no type", eventFor("p1", { type: 1 as never }), "type"],
    [
      "what JSON cannot hold",
      eventFor("p1", { resource: { resourceType: "Patient", n: 1n } as never }),
      "resource",
    ],
  ])("is refused in the host's transaction: %s", async (_, event, field) => {
    const source = memorySource();
    const added = source.add([eventFor("p0"), event as EventInput]);
    await expect(added).rejects.toMatchObject({ code: "invalid_argument", field });
    expect((await source.stats()).waiting).toBe(0);
  });
});

describe("the sources on SQL", () => {
  const pool = new pg.Pool({ max: 1 });
  const promisePool = mysql.createPool({ host: "127.0.0.1", port: 1 });

  it("take the pools of pg and mysql2, and clients of theirs", async () => {
    // Compiled against the types of the drivers; nothing is connected.
    const onPostgres = pgSource({ pool });
    const withClient = (client: pg.PoolClient | pg.Client): Promise<string> =>
      onPostgres.add(client, eventFor("p1"));
    const onMysql = mysqlSource({ pool: promisePool });
    const withConnection = (
      connection: mysql.PoolConnection | mysql.Connection,
    ): Promise<readonly string[]> => onMysql.add(connection, [eventFor("p1")]);
    expect([withClient, withConnection]).toHaveLength(2);
    await expect(onPostgres.add(pool, eventFor("p1"))).rejects.toMatchObject({ code: "invalid_argument" });
    await expect(onMysql.add(promisePool, eventFor("p1"))).rejects.toMatchObject({
      code: "invalid_argument",
    });
  });

  it("refuse a pool with callbacks, whose calls answer nobody who waits", () => {
    const callbacks = mysqlCallbacks.createPool({ host: "127.0.0.1", port: 1 });
    expect(() => mysqlSource({ pool: callbacks as unknown as MysqlPool })).toThrow(/pool\.promise\(\)/);
    mysqlSource({ pool: callbacks.promise() });
  });

  it.each(["events; DROP TABLE x", 'a"b', "a`b", "a.b.c", "", "1a", "ö", "x".repeat(49), ".a"])(
    "refuse a table whose name is %j",
    (table) => {
      expect(() => pgSource({ pool, table })).toThrow(
        expect.objectContaining({ code: "invalid_option", field: "table" }),
      );
      expect(() => mysqlSource({ pool: promisePool, table })).toThrow(
        expect.objectContaining({ field: "table" }),
      );
    },
  );

  it("quote the name of the table and of its schema", () => {
    expect(pgSource({ pool, table: "app.Order" }).schema()).toContain(
      'CREATE TABLE IF NOT EXISTS "app"."Order" (',
    );
    expect(pgSource({ pool, table: "app.Order" }).schema()).toContain(
      'INDEX IF NOT EXISTS "Order_due" ON "app"."Order"',
    );
    expect(mysqlSource({ pool: promisePool, table: "app.order" }).schema()).toContain("`app`.`order`");
  });
});
