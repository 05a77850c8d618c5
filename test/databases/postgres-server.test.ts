/** Postgres that turns read-only, is cut off, forgets connections, and refuses transactions. */

import pg from "pg";
import { afterEach, describe, expect, it, onTestFinished } from "vitest";
import { silentLogger } from "../../src/core/logger.js";
import { createWebhooks, systemClock, type Webhooks } from "../../src/index.js";
import { postgresStorage } from "../../storage/postgres/index.js";
import { balanced, openChecker } from "../faults/support/checker.js";
import { KEY, openLedger, patientEvent } from "../faults/support/ledger.js";
import { startSubscriber } from "../faults/support/ledger-subscriber.js";
import { startPostgresUnderTest, toPostgres } from "../faults/support/postgres-under-test.js";
import { startForTests } from "../faults/support/start-for-tests.js";
import { codeOf, driveStore, newEvent } from "../faults/support/store-driver.js";
import { eventually } from "../faults/support/worker-host.js";
import { openScene, QUICK } from "../faults/support/worker-scene.js";
import { callsOf } from "../support/content-call.js";
import { contentSite } from "../support/content-site.js";
import { registrationApi } from "../support/registration-api.js";
import { startProxy, type TcpProxy } from "../support/tcp-proxy.js";
import { held } from "../support/webhook-harness.js";

const on = startForTests(startPostgresUnderTest);

/** A connection of the test itself. */
async function connect(): Promise<pg.Client> {
  const client = new pg.Client({
    ...{ host: "127.0.0.1", port: on().server?.port ?? 0 },
    ...{ user: "postgres", database: "postgres" },
  });
  client.on("error", () => {});
  await client.connect();
  onTestFinished(() => client.end().catch(() => {}));
  return client;
}

async function startProxyBefore(): Promise<TcpProxy> {
  const proxy = await startProxy({ host: "127.0.0.1", port: on().server?.port ?? 0 });
  onTestFinished(() => proxy.stop());
  return proxy;
}

describe("Postgres that is read-only after a fail-over", () => {
  /** Also sessions that are open follow. */
  const setReadOnly = async (isReadOnly: boolean): Promise<void> => {
    const client = await connect();
    await client.query("SET default_transaction_read_only = off");
    await client.query(`ALTER SYSTEM SET default_transaction_read_only = ${isReadOnly ? "on" : "off"}`);
    await client.query("SELECT pg_reload_conf()");
    // Claims do not wait for the disk. A lease that the kill below loses is claimed again, which is
    // not what this test is about.
    await client.query("CHECKPOINT");
  };
  afterEach(() => setReadOnly(false));

  it("is answered with 503 and Retry-After; nothing is lost, and all is delivered once it is writable", async () => {
    const answer = held<number>();
    const scene = await openScene(on(), {
      subscriber: { answer: ({ path }) => (path === "/held" ? answer.promise : 204) },
    });
    const { ledger, checker, subscriber, launch, options } = scene;
    const site = on().open(options.storage);
    const api = on().open(options.storage);
    onTestFinished(async () => {
      await Promise.all([site.close(), api.close()]);
    });
    const content = callsOf(contentSite({ storage: site, logger: silentLogger }));
    const registrations = registrationApi({ storage: api, clock: systemClock });
    const create = (title: string) =>
      content("POST /posts", { as: "administrator", body: { title, status: "publish" } });
    expect((await create("Before")).status).toBe(201);
    await ledger.register("/held");
    await ledger.emit();
    const worker = await launch();
    await eventually(() => subscriber.received.length === 1, "the endpoint has a request");

    await setReadOnly(true);
    await on().server?.kill();
    await on().server?.restart();
    const isReadOnly = async (): Promise<boolean> => (await create("Refused")).status === 503;
    await eventually(isReadOnly, "writes are refused");
    expect((await create("Refused")).headers["Retry-After"]).toBe("5");
    const list = await content("GET /posts");
    expect([list.status, list.headers["X-WP-Total"]]).toEqual([200, "1"]);
    const url = "https://hooks.example.com/";
    expect(await registrations.call("POST", "/v1/webhooks", { json: { url } })).toMatchObject({
      status: 503,
      headers: { "retry-after": "5" },
    });
    expect((await registrations.call("GET", "/v1/webhooks")).status).toBe(200);
    expect(await codeOf(ledger.emit())).toBe("storage_unavailable");
    answer.resolve(204);
    const isRefused = (): boolean =>
      worker.journal().some(({ warn }) => warn === "a delivery could not be settled");
    await eventually(isRefused, "the settlement is refused");

    await setReadOnly(false);
    await ledger.emitUntilStored();
    await checker.drained();
    expect((await create("After")).status).toBe(201);
    expect(await checker.books(ledger, subscriber)).toEqual({ ...balanced, deliveries: 2, duplicates: 0 });
  });
});

describe("a connection that breaks", () => {
  /** Bytes between two cuts. */
  const STEP = 53;

  it("at any byte of an emit leaves all or nothing: emitted again, it is there once", async () => {
    const { ledger, checker, options } = await openScene(on());
    for (const path of ["/1", "/2", "/3"]) await ledger.register(path);
    const proxy = await startProxyBefore();
    const through = { ...options, storage: on().through(options.storage, proxy.port) };
    const cut = openLedger(on(), through, await startSubscriber());
    const codes = new Map<string, number>();
    let events = 0;
    for (let bytes = 1; ; bytes += STEP) {
      // Has a connection ready, as a process has that runs.
      await eventually(
        async () => (await codeOf(cut.webhooks.registrations.list({ account: KEY.account }))) === "resolved",
        "it is connected",
      );
      await proxy.mode({ resetAfterBytes: bytes });
      const event = patientEvent();
      const code = await codeOf(cut.emit(event));
      const isWhole = proxy.openConnections() > 0 && code === "resolved";
      await proxy.mode("pass");
      codes.set(code, (codes.get(code) ?? 0) + 1);
      const { duplicate, deliveries } = await ledger.emit(event);
      expect(deliveries).toHaveLength(3);
      expect([duplicate, code]).not.toEqual([false, "resolved"]);
      events++;
      if (isWhole) break;
    }
    expect([...codes.keys()].sort()).toEqual(["resolved", "storage_unavailable"]);
    expect(await checker.store.stats()).toMatchObject({ events, pending: 3 * events });
    expect(await checker.inspector.findFaults()).toEqual([]);
    console.log(`Postgres: an emit cut at ${events} places: ${JSON.stringify([...codes])}`);
  });

  it("in silence is given up: other connections take its place within seconds", async () => {
    const { ledger, checker, options } = await openScene(on());
    await ledger.register("/");
    const proxy = await startProxyBefore();
    const through = { ...options, storage: on().through(options.storage, proxy.port) };
    const far = openLedger(on(), through, await startSubscriber());
    for (let round = 0; round < 2; round++) {
      await Promise.all(Array.from({ length: 12 }, () => far.emit()));
      proxy.freezeAll();
      const events = Array.from({ length: 12 }, () => patientEvent());
      const codes = await Promise.all(events.map((event) => codeOf(far.emit(event))));
      expect(new Set([...codes, "resolved", "storage_unavailable"]).size).toBe(2);
      await eventually(async () => (await codeOf(far.emit())) === "resolved", "it works again", 30_000);
    }
    expect(await checker.inspector.findFaults()).toEqual([]);
  });

  it("in the middle of an answer does not end the process, nor what else it does", async () => {
    const { ledger, checker, subscriber, launch, options } = await openScene(on());
    await ledger.register("/");
    const proxy = await startProxyBefore();
    const worker = await launch({ storage: on().through(options.storage, proxy.port) });
    for (let round = 0; round < 20; round++) {
      const before = subscriber.received.length;
      await Promise.all([ledger.emit(), ledger.emit()]);
      await eventually(() => subscriber.received.length > before, "a request has come");
      await proxy.mode("swallow");
      await proxy.mode("pass");
      proxy.cutAll();
    }
    await checker.drained(60_000);
    const { duplicates, ...books } = await checker.books(ledger, subscriber);
    expect(books).toEqual({ ...balanced, deliveries: 40 });
    expect(duplicates).toBe(0);
    expect(worker.hasExited()).toBe(false);
  });
});

describe("a transaction that Postgres refuses", () => {
  type Query = (...values: unknown[]) => unknown;

  /** A pool whose COMMITs fail as told; a transaction that failed is rolled back. */
  async function openRefusing(code: string) {
    const address = toPostgres(await on().fresh());
    const pool = new pg.Pool({ connectionString: address.url, max: 3 });
    let left = 0;
    pool.on("connect", (client) => {
      const query = client.query.bind(client) as Query;
      client.query = ((...values: unknown[]) => {
        if (values[0] !== "COMMIT" || left === 0) return query(...values);
        left--;
        const refuse = async () => {
          await query("ROLLBACK");
          throw Object.assign(new Error("refused by the test"), { code });
        };
        return refuse();
      }) as never;
    });
    const storage = postgresStorage({ pool, schema: address.schema });
    onTestFinished(async () => {
      await storage.close();
      await pool.end();
    });
    const refuse = (times: number): void => {
      left = times;
    };
    return { storage, address, refuse };
  }

  it.each(["40001", "40P01"])("for a conflict (%s) is run again, and nobody sees it", async (code) => {
    const { storage, address, refuse } = await openRefusing(code);
    const { append, claim, settle, register, store } = driveStore(storage);
    await register();
    refuse(3);
    expect(await append(newEvent("clinic"))).toMatchObject({ result: "stored" });
    refuse(3);
    const [claimed] = await claim();
    if (!claimed) throw new Error("one is due");
    refuse(3);
    expect(await settle(claimed)).toBe("settled");
    expect(await store.stats()).toMatchObject({ events: 1, pending: 0, ended: 1 });
    const inspector = on().inspect(address);
    expect(await inspector.findFaults()).toEqual([]);
    await inspector.close();
  });

  it("for want of room on the disk rejects with storage_full, and nothing was stored", async () => {
    const { storage, refuse } = await openRefusing("53100");
    const { append, register, store } = driveStore(storage);
    await register();
    refuse(1);
    expect(await codeOf(append(newEvent("clinic")))).toBe("storage_full");
    expect((await store.stats()).events).toBe(0);
    expect(await append(newEvent("clinic"))).toMatchObject({ result: "stored" });
  });

  it("to end a deadlock is run again, and nobody sees it", async () => {
    const address = toPostgres(await on().fresh());
    const storage = on().open(address);
    onTestFinished(() => storage.close());
    const { append, claim, register, store } = driveStore(storage);
    const webhooks = [await register(), await register()];
    await append(newEvent("clinic"));
    const host = await connect();
    const other = await connect();
    const lock = (client: pg.Client, id = ""): Promise<unknown> =>
      client.query(`SELECT 1 FROM "${address.schema}".endpoints WHERE id = $1 FOR UPDATE`, [id]);
    // Holds the second endpoint. Who adds up the counts of both locks the first one, and waits.
    await host.query("BEGIN");
    await lock(host, webhooks[1]?.id);
    const claiming = claim();
    const isWaiting = async (): Promise<boolean> => {
      const { rows } = await other.query("SELECT 1 FROM pg_locks WHERE NOT granted");
      return rows.length > 0;
    };
    await eventually(isWaiting, "the claim waits");
    // Now each waits for the other, and the one that has waited longer is ended.
    await lock(host, webhooks[0]?.id);
    await host.query("COMMIT");
    expect(await claiming).toHaveLength(2);
    expect((await store.stats()).leased).toBe(2);
  });
});

describe("tables that change while a process runs", () => {
  it("are read as they are now: a migration of a newer version may add to them", async () => {
    const address = toPostgres(await on().fresh());
    const storage = on().open(address);
    onTestFinished(() => storage.close());
    const { append, drain, register, store } = driveStore(storage);
    const { id: webhookId } = await register();
    const deliver = async (): Promise<void> => {
      await Promise.all(Array.from({ length: 5 }, () => append(newEvent("clinic"))));
      expect(await drain()).toHaveLength(5);
      await store.listDeliveries({ webhookId, limit: 10 });
    };
    await deliver();
    const client = await connect();
    const { rows } = await client.query("SELECT tablename FROM pg_tables WHERE schemaname = $1", [
      address.schema,
    ]);
    for (const { tablename } of rows as { tablename: string }[]) {
      await client.query(`ALTER TABLE "${address.schema}"."${tablename}" ADD COLUMN later text`);
    }
    await deliver();
    const inspector = on().inspect(address);
    expect(await inspector.findFaults()).toEqual([]);
    await inspector.close();
  });
});

describe("a process whose clock is wrong", () => {
  const HOUR_MS = 3_600_000;
  const NEAR_MS = 10_000;

  it.each([
    ["ten years ahead", 87_600 * HOUR_MS],
    ["an hour behind", -HOUR_MS],
  ])("%s: retries and leases keep the time of Postgres", async (_, shiftMs) => {
    const address = await on().fresh();
    const checker = openChecker(on(), address);
    const failed = new Set<string>();
    const subscriber = await startSubscriber({
      answer({ id }) {
        if (failed.has(id)) return 204;
        failed.add(id);
        return 500;
      },
    });
    const storage = on().open(address);
    const webhooks: Webhooks = createWebhooks({
      ...QUICK,
      storage,
      access: { authenticate: () => null, canRead: () => true },
      destinations: {
        allowPrivateNetworks: true,
        ca: subscriber.ca,
        resolve: async () => ["127.0.0.1"],
      },
      clock: { ...systemClock, now: () => Date.now() + shiftMs },
      logger: silentLogger,
    });
    onTestFinished(async () => {
      await webhooks.stop({ graceMs: 0 });
      await storage.close();
    });
    const { webhook, secret } = await webhooks.registrations.create({
      subscriber: KEY,
      url: subscriber.url("/"),
    });
    subscriber.trust(webhook.id, secret);
    await webhooks.start();
    const began = Date.now();
    const { deliveries } = await webhooks.emit({
      ...{ type: "patient.updated", account: KEY.account },
      resource: { resourceType: "Patient", id: "p1" },
    });
    await checker.drained();
    const { attempts } = await checker.delivery(deliveries[0]?.id ?? "");
    expect(attempts.map(({ status }) => status)).toEqual([500, 204]);
    const [first = 0, second = 0] = attempts.map(({ at }) => at);
    expect(Math.abs(first - began)).toBeLessThan(NEAR_MS);
    expect(second - first).toBeGreaterThanOrEqual(QUICK.retry.intervalsMs[0]);
    expect(second - first).toBeLessThan(NEAR_MS);
    expect(subscriber.received).toHaveLength(2);
  });
});
