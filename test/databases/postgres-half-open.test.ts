/** Connections, locks, the queue and notifications while others use the server. */

import pg from "pg";
import { describe, expect, it, onTestFinished } from "vitest";
import { manualClock } from "../../src/testing/manual-clock.js";
import { postgresStorage } from "../../storage/postgres/index.js";
import { startPostgresUnderTest, toPostgres } from "../faults/support/postgres-under-test.js";
import { startForTests } from "../faults/support/start-for-tests.js";
import type { StorageAddress } from "../faults/support/storage-under-test.js";
import { codeOf, driveStore, eventually, newEvent } from "../faults/support/store-driver.js";
import { startProxy } from "../support/tcp-proxy.js";
import { hasPgBouncer } from "./support/pgbouncer.js";

const on = startForTests(() => startPostgresUnderTest({ isPooled: hasPgBouncer }));

/** The server itself, also where a pooler stands before it. */
const toDirect = (address: StorageAddress): StorageAddress => ({
  ...toPostgres(address),
  url: `postgres://postgres@127.0.0.1:${on().server?.port}/postgres`,
  connections: "session",
});

async function connect(application = "host"): Promise<pg.Client> {
  const client = new pg.Client({
    ...{ host: "127.0.0.1", port: on().server?.port ?? 0, user: "postgres", database: "postgres" },
    application_name: application,
  });
  client.on("error", () => {});
  await client.connect();
  onTestFinished(() => client.end().catch(() => {}));
  return client;
}

function open(address: StorageAddress) {
  const storage = on().open(address);
  onTestFinished(() => storage.close());
  return storage;
}

async function startProxyBefore(address: StorageAddress) {
  const proxy = await startProxy({ host: "127.0.0.1", port: Number(new URL(toPostgres(address).url).port) });
  onTestFinished(() => proxy.stop());
  return { proxy, through: on().through(address, proxy.port) };
}

/** Sessions that wait for their clients while they hold what a claim locks. */
const IDLE = `SELECT pid FROM pg_stat_activity JOIN pg_locks USING (pid)
  WHERE state = 'idle in transaction' AND mode = 'RowExclusiveLock'`;

describe("a process that vanishes in the middle of a claim", () => {
  it.each([
    ["connected to Postgres itself", false],
    ...(hasPgBouncer ? [["behind PgBouncer in transaction mode", true] as const] : []),
  ] as const)("%s does not stop the deliveries of other processes", async (_, isPooled) => {
    const given = await on().fresh();
    const address = isPooled ? given : toDirect(given);
    const near = driveStore(open(toDirect(given)));
    await near.register();
    const { proxy, through } = await startProxyBefore(address);
    await near.append(newEvent("clinic"));
    const own = on().open(through, { time: "clock" });
    onTestFinished(() => own.close());
    const far = driveStore(own, { clock: manualClock(Date.now() + 1_000) });
    // Adds up what was appended and frees what is old, so that the next claim only leases.
    expect(await far.claim({ most: 0 })).toEqual([]);
    // Through the proxy, no more connections can be opened later.
    await Promise.all(Array.from({ length: 4 }, () => far.store.stats()));
    const watcher = await connect();
    const isIdle = async (): Promise<boolean> => (await watcher.query(IDLE)).rows.length > 0;

    await proxy.mode("swallow");
    const lost = codeOf(far.claim());
    await eventually(isIdle, { ms: 30_000, what: "the claim waits in its transaction" });
    proxy.freezeAll();
    const isClaimed = async (): Promise<boolean> => {
      const claims = await near.claim().catch(() => []);
      return claims.length === 1;
    };
    await eventually(isClaimed, { ms: 60_000, what: "the other process claims" });
    await eventually(async () => !(await isIdle()), { ms: 30_000, what: "the transaction has ended" });
    expect(await lost).toBe("storage_unavailable");
  });
});

describe("the connection that listens", () => {
  it("is replaced when it falls silent, and tells that something may be due", async () => {
    const address = toDirect(await on().fresh());
    const { proxy, through } = await startProxyBefore(address);
    const clock = manualClock(Date.now());
    const far = driveStore(open(through), { clock });
    let told = 0;
    onTestFinished(
      far.store.watch(() => {
        told += 1;
      }),
    );
    await eventually(() => told > 0, { ms: 30_000, what: "it listens" });
    proxy.freezeAll();
    const before = told;
    const isTold = async (): Promise<boolean> => {
      await clock.advance(1_000);
      return told > before;
    };
    await eventually(isTold, { ms: 30_000, what: "it listens again" });
    const near = driveStore(open(address));
    await near.register();
    const notified = told;
    await near.append(newEvent("clinic"));
    await eventually(() => told > notified, { ms: 30_000, what: "a notification arrives" });
    expect(told).toBeGreaterThan(notified);
  });
});

describe("a lock that somebody keeps", () => {
  it("is named by check() and once by the log: process, application and state", async () => {
    const address = toPostgres(toDirect(await on().fresh()));
    const storage = postgresStorage({ url: address.url, schema: address.schema });
    onTestFinished(() => storage.close());
    const { append, claim, log, register } = driveStore(storage);
    await register();
    await append(newEvent("clinic"));
    await claim();
    await append(newEvent("clinic"));
    const host = await connect("nightly report");
    await host.query(`BEGIN; LOCK TABLE "${address.schema}".endpoints IN ACCESS EXCLUSIVE MODE`);
    const { rows } = await host.query("SELECT pg_backend_pid() AS pid");
    expect(await codeOf(claim())).toBe("storage_unavailable");
    await codeOf(claim());
    const held = {
      ...{ pid: rows[0].pid, application: "nightly report", state: "idle in transaction" },
      heldMs: expect.any(Number),
    };
    const isTold = (): boolean => log.some(({ fields }) => fields["pid"] === rows[0].pid);
    await eventually(isTold, { ms: 10_000, what: "the log names the process" });
    const lines = log.filter(({ fields }) => "pid" in fields);
    expect(lines).toEqual([
      {
        level: "warn",
        fields: held,
        message: "a transaction holds locks on the tables, and calls of the storage wait for it",
      },
    ]);
    const { ok, warnings } = await storage.check();
    expect(ok).toBe(false);
    expect(warnings.join()).toContain(`Process ${rows[0].pid} (nightly report, idle in transaction)`);
    await host.query("ROLLBACK");
    expect((await storage.check()).warnings).toEqual([]);
    expect(await claim()).toHaveLength(1);
  });
});

describe("a queue that somebody has emptied", () => {
  it.each(["TRUNCATE", "DELETE FROM"])(
    "by %s is told by check() and the log; the statement that check() gives queues all again",
    async (statement) => {
      const address = toPostgres(toDirect(await on().fresh()));
      const storage = postgresStorage({ url: address.url, schema: address.schema });
      onTestFinished(() => storage.close());
      const { append, claim, log, register, settle } = driveStore(storage);
      await register();
      for (let count = 0; count < 3; count++) await append(newEvent("clinic"));
      const [leased] = await claim({ most: 1 });
      if (leased === undefined) throw new Error("one is due");
      expect((await storage.check()).warnings).toEqual([]);
      const cleaner = await connect();
      await cleaner.query(`${statement} "${address.schema}".queue`);
      expect(await claim()).toEqual([]);
      const isTold = (): boolean => log.some(({ fields }) => fields["code"] === "store_reset");
      await eventually(isTold, { ms: 10_000, what: "the log tells" });
      expect(log.find(({ level }) => level === "error")?.fields).toEqual({
        code: "store_reset",
        deliveries: 2,
      });
      const { ok, warnings } = await storage.check();
      expect([ok, warnings.length]).toEqual([false, 1]);
      expect(warnings[0]).toMatch(/^2 pending deliveries are not in the table queue any more/);
      await cleaner.query(warnings[0]?.replace(/^.*queued again: /, "") ?? "");
      expect((await storage.check()).warnings).toEqual([]);
      expect(await claim()).toHaveLength(2);
      expect(await settle(leased)).toBe("settled");
    },
  );
});

describe("notifications", () => {
  it("are only sent while a worker sleeps, and not while it polls because many have come", async () => {
    const address = toPostgres(toDirect(await on().fresh()));
    const heard: unknown[] = [];
    const ear = await connect();
    ear.on("notification", ({ payload }) => heard.push(payload));
    await ear.query(`LISTEN "postbell_${address.schema}"`);
    const near = driveStore(open(address));
    await near.register();
    const host = await connect();
    /** Appends in a transaction of the host. Resolves with how many notifications that has sent. */
    const append = async (): Promise<number> => {
      const before = heard.length;
      await host.query("BEGIN");
      const events = [newEvent("clinic")];
      await near.store.append({ events, rememberMs: 1_000, now: near.store.now(), transaction: host });
      await host.query("COMMIT");
      await ear.query("SELECT 1");
      return heard.length - before;
    };
    expect(await append()).toBe(0);

    const clock = manualClock(Date.now());
    const worker = driveStore(open(address), { clock });
    let told = 0;
    const unwatch = worker.store.watch(() => {
      told += 1;
    });
    await eventually(() => told > 0, { ms: 30_000, what: "it listens" });
    const sent: number[] = [];
    const hasStopped = async (): Promise<boolean> => {
      sent.push(await append());
      return sent.at(-1) === 0;
    };
    await eventually(hasStopped, { ms: 30_000, what: "the worker polls" });
    expect(sent.slice(0, 3)).toEqual([1, 1, 1]);

    const claim = () => {
      const now = worker.store.now();
      return worker.store.claim({
        now,
        token: `t ${sent.length}`,
        leaseUntil: now + 1,
        room: { fast: 0, slow: 0 },
      });
    };
    expect((await claim()).nextAt).toBeLessThanOrEqual(worker.store.now() + 15);
    const sleeps = async (): Promise<boolean> => {
      await claim();
      return (await append()) === 1;
    };
    await eventually(sleeps, { ms: 30_000, what: "the worker sleeps again" });
    unwatch();
    await eventually(async () => (await append()) === 0, { ms: 30_000, what: "nobody sleeps any more" });
  });
});
