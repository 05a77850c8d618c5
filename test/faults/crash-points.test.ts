/** Processes on Redis and on SQLite are killed at each step; others go on. */

import { describe, expect, it, onTestFinished } from "vitest";
import { startProxy } from "../support/tcp-proxy.js";
import { describeCrashPoints } from "./support/crash-point-suite.js";
import { patientEvent } from "./support/ledger.js";
import { startRedisUnderTest } from "./support/redis-under-test.js";
import { startSqliteUnderTest } from "./support/sqlite-under-test.js";
import { startForTests } from "./support/start-for-tests.js";
import { eventually } from "./support/worker-host.js";
import { openScene } from "./support/worker-scene.js";

const startRedis = () => startRedisUnderTest("aof-everysec");

describe("on Redis", () => {
  describeCrashPoints(startRedis);

  const on = startForTests(startRedis);
  it("c1, after Redis stored the event, its reply lost: emitted again, it adds nothing", async () => {
    const { ledger, checker, prepare, options } = await openScene(on());
    await ledger.register("/");
    const proxy = await startProxy({ host: "127.0.0.1", port: on().server?.port ?? 0 });
    onTestFinished(() => proxy.stop());
    const worker = await prepare({ storage: on().through(options.storage, proxy.port) });
    // Redis knows the script from here on: one call of it does all.
    await worker.emit(patientEvent());
    await proxy.mode("swallow");
    const event = patientEvent();
    const emitting = worker.emit(event).catch((error: unknown) => error);
    await eventually(async () => (await checker.store.stats()).events === 2, "the event is stored");
    await worker.kill();
    expect(await emitting).toMatchObject({ code: "died" });

    const again = await prepare();
    expect(await again.emit(event)).toMatchObject({ id: event.id, duplicate: true, deliveries: [{}] });
    expect(await checker.store.stats()).toMatchObject({ events: 2, pending: 2 });
  });
});

describe("on SQLite", () => {
  describeCrashPoints(startSqliteUnderTest);
});
