/** Damaged SQLite files, and other files: reported, and never emptied or changed. */

import { createHash } from "node:crypto";
import { readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { describe, expect, it, onTestFinished } from "vitest";
import { silentLogger } from "../../src/core/logger.js";
import { isPostbellError, systemClock } from "../../src/index.js";
import { manualClock } from "../../src/testing/manual-clock.js";
import { createDatabaseFile, openDatabase } from "../support/sqlite.js";
import { openSqlite } from "./support/sqlite-under-test.js";
import { driveStore, newEvent } from "./support/store-driver.js";

const EVENTS = 60;
const PAGE_BYTES = 4_096;

/** A file that no connection is open to, with a webhook, events and content. */
async function createFilled(): Promise<string> {
  const { path, destroy } = createDatabaseFile();
  onTestFinished(destroy);
  const storage = openSqlite(path);
  const { register, append } = driveStore(storage);
  await register();
  const payload = JSON.stringify({ text: "x".repeat(3_000) });
  for (let event = 0; event < EVENTS; event++) await append(newEvent("clinic", { payload }));
  const content = storage.content({ clock: systemClock, logger: silentLogger });
  const record = { columns: "{}", body: "x".repeat(3_000), unique: [] };
  const writes = Array.from({ length: EVENTS }, (_, post) => ({
    ...{ key: `post/${post}`, expectedVersion: 0, record: { ...record, unique: [`slug/${post}`] } },
  }));
  await content.commit(writes);
  await storage.close();
  // Some drivers keep a closed file open until its statements are collected; nobody has the copy.
  const copy = `${path}.copy`;
  const database = openDatabase(path);
  database.exec(`VACUUM INTO '${copy}'`);
  database.close();
  return copy;
}

const digestOf = (path: string): string => createHash("sha256").update(readFileSync(path)).digest("hex");

function overwrite(path: string, at: number, bytes: Buffer): void {
  const content = readFileSync(path);
  bytes.copy(content, at);
  writeFileSync(path, content);
}

interface Damage {
  readonly title: string;
  readonly damage: (path: string) => void;
}

const DAMAGES: readonly Damage[] = [
  { title: "begins with other bytes", damage: (path) => overwrite(path, 0, Buffer.alloc(100, 0x55)) },
  { title: "is a text", damage: (path) => writeFileSync(path, "Not a database.\n".repeat(1_000)) },
  { title: "is two bytes", damage: (path) => writeFileSync(path, "xx") },
  { title: "has lost its second half", damage: (path) => truncateSync(path, statSync(path).size / 2) },
  { title: "has lost all but its first page", damage: (path) => truncateSync(path, PAGE_BYTES) },
  { title: "ends in the middle of its first page", damage: (path) => truncateSync(path, 1_000) },
  {
    title: "has garbage in each page but the first",
    damage(path) {
      const pages = statSync(path).size / PAGE_BYTES;
      for (let page = 1; page < pages; page++) overwrite(path, page * PAGE_BYTES, Buffer.alloc(64, 0xaa));
    },
  },
];

/** Every error that the calls of a service end with. */
async function callAll(path: string): Promise<readonly unknown[]> {
  // Some drivers read the file as they open it.
  let storage: ReturnType<typeof openSqlite>;
  try {
    storage = openSqlite(path);
  } catch (error) {
    return [error];
  }
  const { store, append, claim } = driveStore(storage);
  const content = storage.content({ clock: systemClock, logger: silentLogger });
  const errors: unknown[] = [];
  const calls: readonly (() => Promise<unknown>)[] = [
    () => store.stats(),
    () => claim(),
    () => append(newEvent("clinic", { payload: "x".repeat(5_000) })),
    () => store.listDeliveries({ webhookId: "none", limit: 10 }),
    () => store.listWebhooks({ account: "clinic", limit: 10 }),
    () => content.read(Array.from({ length: EVENTS }, (_, post) => `post/${post}`)),
    async () => {
      for await (const batch of (await content.load()).batches) expect(batch.length).toBeGreaterThan(0);
    },
    () => content.commit([{ key: "post/1", expectedVersion: 1, record: null }]),
  ];
  for (const call of calls) await call().catch((error: unknown) => errors.push(error));
  await storage.close();
  return errors;
}

describe("a file that", () => {
  it.each(DAMAGES)(
    "$title is reported by every call that meets the damage, and left as it is",
    async ({ damage }) => {
      const path = await createFilled();
      damage(path);
      const before = digestOf(path);
      const errors = await callAll(path);
      expect(errors.length).toBeGreaterThan(0);
      for (const error of errors) {
        expect(isPostbellError(error, "storage_unavailable") ? error.message : error).toMatch(
          /damaged or is no database; nothing was changed.*restore a backup/,
        );
      }
      expect(digestOf(path)).toBe(before);
    },
  );

  it("is damaged in a part is named by check(), and what is whole is served", async () => {
    const path = await createFilled();
    const database = openDatabase(path);
    const [root] = database
      .prepare("SELECT rootpage FROM sqlite_master WHERE name = 'postbell_remembered'")
      .all() as { rootpage: number }[];
    database.close();
    overwrite(path, ((root?.rootpage ?? 0) - 1) * PAGE_BYTES, Buffer.alloc(64, 0xaa));
    const storage = openSqlite(path);
    // SQLite lists some damages, and gives up at others.
    const found = await storage.check().catch(({ message }: Error) => ({ ok: false, warnings: [message] }));
    expect(found).toMatchObject({
      ok: false,
      warnings: [expect.stringMatching(/file is damaged.*restore a backup/)],
    });
    const content = storage.content({ clock: systemClock, logger: silentLogger });
    expect(await content.read(["post/1"])).toMatchObject([{ body: "x".repeat(3_000) }]);
    await storage.close();
  });

  it("was written by a newer version is refused, and left as it is", async () => {
    const path = await createFilled();
    const database = openDatabase(path);
    database.exec("INSERT INTO postbell_layout (version) VALUES (999)");
    database.close();
    const storage = openSqlite(path);
    const refused = await storage.check().catch((error: unknown) => error);
    expect(refused).toMatchObject({ code: "invalid_option", message: expect.stringMatching(/layout 999/) });
    await storage.close();
    const left = openDatabase(path)
      .prepare(
        "SELECT (SELECT count(*) FROM postbell_events) AS events, max(version) AS version FROM postbell_layout",
      )
      .all();
    expect(left).toEqual([{ events: EVENTS, version: 999 }]);
  });

  it("is repaired while the process runs is used again", async () => {
    const path = await createFilled();
    const whole = readFileSync(path);
    overwrite(path, 0, Buffer.alloc(100, 0x55));
    const storage = openSqlite(path);
    const { store } = driveStore(storage, { clock: manualClock(Date.now()) });
    await expect(store.stats()).rejects.toMatchObject({ code: "storage_unavailable" });
    writeFileSync(path, whole);
    rmSync(`${path}-wal`, { force: true });
    expect((await store.stats()).events).toBe(EVENTS);
    await storage.close();
  });
});
