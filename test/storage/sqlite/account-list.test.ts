/** The list of accounts on SQLite while no process claims. */

import { expect, test } from "vitest";
import { createScenario } from "../../../src/testing/storage-contract/fixture.js";
import { sqliteStorage } from "../../../storage/sqlite/index.js";
import { countWork, createDatabaseFile, openDatabase } from "../../support/sqlite.js";

test("its work does not grow with the events that were stored since the last claim", async () => {
  const { path, destroy } = createDatabaseFile();
  const database = openDatabase(path);
  const { handle, work } = countWork(database);
  const storage = sqliteStorage({ database: handle });
  const s = createScenario({ storage });
  await s.register();
  const list = async () => {
    const before = work();
    const { accounts } = await s.store.listAccounts({ limit: 50, now: s.now() });
    return { cost: work() - before, waiting: accounts[0]?.waiting };
  };
  /** One after the other, so that each has a transaction of its own. */
  const emit = async (count: number) => {
    for (let index = 0; index < count; index++) await s.emit();
  };
  await emit(100);
  expect((await list()).waiting).toBe(100);
  await emit(700);
  const once = await list();
  await emit(800);
  const twice = await list();
  expect(twice.cost).toBeLessThanOrEqual(once.cost);

  // A claim adds up what the list leaves out.
  for (let index = 0; index < 60; index++) await s.claimWithNextAt({ room: { fast: 0, slow: 0 } });
  expect((await list()).waiting).toBe(1_600);
  await storage.close();
  database.close();
  destroy();
});
