/** A SQLite file that is deleted, moved or replaced: while it is in use, and between two starts. */

import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { createWebhooks } from "../../../src/index.js";
import { manualClock } from "../../../src/testing/manual-clock.js";
import { type SqliteHandle, type SqliteStorage, sqliteStorage } from "../../../storage/sqlite/index.js";
import { callsOf } from "../../support/content-call.js";
import { contentSite } from "../../support/content-site.js";
import { recordingLogger } from "../../support/registration-api.js";
import { openDatabase } from "../../support/sqlite.js";

const SECOND = 1_000;

let base: string;
let folder: string;
let file: string;
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "postbell-replaced-"));
  folder = join(base, "data");
  mkdirSync(folder);
  file = join(folder, "own.db");
});
afterEach(() => rmSync(base, { recursive: true }));

const event = {
  type: "patient.updated",
  account: "clinic",
  resource: { resourceType: "Patient", id: "1" },
} as const;

function createService(storage: SqliteStorage) {
  const clock = manualClock(Date.UTC(2026, 0, 1));
  const { logger, log } = recordingLogger();
  const access = { authenticate: () => null, canRead: () => true };
  const webhooks = createWebhooks({ storage, access, clock, logger });
  onTestFinished(() => storage.close());
  return {
    clock,
    log,
    logger,
    webhooks,
    register: () =>
      webhooks.registrations.create({
        subscriber: { id: "key", account: "clinic" },
        url: "https://subscriber.example/hook",
      }),
    emit: () => webhooks.emit(event),
    errors: () => log.filter(({ level }) => level === "error"),
  };
}

const openings: Readonly<Record<string, () => SqliteStorage>> = {
  "opened by the storage": () => sqliteStorage({ file }),
  "opened by the host": () => {
    const database = openDatabase(file);
    onTestFinished(() => void database.close());
    return sqliteStorage({ database });
  },
};

const replace = (path: string): void => {
  copyFileSync(path, `${path}.new`);
  renameSync(`${path}.new`, path);
};

const FAULTS: readonly { readonly title: string; readonly reason: string; readonly harm: () => void }[] = [
  { title: "is deleted", reason: "FILE_REPLACED", harm: () => rmSync(file) },
  {
    title: "is deleted with all that is in its folder",
    reason: "FILE_REPLACED",
    harm() {
      rmSync(folder, { recursive: true });
      mkdirSync(folder);
    },
  },
  { title: "is replaced by a copy of itself", reason: "FILE_REPLACED", harm: () => replace(file) },
  {
    title: "is moved with its folder",
    reason: "FILE_REPLACED",
    harm: () => renameSync(folder, join(base, "moved")),
  },
  { title: "is emptied in place", reason: "FILE_REPLACED", harm: () => truncateSync(file) },
  { title: "loses its log", reason: "LOG_REPLACED", harm: () => rmSync(`${file}-wal`) },
  { title: "gets another log", reason: "LOG_REPLACED", harm: () => replace(`${file}-wal`) },
  { title: "loses the index of its log", reason: "LOG_REPLACED", harm: () => rmSync(`${file}-shm`) },
];

describe.each(Object.entries(openings))("a file in use, %s,", (_, open) => {
  it.each(FAULTS)(
    "that $title refuses emit for good, logs one error, and fails check()",
    async ({ reason, harm }) => {
      const storage = open();
      const { register, emit, errors } = createService(storage);
      await register();
      await emit();
      harm();
      const refused = { code: "storage_unavailable", reason, isPermanent: true };
      await expect(emit()).rejects.toMatchObject(refused);
      await expect(emit()).rejects.toMatchObject(refused);
      expect(errors()).toMatchObject([
        { message: "the storage is unavailable until its configuration is changed", fields: { reason } },
      ]);
      const { ok, warnings } = await storage.check();
      expect([ok, warnings]).toEqual([
        false,
        [expect.stringMatching(/was deleted, moved or replaced|was deleted or replaced/)],
      ]);
    },
  );

  it("that is moved away and put back is used again, with what was stored before", async () => {
    const { clock, register, webhooks, emit } = createService(open());
    const { webhook } = await register();
    await emit();
    renameSync(folder, join(base, "moved"));
    await expect(emit()).rejects.toMatchObject({ reason: "FILE_REPLACED" });
    renameSync(join(base, "moved"), folder);
    await clock.advance(2 * SECOND);
    await emit();
    const { items: deliveries } = await webhooks.deliveries.list({ webhookId: webhook.id });
    // The refused one is among them: it was committed, and its error says that nobody knows.
    expect(deliveries.length).toBeGreaterThanOrEqual(2);
  });
});

describe("a file in use", () => {
  it("that is deleted after a commit does not acknowledge what was committed", async () => {
    const database = openDatabase(file);
    onTestFinished(() => void database.close());
    let isDeleted = false;
    const handle: SqliteHandle = {
      prepare: (text) => database.prepare(text),
      close: () => database.close(),
      exec(text) {
        database.exec(text);
        if (isDeleted && text === "COMMIT") rmSync(file);
      },
    };
    const { register, emit } = createService(sqliteStorage({ database: handle }));
    await register();
    isDeleted = true;
    await expect(emit()).rejects.toMatchObject({
      ...{ code: "storage_unavailable", reason: "FILE_REPLACED", effect: "unknown" },
    });
  });

  it("that is deleted is noticed within a second by a process that only reads", async () => {
    const { clock, register, webhooks } = createService(sqliteStorage({ file }));
    const { webhook } = await register();
    rmSync(file);
    await clock.advance(SECOND);
    await expect(webhooks.registrations.get(webhook.id)).rejects.toMatchObject({ reason: "FILE_REPLACED" });
  });

  it("that is deleted answers changes of content with 503", async () => {
    const storage = sqliteStorage({ file });
    onTestFinished(() => storage.close());
    const { logger } = recordingLogger();
    const call = callsOf(contentSite({ storage, logger }));
    const create = () => call("POST /posts", { as: "administrator", body: { title: "A" } });
    const first = await create();
    rmSync(file);
    expect([first.status, (await create()).status]).toEqual([201, 503]);
  });

  it("refuses a transaction of the host once it was replaced", async () => {
    const { register, webhooks } = createService(sqliteStorage({ file }));
    await register();
    replace(file);
    const host = openDatabase(file);
    onTestFinished(() => void host.close());
    host.exec("BEGIN IMMEDIATE");
    await expect(webhooks.emit(event, { transaction: host })).rejects.toMatchObject({
      code: expect.stringMatching(/storage_unavailable|invalid_argument/),
    });
    host.exec("ROLLBACK");
  });

  it("that was replaced between its opening and the first call is refused", async () => {
    const database = openDatabase(file);
    onTestFinished(() => void database.close());
    database.exec("PRAGMA journal_mode = WAL; CREATE TABLE notes (text TEXT)");
    rmSync(file);
    writeFileSync(file, "");
    const { emit } = createService(sqliteStorage({ database }));
    await expect(emit()).rejects.toMatchObject({ reason: "FILE_REPLACED", isPermanent: true });
  });

  it("in memory has no file to watch", async () => {
    const { register, emit } = createService(sqliteStorage({ file: ":memory:" }));
    await register();
    expect((await emit()).deliveries).toHaveLength(1);
  });
});

describe("a file at start", () => {
  const start = async (options: { readonly mustExist?: boolean } = {}) => {
    const storage = sqliteStorage({ file, ...options });
    const service = createService(storage);
    const started = await service.register().then(
      () => "started",
      ({ code, reason }) => `${code} ${reason}`,
    );
    await storage.close();
    const codes = service.errors().map(({ fields }) => (fields as { readonly code?: string }).code);
    return { started, codes };
  };
  const QUIET = { started: "started", codes: [] };
  const fill = async (): Promise<void> => expect(await start()).toEqual(QUIET);
  const remove = (): void => {
    for (const suffix of ["", "-wal", "-shm"]) rmSync(file + suffix, { force: true });
  };

  it("that is new, or was there before, logs no error", async () => {
    expect([await start(), await start()]).toEqual([QUIET, QUIET]);
  });

  it.each([
    { title: "that was deleted since", change: () => {} },
    { title: "that was emptied since", change: () => writeFileSync(file, "") },
  ])("$title is created again, and the log has store_reset once", async ({ change }) => {
    await fill();
    remove();
    change();
    expect(await start()).toEqual({ started: "started", codes: ["store_reset"] });
    await fill();
  });

  it.each([
    { title: "that is missing", change: () => {} },
    { title: "that is empty", change: () => writeFileSync(file, "") },
  ])("$title is refused with mustExist, and not created", async ({ change }) => {
    change();
    const before = existsSync(file);
    expect((await start({ mustExist: true })).started).toBe("storage_unavailable FILE_MISSING");
    expect(existsSync(file)).toBe(before);
    remove();
    await fill();
    expect((await start({ mustExist: true })).started).toBe("started");
  });
});
