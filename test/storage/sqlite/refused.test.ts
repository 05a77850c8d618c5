/** A SQLite file that cannot be used: messages name the cause and what to change. */

import { describe, expect, it, onTestFinished } from "vitest";
import { createContent } from "../../../src/content/index.js";
import { createWebhooks, isPostbellError } from "../../../src/index.js";
import { manualClock } from "../../../src/testing/manual-clock.js";
import { type SqliteHandle, sqliteStorage } from "../../../storage/sqlite/index.js";
import { recordingLogger } from "../../support/registration-api.js";
import { createDatabaseFile, openDatabase } from "../../support/sqlite.js";

const SECOND = 1_000;
const STEP_MS = 20;

/** A database whose first statement fails, as better-sqlite3 and libsql or `node:sqlite` do. */
function failingWith(error: object): SqliteHandle {
  const fail = (): never => {
    throw Object.assign(new Error("secret.db: failed"), error);
  };
  return { exec: fail, prepare: fail, close() {} };
}

const access = { authenticate: () => null, canRead: () => true };
const SITE = {
  users: [],
  authenticate: () => null,
  site: { name: "Example", url: "https://www.example.org" },
};

async function refusalOf(kind: "webhooks" | "content", database: SqliteHandle) {
  const clock = manualClock(Date.UTC(2026, 0, 1));
  const storage = sqliteStorage({ database });
  const { logger, log } = recordingLogger();
  const shared = { storage, clock, logger, awaitStorage: true };
  const service =
    kind === "webhooks" ? createWebhooks({ ...shared, access }) : createContent({ ...shared, ...SITE });
  /** Moves the clock in steps: a call waits for the lock in many short pauses. */
  const settle = async <T>(promise: Promise<T>): Promise<T> => {
    let isSettled = false;
    const end = (): void => {
      isSettled = true;
    };
    promise.then(end, end);
    while (!isSettled) await clock.advance(STEP_MS);
    return promise;
  };
  const started = service.start().then(
    () => "started",
    (error: unknown) => error,
  );
  const refused = await settle(started);
  for (let ms = 0; ms < 10 * SECOND; ms += STEP_MS) await clock.advance(STEP_MS);
  await service.stop();
  await settle(storage.close());
  if (!isPostbellError(refused)) throw refused;
  return { refused, lines: log.filter(({ level }) => level === "error" || level === "warn") };
}

describe.each(["webhooks", "content"] as const)("start() of %s on a SQLite file", (kind) => {
  it.each<[string, object, RegExp, boolean]>([
    [
      "SQLITE_CANTOPEN",
      { code: "SQLITE_CANTOPEN" },
      /Create its folder, and let this process write to it/,
      true,
    ],
    ["SQLITE_CANTOPEN", { code: "ERR_SQLITE_ERROR", errcode: 14 }, /Create its folder/, true],
    [
      "SQLITE_READONLY",
      { code: "SQLITE_READONLY_DIRECTORY" },
      /is read-only.*Let this process write to both/,
      true,
    ],
    ["SQLITE_NOTADB", { code: "SQLITE_NOTADB" }, /damaged or is no database.*restore a backup/, true],
    ["SQLITE_CORRUPT", { code: "SQLITE_CORRUPT_INDEX" }, /restore a backup/, true],
    ["SQLITE_BUSY", { code: "SQLITE_BUSY" }, /Another process has held the lock.*Try again later/, false],
    ["SQLITE_IOERR", { code: "SQLITE_IOERR_READ" }, /SQLITE_IOERR.*Try again later/, false],
  ])(
    "with %s (%o) rejects with the cause, which the log names once",
    async (reason, error, advice, isPermanent) => {
      const { refused, lines } = await refusalOf(kind, failingWith(error));
      expect(refused).toMatchObject({ code: "storage_unavailable", reason, isPermanent, effect: "none" });
      expect(refused.message).toMatch(advice);
      expect(lines.filter(({ fields }) => JSON.stringify(fields).includes(reason))).toHaveLength(1);
      expect(JSON.stringify(lines)).not.toContain("secret.db");
    },
  );

  it("that is full rejects with storage_full", async () => {
    const { refused } = await refusalOf(kind, failingWith({ code: "SQLITE_FULL" }));
    expect(refused).toMatchObject({ code: "storage_full", effect: "none" });
    expect(refused.message).toMatch(/Make room/);
  });
});

describe("a path", () => {
  it("that cannot be opened names what to do", async () => {
    const { path, destroy } = createDatabaseFile();
    onTestFinished(destroy);
    const storage = sqliteStorage({ file: `${path}/missing/postbell.db` });
    await expect(createWebhooks({ storage, access, logger: false }).start()).rejects.toMatchObject({
      ...{ reason: "SQLITE_CANTOPEN", isPermanent: true },
      message: expect.stringMatching(/Create its folder/),
    });
  });
});

describe("a file that becomes read-only", () => {
  it("refuses to store and goes on reading: it is not taken for unavailable", async () => {
    const { path, destroy } = createDatabaseFile();
    onTestFinished(destroy);
    const database = openDatabase(path);
    let isReadOnly = false;
    const handle: SqliteHandle = {
      exec(text) {
        if (isReadOnly && text.startsWith("BEGIN IMMEDIATE"))
          throw Object.assign(new Error("attempt to write a readonly database"), { code: "SQLITE_READONLY" });
        return database.exec(text);
      },
      prepare: (text) => database.prepare(text),
      close: () => database.close(),
    };
    const storage = sqliteStorage({ database: handle });
    const webhooks = createWebhooks({ storage, access, logger: false });
    const { webhook } = await webhooks.registrations.create({
      subscriber: { id: "key-1", account: "clinic" },
      url: "https://hooks.example.com/",
    });
    isReadOnly = true;
    for (let count = 0; count < 3; count++) {
      const emitted = webhooks.emit({
        type: "patient.created",
        account: "clinic",
        resource: { resourceType: "Patient" },
      });
      await expect(emitted).rejects.toMatchObject({ reason: "SQLITE_READONLY", isPermanent: true });
      expect((await webhooks.registrations.get(webhook.id)).id).toBe(webhook.id);
    }
    await storage.close();
    database.close();
  });
});
