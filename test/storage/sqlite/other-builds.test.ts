/** Two builds of SQLite in one process: their locks do not exclude each other. */

import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { createWebhooks } from "../../../src/index.js";
import { manualClock } from "../../../src/testing/manual-clock.js";
import { type SqliteDriver, type SqliteHandle, sqliteStorage } from "../../../storage/sqlite/index.js";
import { createDatabaseFile, openDatabase } from "../../support/sqlite.js";

const SECOND = 1_000;
const event = {
  type: "patient.updated",
  account: "clinic",
  resource: { resourceType: "Patient", id: "1" },
} as const;

/** libsql from another folder: a library of its own to the system, with its own table of locks. */
let folder: string;
let Other: SqliteDriver;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "postbell-build-"));
  mkdirSync(join(folder, "node_modules"));
  const installed = join(import.meta.dirname, "../../../node_modules");
  for (const name of ["libsql", "@libsql", "@neon-rs", "detect-libc"])
    cpSync(join(installed, name), join(folder, "node_modules", name), { recursive: true });
  Other = createRequire(join(folder, "host.js"))("libsql") as SqliteDriver;
});
afterAll(() => rmSync(folder, { recursive: true }));

let file: ReturnType<typeof createDatabaseFile>;
beforeEach(() => {
  file = createDatabaseFile();
});
afterEach(() => file.destroy());

const keepOpen = (database: SqliteHandle): SqliteHandle => {
  onTestFinished(() => {
    if ((database as { readonly open?: unknown }).open !== false) database.close();
  });
  return database;
};

function createService(options: Parameters<typeof sqliteStorage>[0] = { file: file.path }) {
  const clock = manualClock(Date.UTC(2026, 0, 1));
  const storage = sqliteStorage(options);
  onTestFinished(() => storage.close());
  const access = { authenticate: () => null, canRead: () => true };
  const webhooks = createWebhooks({ storage, access, clock, logger: false });
  return {
    clock,
    storage,
    webhooks,
    register: () =>
      webhooks.registrations.create({
        subscriber: { id: "key", account: "clinic" },
        url: "https://subscriber.example/hook",
      }),
    count: async () => (await webhooks.deliveries.list({ account: "clinic" })).items.length,
  };
}

const refused = { code: "storage_unavailable", reason: "OTHER_BUILD", isPermanent: true, effect: "none" };
const ADVICE = /Another build of SQLite in this process.*sqliteStorage\({ file, driver }\)/;

describe("another build of SQLite in the process", () => {
  it("that opens the file in use is noticed within a second: emit is refused, and check() fails", async () => {
    const { clock, storage, webhooks, register } = createService();
    await register();
    await webhooks.emit(event);
    const host = keepOpen(new Other(file.path));
    host.exec("CREATE TABLE notes (text TEXT)");
    await clock.advance(SECOND);
    await expect(webhooks.emit(event)).rejects.toMatchObject(refused);
    expect(await storage.check()).toMatchObject({ ok: false, warnings: [expect.stringMatching(ADVICE)] });
  });

  it("that has opened the file in use is named by check() at once", async () => {
    const { storage, register } = createService();
    await register();
    keepOpen(new Other(file.path)).exec("CREATE TABLE notes (text TEXT)");
    expect(await storage.check()).toMatchObject({ ok: false, warnings: [expect.stringMatching(ADVICE)] });
  });

  it("that opens and closes the file in use loses no event that emit resolved", async () => {
    const { webhooks, register } = createService();
    await register();
    await webhooks.emit(event);
    const host = new Other(file.path);
    host.exec("CREATE TABLE notes (text TEXT)");
    host.close();
    let resolved = 1;
    for (let call = 0; call < 5; call++) {
      await webhooks.emit(event).then(
        () => resolved++,
        (error: unknown) => expect(error).toMatchObject({ code: "storage_unavailable", isPermanent: true }),
      );
    }
    // A process that starts after this one was killed reads it.
    const copies = `${file.path}.copy`;
    for (const suffix of ["", "-wal"])
      if (existsSync(file.path + suffix)) cpSync(file.path + suffix, copies + suffix);
    const copy = openDatabase(copies);
    const [row] = copy.prepare("SELECT count(*) AS count FROM postbell_events").all();
    copy.close();
    expect(row).toEqual({ count: resolved });
  });

  it("that has opened the file before is refused by the first call, which creates no tables", async () => {
    const host = keepOpen(new Other(file.path));
    host.exec("PRAGMA journal_mode = WAL; CREATE TABLE notes (text TEXT)");
    await expect(createService().webhooks.emit(event)).rejects.toMatchObject(refused);
    expect(host.prepare("SELECT name FROM sqlite_master").all()).toEqual([{ name: "notes" }]);
  });

  it("cannot give a transaction: emit is refused, and stores nothing", async () => {
    const { webhooks, register, count } = createService();
    await register();
    const host = keepOpen(new Other(file.path));
    host.exec("BEGIN IMMEDIATE");
    await expect(webhooks.emit(event, { transaction: host })).rejects.toMatchObject({
      code: expect.stringMatching(/invalid_argument|storage_unavailable/),
      message: expect.stringMatching(/nother build of SQLite/),
    });
    host.exec("COMMIT");
    host.close();
    // Where the builds differ in nothing, the storage is unavailable from now on.
    const stored = await count().catch(({ code }: { readonly code: string }) => code);
    expect([0, "storage_unavailable"]).toContain(stored);
  });

  it("is named with its version when it gives a transaction", async () => {
    const { webhooks, register, count } = createService();
    await register();
    const database = keepOpen(openDatabase(file.path));
    const host: SqliteHandle = {
      exec: (text) => database.exec(text),
      close: () => database.close(),
      prepare: (text) =>
        database.prepare(text.replace("sqlite_version()", "'9.9.9'").replace("sqlite_source_id()", "'x'")),
    };
    host.exec("BEGIN IMMEDIATE");
    await expect(webhooks.emit(event, { transaction: host })).rejects.toMatchObject({
      ...{ code: "invalid_argument", field: "transaction" },
      message: expect.stringMatching(/another build of SQLite \(9\.9\.9\) than the storage \(3\.\d+\.\d+\)/),
    });
    host.exec("COMMIT");
    expect(await count()).toBe(0);
  });

  it("is used by the storage if the host says so with driver", async () => {
    const { clock, storage, webhooks, register, count } = createService({ file: file.path, driver: Other });
    await register();
    const host = keepOpen(new Other(file.path));
    host.exec("BEGIN IMMEDIATE");
    await webhooks.emit(event, { transaction: host });
    host.exec("COMMIT");
    await clock.advance(2 * SECOND);
    await webhooks.emit(event);
    expect([await count(), (await storage.check()).warnings]).toEqual([2, []]);
  });
});

describe("the same build", () => {
  it("may open the file as often as it likes, and close it", async () => {
    const { clock, storage, webhooks, register, count } = createService();
    await register();
    for (let time = 0; time < 5; time++) {
      const hosts = Array.from({ length: 3 }, () => openDatabase(file.path));
      for (const host of hosts) host.prepare("SELECT count(*) FROM postbell_events").all();
      await clock.advance(SECOND);
      await webhooks.emit(event);
      for (const host of hosts) host.close();
      await clock.advance(SECOND);
      await webhooks.emit(event);
    }
    expect([await count(), (await storage.check()).warnings]).toEqual([10, []]);
  });

  it("cannot give a transaction on another file: emit is refused, and stores nothing there", async () => {
    const { webhooks, register } = createService();
    await register();
    const other = createDatabaseFile();
    onTestFinished(other.destroy);
    const database = keepOpen(openDatabase(other.path));
    await createService({ database }).register();
    const host = keepOpen(openDatabase(other.path));
    host.exec("BEGIN IMMEDIATE");
    await expect(webhooks.emit(event, { transaction: host })).rejects.toMatchObject({
      ...{ code: "invalid_argument", field: "transaction" },
      message: expect.stringMatching(/a database of another file/),
    });
    host.exec("COMMIT");
    expect(host.prepare("SELECT count(*) AS count FROM postbell_events").all()).toEqual([{ count: 0 }]);
  });
});

describe("driver", () => {
  it.each([
    ["the name of a package", "libsql"],
    ["a function that opens a file", (path: string) => openDatabase(path)],
    ["a class of something else", Map],
  ])("is refused if it is %s", (_, driver) => {
    expect(() => sqliteStorage({ file: file.path, driver: driver as never })).toThrow(
      expect.objectContaining({ code: "invalid_option", field: "driver" }),
    );
  });

  it("is refused beside database, which is open already", () => {
    const database = keepOpen(openDatabase(file.path));
    expect(() => sqliteStorage({ database, driver: Other })).toThrow(
      expect.objectContaining({ code: "invalid_option", field: "driver" }),
    );
  });
});
