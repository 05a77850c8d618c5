/** The log of changes next to a SQLite file: how large it may stay, and what check() says. */

import { statSync } from "node:fs";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type ManualClock, manualClock } from "../../../src/testing/manual-clock.js";
import { type SqliteHandle, type SqliteStorage, sqliteStorage } from "../../../storage/sqlite/index.js";
import { driveStore, newEvent } from "../../faults/support/store-driver.js";
import { createDatabaseFile, openDatabase } from "../../support/sqlite.js";

const SECOND = 1_000;
const MIB = 1_048_576;

let file: ReturnType<typeof createDatabaseFile>;
let own: SqliteHandle;
let reader: SqliteHandle;
let storage: SqliteStorage;
let clock: ManualClock;
let driven: ReturnType<typeof driveStore>;

beforeEach(async () => {
  file = createDatabaseFile();
  own = openDatabase(file.path);
  storage = sqliteStorage({ database: own });
  clock = manualClock(Date.UTC(2026, 0, 1));
  driven = driveStore(storage, { clock });
  await driven.register();
  reader = openDatabase(file.path);
});
afterEach(async () => {
  await storage.close();
  reader.close();
  own.close();
  file.destroy();
});

const payload = JSON.stringify({ text: "x".repeat(4 * MIB) });
const append = (event = newEvent("clinic", { payload })) => driven.append(event);
const logBytes = (): number => statSync(`${file.path}-wal`).size;

/** Lets the log grow: it keeps everything that a transaction may still read. */
async function fillLog(mib: number): Promise<void> {
  reader.exec("BEGIN");
  reader.prepare("SELECT count(*) FROM postbell_events").all();
  while (logBytes() < mib * MIB) await append();
  reader.exec("COMMIT");
}

it("is cut to 16 MiB by the next changes once a long transaction has ended", async () => {
  await fillLog(24);
  for (let event = 0; event < 3; event++) await append(newEvent("clinic"));
  expect(logBytes()).toBeLessThanOrEqual(16 * MIB);
});

it("is empty when nothing was stored for some seconds, and what it held is kept", async () => {
  await append(newEvent("clinic"));
  expect(logBytes()).toBeGreaterThan(0);
  for (let second = 0; second < 15; second++) {
    await clock.advance(SECOND);
    expect((await driven.store.stats()).events).toBe(1);
  }
  expect(logBytes()).toBe(0);
});

it("is not emptied while another connection reads, which goes on with its state", async () => {
  await append(newEvent("clinic"));
  reader.exec("BEGIN");
  const count = reader.prepare("SELECT count(*) AS count FROM postbell_events");
  expect(count.all()).toEqual([{ count: 1 }]);
  await append(newEvent("clinic"));
  for (let second = 0; second < 30; second++) {
    await clock.advance(SECOND);
    await driven.store.stats();
  }
  expect(count.all()).toEqual([{ count: 1 }]);
  expect(logBytes()).toBeGreaterThan(0);
  reader.exec("COMMIT");
  expect((await driven.store.stats()).events).toBe(2);
});

it("is named by check() when it is large, and no longer when it was moved to the file", async () => {
  await fillLog(64);
  expect(await storage.check()).toMatchObject({
    ok: false,
    warnings: [expect.stringMatching(/^The log next to the file has \d+ MiB.*end transactions/)],
  });
  for (let second = 0; second < 15; second++) {
    await clock.advance(SECOND);
    await driven.store.stats();
  }
  expect((await storage.check()).warnings).toEqual([]);
});

it("does not count for check(), which searches a file up to maxBytes for damages and says so", async () => {
  expect(await storage.check()).toMatchObject({ ok: true, isRead: true });
  expect(await storage.check({ maxBytes: 1_000 })).toMatchObject({ ok: true, isRead: false });
  await fillLog(70);
  expect(await storage.check()).toMatchObject({ isRead: false });
  expect(await storage.check({ maxBytes: Number.POSITIVE_INFINITY })).toMatchObject({ isRead: true });
});
