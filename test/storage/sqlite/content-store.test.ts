/** Content in a file that changes in ways no commit explains, and the load of a large site. */

import { afterEach, beforeEach, expect, it } from "vitest";
import type { ContentStore } from "../../../src/content/store.js";
import { silentLogger } from "../../../src/core/logger.js";
import { put } from "../../../src/testing/content-store-contract/fixture.js";
import { manualClock } from "../../../src/testing/manual-clock.js";
import { CONTENT_TABLES } from "../../../storage/sql/content-tables.js";
import { type SqliteHandle, type SqliteStorage, sqliteStorage } from "../../../storage/sqlite/index.js";
import { createDatabaseFile, openDatabase } from "../../support/sqlite.js";

let file: ReturnType<typeof createDatabaseFile>;
let databases: readonly [own: SqliteHandle, other: SqliteHandle];
let storages: readonly SqliteStorage[];
/** The stores of two processes. */
let store: ContentStore;
let peer: ContentStore;

beforeEach(() => {
  file = createDatabaseFile();
  databases = [openDatabase(file.path), openDatabase(file.path)];
  storages = databases.map((database) => sqliteStorage({ database }));
  const context = { clock: manualClock(Date.UTC(2026, 0, 5)), logger: silentLogger };
  [store, peer] = storages.map((storage) => storage.content(context)) as [ContentStore, ContentStore];
});
afterEach(async () => {
  for (const storage of storages) await storage.close();
  for (const database of databases) database.close();
  file.destroy();
});

const tables = CONTENT_TABLES.map(({ name }) => `postbell_${name}`);

/** Runs statements in one transaction of a third program, such as a tool for backups. */
function runAtOnce(statements: readonly string[]): void {
  const database = openDatabase(file.path);
  database.exec(["BEGIN IMMEDIATE", ...statements, "COMMIT"].join("; "));
  database.close();
}
const empty = (): void => runAtOnce(tables.map((table) => `DELETE FROM ${table}`));
const backUp = (): void =>
  runAtOnce(tables.map((table) => `CREATE TABLE copy_of_${table} AS SELECT * FROM ${table}`));
const restore = (): void =>
  runAtOnce(
    tables.flatMap((table) => [
      `DELETE FROM ${table}`,
      `INSERT INTO ${table} SELECT * FROM copy_of_${table}`,
    ]),
  );

/** Commits `count` new records, each on its own. */
async function commitNew(to: ContentStore, name: string, count: number): Promise<void> {
  for (let id = 1; id <= count; id++) {
    expect(await to.commit([put(`${name}/${id}`, 0)])).toMatchObject({ ok: true });
  }
}

/** Returns the sequence number of a process that has followed every commit so far. */
async function follow(since: number): Promise<number> {
  const changes = await store.changes(since);
  if (changes === "reload") throw new Error("The changes are still known.");
  return changes.sequence;
}

it.each([0, 2, 3, 5])("asks for a reload after it was emptied and got %i commits since", async (count) => {
  const { sequence } = await store.load();
  await commitNew(peer, "post", 3);
  const since = await follow(sequence);
  expect(since).toBe(3);
  empty();
  await commitNew(peer, "page", count);
  expect(await store.changes(since)).toBe("reload");
  const loaded = await store.load();
  expect(loaded.sequence).toBe(count);
  expect(await store.changes(loaded.sequence)).toEqual({ sequence: count, changes: [] });
});

it.each([0, 1, 2, 4])("asks for a reload after a backup was restored and got %i commits", async (count) => {
  const { sequence } = await store.load();
  await commitNew(peer, "post", 3);
  backUp();
  await commitNew(peer, "page", 2);
  const since = await follow(await follow(sequence));
  expect(since).toBe(5);
  restore();
  await commitNew(peer, "term", count);
  expect(await store.changes(since)).toBe("reload");
});

it("asks for no reload after a backup was restored that has all that it has seen", async () => {
  await store.load();
  await commitNew(peer, "post", 3);
  const since = await follow(0);
  backUp();
  await commitNew(peer, "page", 2);
  restore();
  await commitNew(peer, "term", 1);
  expect(await store.changes(since)).toMatchObject({ sequence: 4, changes: [{ key: "term/1" }] });
});

it("knows its own commits again after each, and asks for a reload when they are gone", async () => {
  await store.load();
  await commitNew(store, "post", 2);
  const since = await follow(0);
  empty();
  await commitNew(store, "page", 2);
  expect(await store.changes(since)).toBe("reload");
});

it("loads many records in pages, between which others get their turn", async () => {
  const count = 25_000;
  for (let first = 0; first < count; first += 10_000) {
    const ids = Array.from({ length: Math.min(10_000, count - first) }, (_, id) => first + id);
    const written = await peer.commit(ids.map((id) => put(`post/${id}`, 0, { columns: "[]", body: "" })));
    expect(written.ok).toBe(true);
  }
  let turns = 0;
  let isLoading = true;
  const countTurn = (): void => {
    turns++;
    if (isLoading) setImmediate(countTurn);
  };
  setImmediate(countTurn);
  const keys = new Set<string>();
  let longest = 0;
  for await (const batch of (await store.load()).batches) {
    longest = Math.max(longest, batch.length);
    for (const { key } of batch) keys.add(key);
  }
  isLoading = false;
  expect(keys.size).toBe(count);
  expect(longest).toBeLessThanOrEqual(1_000);
  expect(turns).toBeGreaterThanOrEqual(count / 1_000);
});
