/** Several connections to one SQLite file: each waits for the locks of the others. */

import { fork } from "node:child_process";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { silentLogger } from "../../src/core/logger.js";
import { type ManualClock, manualClock } from "../../src/testing/manual-clock.js";
import { sqliteStorage } from "../../storage/sqlite/index.js";
import { createDatabaseFile, openDatabase } from "../support/sqlite.js";
import { startSqliteUnderTest } from "./support/sqlite-under-test.js";
import { startForTests } from "./support/start-for-tests.js";
import type { StorageAddress } from "./support/storage-under-test.js";
import { codeOf, driveStore, newEvent } from "./support/store-driver.js";

const PROGRAM = join(import.meta.dirname, "support/sqlite-storm.js");

interface StormReport {
  readonly errors: readonly string[];
  readonly stored: number;
}

interface StormOptions {
  readonly storage: StorageAddress;
  /** How often the process opens the file and closes it. */
  readonly rounds: number;
  /** Calls at the same time, in each round. */
  readonly calls: number;
  readonly name: string;
}

const storm = (options: StormOptions): Promise<StormReport> => {
  const child = fork(PROGRAM, {
    env: { ...process.env, STORM_OPTIONS: JSON.stringify(options) },
    execArgv: [],
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  return new Promise((resolve, reject) => {
    child.once("message", (message) => resolve(message as StormReport));
    child.once("exit", () => reject(new Error("A process ended without a report.")));
  });
};

describe("processes on one file", () => {
  const on = startForTests(startSqliteUnderTest);

  const register = async (address: StorageAddress): Promise<void> => {
    const storage = on().open(address);
    await driveStore(storage).register();
    await storage.close();
  };

  it.each([
    {
      title: "open a new one at the same moment",
      processes: 6,
      rounds: 1,
      calls: 2,
      times: 5,
      isShared: false,
    },
    { title: "open and close it all the time", processes: 3, rounds: 40, calls: 3, times: 1, isShared: true },
    { title: "write all the time", processes: 3, rounds: 2, calls: 400, times: 1, isShared: true },
  ])("see no error when they $title", async ({ processes, rounds, calls, times, isShared }) => {
    for (let time = 0; time < times; time++) {
      const storage = await on().fresh();
      if (isShared) await register(storage);
      const names = Array.from({ length: processes }, (_, index) => `p${index}`);
      const reports = await Promise.all(names.map((name) => storm({ storage, rounds, calls, name })));
      expect(reports.flatMap(({ errors }) => errors)).toEqual([]);
      const inspector = on().inspect(storage);
      expect(await inspector.findFaults()).toEqual([]);
      expect(await inspector.findContentFaults()).toEqual([]);
      await inspector.close();
      const count = reports.reduce((sum, { stored }) => sum + stored, 0);
      expect(count).toBe(processes * rounds * calls);
    }
  });
});

/** Moves the clock until a promise has settled; the storage waits in between. */
async function settleWith<T>(clock: ManualClock, promise: Promise<T>): Promise<T> {
  let isSettled = false;
  const settled = promise.finally(() => {
    isSettled = true;
  });
  settled.catch(() => {});
  while (!isSettled) await clock.advance(10);
  return settled;
}

describe("a lock that another connection holds", () => {
  const open = () => {
    const { path, destroy } = createDatabaseFile();
    const [own, other] = [openDatabase(path), openDatabase(path)];
    onTestFinished(() => {
      own.close();
      other.close();
      destroy();
    });
    const clock = manualClock(1_800_000_000_000);
    const storage = sqliteStorage({ database: own });
    return { storage, other, clock, driven: driveStore(storage, { clock }) };
  };

  it("is waited for, while the process goes on with other work", async () => {
    const { other, clock, driven } = open();
    await driven.register();
    other.exec("BEGIN IMMEDIATE");
    let isStored = false;
    const storing = driven.append(newEvent("clinic")).then(() => {
      isStored = true;
    });
    for (let passed = 0; passed < 2_000; passed += 10) await clock.advance(10);
    expect(isStored).toBe(false);
    other.exec("COMMIT");
    await settleWith(clock, storing);
    expect((await driven.store.stats()).events).toBe(1);
  });

  it("ends the wait after some seconds with storage_unavailable: nothing was stored, and later calls succeed", async () => {
    const { other, clock, driven } = open();
    await driven.register();
    other.exec("BEGIN IMMEDIATE");
    const events = [newEvent("clinic"), newEvent("clinic")];
    const began = clock.now();
    const codes = await settleWith(clock, Promise.all(events.map((event) => codeOf(driven.append(event)))));
    expect(codes).toEqual(["storage_unavailable", "storage_unavailable"]);
    expect(clock.now() - began).toBeLessThan(4_000);
    // A reader waits for no writer.
    expect((await driven.store.stats()).events).toBe(0);
    other.exec("COMMIT");
    await driven.append(newEvent("clinic"));
    expect((await driven.store.stats()).events).toBe(1);
  });

  it("is waited for also at the first call, which creates the tables", async () => {
    const { other, clock, storage } = open();
    other.exec("PRAGMA journal_mode = WAL; BEGIN IMMEDIATE");
    const content = storage.content({ clock, logger: silentLogger });
    const reading = content.read(["post/1"]);
    for (let passed = 0; passed < 1_000; passed += 10) await clock.advance(10);
    other.exec("COMMIT");
    expect(await settleWith(clock, reading)).toEqual([undefined]);
  });
});
