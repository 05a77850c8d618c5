/** Redis that dies, comes back with less than it had, or with nothing. */

import { copyFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Persistence, startRedis } from "../support/redis-server.js";
import {
  printFigures,
  type Receiver,
  startReceiver,
  startService,
  WHOLE_BOOKS,
} from "./support/redis-service.js";
import { openStore } from "./support/redis-store.js";
import { codeOf, eventually, newEvent } from "./support/store-driver.js";

const RESUMED_MS = 5_000;

let receiver: Receiver;
beforeAll(async () => {
  receiver = await startReceiver();
});
afterAll(() => receiver.close());

/**
 * The rules of D9 for each kind of persistence: if an event survives a crash of Redis, and the
 * warnings of a check.
 */
const PERSISTENCE: readonly {
  readonly persistence: Persistence;
  readonly survives: boolean;
  readonly warning: RegExp;
}[] = [
  { persistence: "aof-always", survives: true, warning: /none/ },
  // The process dies and the machine lives: what was written is in its cache.
  { persistence: "aof-everysec", survives: true, warning: /none/ },
  { persistence: "rdb", survives: false, warning: /snapshots only/ },
  { persistence: "none", survives: false, warning: /nothing on disk/ },
];

describe("kill -9 of Redis (F16)", () => {
  test("with an AOF that is always written, three times under load: no emit that resolved is lost", async () => {
    const redis = await startRedis({ persistence: "aof-always" });
    const service = await startService({ redis: { url: redis.url }, receiver });
    await service.register(5);
    let requests = 0;
    receiver.answer(() => (++requests % 5 === 0 ? 500 : 200));
    let isOver = false;
    const emitters = Array.from({ length: 8 }, async () => {
      for (; !isOver; await sleep(20)) await service.emitSurely();
    });
    for (let kills = 0; kills < 3; kills++) {
      await sleep(700);
      await redis.kill();
      await sleep(150);
      await redis.restart();
    }
    await sleep(700);
    isOver = true;
    await Promise.all(emitters);
    receiver.answer(() => 200);
    await service.drained(40_000);
    const figures = await service.figures();
    printFigures("F16 kill -9 of Redis, AOF always", figures, "3 kills of Redis");
    expect(figures.deliveries).toBeGreaterThan(500);
    expect(figures).toMatchObject({ lost: 0, duplicates: 0, books: WHOLE_BOOKS });
    expect(receiver.forgeries()).toBe(0);
    await service.stop();
    await redis.stop();
  });

  test.each(PERSISTENCE)(
    "$persistence: check() said so before, and the storage goes on after",
    async ({ persistence, survives, warning }) => {
      const redis = await startRedis({ persistence });
      const opened = openStore({ url: redis.url });
      await opened.register();
      const events = Array.from({ length: 100 }, () => newEvent("clinic"));
      for (const event of events) await opened.append(event);
      const { warnings } = await opened.storage.check();
      expect(warnings.map((text) => warning.test(text))).toEqual(survives ? [] : [true]);
      await redis.kill();
      await redis.restart();
      const isBack = async (): Promise<boolean> => (await codeOf(opened.store.stats())) === "resolved";
      await eventually(isBack, { ms: RESUMED_MS, what: "the storage works again" });
      expect((await opened.store.stats()).pending).toBe(survives ? 100 : 0);
      if (!survives) await opened.register();
      await opened.append(newEvent("clinic"));
      expect(await opened.drain()).toHaveLength(survives ? 101 : 1);
      expect((await opened.storage.check()).repaired).toBe(0);
      await opened.storage.close();
      await redis.stop();
    },
  );
});

describe("Redis comes back with an older data set (F17)", () => {
  test("what was delivered since is delivered again, old leases run out, and a report on what is unknown is harmless", async () => {
    const redis = await startRedis({ persistence: "rdb" });
    const opened = openStore({ url: redis.url });
    await opened.register();
    const events = Array.from({ length: 10 }, () => newEvent("clinic"));
    for (const event of events) await opened.append(event);
    const leased = await opened.claim({ most: 4, leaseMs: 300 });
    expect(leased.length).toBeGreaterThan(0);
    await redis.cli("SAVE");
    await copyFile(join(redis.dir, "dump.rdb"), join(redis.dir, "old.rdb"));

    for (const claim of leased) expect(await opened.settle(claim)).toBe("settled");
    const later = newEvent("clinic");
    await opened.append(later);
    await eventually(async () => (await opened.store.stats()).pending === 7, { ms: 1_000, what: "settled" });
    const underWay = await opened.claim();
    const unknown = underWay.find(({ event }) => event.id === later.id);
    const known = underWay.find(({ event }) => event.id !== later.id);
    if (!unknown || !known) throw new Error("both are in flight");
    await redis.kill();
    await rm(join(redis.dir, "dump.rdb"), { force: true });
    await copyFile(join(redis.dir, "old.rdb"), join(redis.dir, "dump.rdb"));
    await redis.restart();

    const isBack = async (): Promise<boolean> => (await codeOf(opened.store.stats())) === "resolved";
    await eventually(isBack, { ms: RESUMED_MS, what: "the storage works again" });
    expect(await opened.settle(unknown)).toBe("gone");
    // Its 2xx was read: it counts, though nobody holds this lease any more.
    expect(await opened.settle(known)).toBe("settled");
    const again = await opened.drain();
    expect(new Set(again).size).toBe(again.length);
    expect(again).toHaveLength(9);
    for (const { id } of leased) expect(again).toContain(id);
    expect(await opened.store.stats()).toMatchObject({ pending: 0, leased: 0, ended: 10 });
    expect((await opened.storage.check()).repaired).toBe(0);
    await opened.storage.close();
    await redis.stop();
  });
});

describe("Redis is emptied (F18)", () => {
  test.each(["FLUSHALL", "a restart without persistence"])(
    "%s: the service goes on, and an alarm tells of it",
    async (how) => {
      const redis = await startRedis();
      const service = await startService({ redis: { url: redis.url, partitions: 2 }, receiver });
      await service.register(2);
      await service.emit();
      await service.drained();
      if (how === "FLUSHALL") await redis.cli("FLUSHALL");
      else await redis.restart();
      const alarms = () => service.log.filter(({ fields }) => fields["code"] === "store_reset");
      await eventually(() => alarms().length > 0, { ms: RESUMED_MS, what: "the alarm" });
      expect(alarms()[0]?.level).toBe("error");
      await service.register(1);
      const { deliveries } = await service.emit();
      expect(deliveries).toHaveLength(1);
      await service.drained();
      const figures = await service.figures();
      printFigures(`F18 ${how}`, figures);
      expect(figures).toMatchObject({ lost: 0, duplicates: 0, books: WHOLE_BOOKS });
      // The layout is there again: a process with another number of partitions is refused.
      const keys = await redis.cli("KEYS", "*:layout");
      expect(keys).not.toBe("");
      await service.stop();
      await redis.stop();
    },
  );
});
