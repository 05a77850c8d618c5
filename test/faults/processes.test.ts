/** Several processes on one storage, on Redis and on SQLite. */

import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { startRedis } from "../support/redis-server.js";
import { KEY, patientEvent } from "./support/ledger.js";
import { startSubscriber } from "./support/ledger-subscriber.js";
import { describeEndWithoutServer, describeProcesses } from "./support/process-suite.js";
import { startRedisUnderTest } from "./support/redis-under-test.js";
import { startSqliteUnderTest } from "./support/sqlite-under-test.js";
import { eventually, startWorker } from "./support/worker-host.js";
import { QUICK } from "./support/worker-scene.js";

describe("on SQLite", () => {
  describeProcesses(startSqliteUnderTest);
});

describe("on Redis", () => {
  describeProcesses(() => startRedisUnderTest("aof-everysec"));
  describeEndWithoutServer(() => startRedisUnderTest("aof-always"), { connectMs: 0 });
});

describe("workers on Redis", () => {
  it("keep at most two connections each, also after all were cut and Redis was killed", async () => {
    const own = await startRedis({ persistence: "aof-always" });
    onTestFinished(() => own.stop());
    const { ca, url, received, trust } = await startSubscriber();
    const storage = { kind: "redis", url: own.url, prefix: "connections" } as const;
    const options = { storage, ca, webhooks: QUICK };
    const first = await startWorker(options);
    const second = await startWorker(options);
    const workers = [
      first,
      second,
      await startWorker({ ...options, storage: { ...storage, durability: "replicated" } }),
    ];
    const { webhook, secret } = await first.create({ subscriber: KEY, url: url("/") });
    trust(webhook.id, secret);
    await Promise.all(workers.map((worker) => worker.start()));
    let most = 0;
    const count = async (): Promise<number> => {
      const clients = (await own.cli("CLIENT", "LIST")).split("\n");
      // One of them asks.
      most = Math.max(most, clients.length - 1);
      return clients.length - 1;
    };
    const emitFromAll = async (): Promise<void> => {
      const before = received.length;
      await Promise.all(workers.map((worker) => worker.emit(patientEvent())));
      await eventually(() => received.length === before + workers.length, "all are delivered");
    };
    await emitFromAll();
    await eventually(async () => (await count()) === 2 * workers.length, "all are connected");
    for (let cut = 0; cut < 10; cut++) {
      await own.cli("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
      await own.cli("CLIENT", "KILL", "TYPE", "pubsub");
      await count();
      await sleep(50);
    }
    await own.kill();
    await own.restart();
    await eventually(async () => (await count()) === 2 * workers.length, "all are connected again");
    await emitFromAll();
    await count();
    expect(most).toBe(2 * workers.length);
  });
});
