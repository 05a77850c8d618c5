/** Databases whose driver the host has set to return rows in another form. */

import { createRequire } from "node:module";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { silentLogger } from "../../../src/core/logger.js";
import { createWebhooks, systemClock } from "../../../src/index.js";
import { type SqliteHandle, sqliteStorage } from "../../../storage/sqlite/index.js";
import { createDatabaseFile, hasNodeSqlite, openDatabase } from "../../support/sqlite.js";

const require = createRequire(import.meta.url);

interface Libsql extends SqliteHandle {
  defaultSafeIntegers(isOn: boolean): this;
}

/** Opens a file with a driver that is set to return something else than objects with numbers. */
const SETTINGS: Record<string, (path: string) => SqliteHandle> = {
  "defaultSafeIntegers(true) of libsql": (path) => {
    const Database = require("libsql") as new (path: string) => Libsql;
    return new Database(path).defaultSafeIntegers(true);
  },
};
if (hasNodeSqlite) {
  const open = (options: object) => (path: string) => {
    const { DatabaseSync } = require("node:sqlite") as {
      DatabaseSync: new (path: string, options: object) => SqliteHandle;
    };
    return new DatabaseSync(path, options);
  };
  SETTINGS["readBigInts of node:sqlite"] = open({ readBigInts: true });
  SETTINGS["returnArrays of node:sqlite"] = open({ returnArrays: true });
}

/** A driver with a setting that the storage does not know: `change` gives the rows another form. */
function openChanged(path: string, change: (row: object) => unknown): SqliteHandle {
  const database = openDatabase(path);
  return {
    exec: (text) => database.exec(text),
    close: () => database.close(),
    prepare(text) {
      const statement = database.prepare(text);
      return {
        all: (...values) => statement.all(...values).map((row) => change(row as object)),
        run: (...values) => statement.run(...values),
      };
    },
  };
}
const toBigInts = (row: object): object =>
  Object.fromEntries(
    Object.entries(row).map(([key, value]) => [key, typeof value === "number" ? BigInt(value) : value]),
  );
const CHANGES: Readonly<Record<string, (row: object) => unknown>> = {
  "lists of values": (row) => Object.values(row),
  "bigints for integers": toBigInts,
  "one value for each row": (row) => Object.values(row)[0],
};

const event = {
  type: "patient.updated",
  account: "clinic",
  resource: { resourceType: "Patient", id: "1" },
} as const;

let file: ReturnType<typeof createDatabaseFile>;
let opened: SqliteHandle[];
beforeEach(() => {
  file = createDatabaseFile();
  opened = [];
});
afterEach(() => {
  for (const database of opened) database.close();
  file.destroy();
});

const keepOpen = (database: SqliteHandle): SqliteHandle => {
  opened.push(database);
  return database;
};
const createService = (database: SqliteHandle) => {
  const storage = sqliteStorage({ database });
  const access = { authenticate: () => null, canRead: () => true };
  return { storage, webhooks: createWebhooks({ storage, access, logger: false }) };
};
const register = ({ webhooks }: ReturnType<typeof createService>) =>
  webhooks.registrations.create({
    subscriber: { id: "key", account: "clinic" },
    url: "https://subscriber.example/hook",
  });

describe.each(Object.entries(SETTINGS))("a database with %s", (_, open) => {
  it("is used like any other: emit stores a delivery, and content is read as it was written", async () => {
    const service = createService(keepOpen(open(file.path)));
    const { webhook } = await register(service);
    const { deliveries } = await service.webhooks.emit(event);
    expect(deliveries).toHaveLength(1);
    const list = await service.webhooks.deliveries.list({ webhookId: webhook.id });
    expect(list.items).toMatchObject([{ id: deliveries[0]?.id, state: "pending" }]);
    const content = service.storage.content({ clock: systemClock, logger: silentLogger });
    const record = { columns: "{}", body: "text", unique: [] };
    await content.commit([{ key: "post/1", expectedVersion: 0, record }]);
    expect(await content.read(["post/1"])).toMatchObject([{ version: 1, body: "text" }]);
    expect(await service.storage.check()).toMatchObject({ ok: true, warnings: [] });
    await service.storage.close();
  });

  it("may hold the transaction of an event", async () => {
    // The same driver for both: two builds of SQLite must not share a file.
    const service = createService(keepOpen(open(file.path)));
    const { webhook } = await register(service);
    const host = keepOpen(open(file.path));
    host.exec("BEGIN IMMEDIATE");
    expect((await service.webhooks.emit(event, { transaction: host })).deliveries).toHaveLength(1);
    host.exec("COMMIT");
    expect((await service.webhooks.deliveries.list({ webhookId: webhook.id })).items).toHaveLength(1);
    await service.storage.close();
  });
});

describe.each(Object.entries(CHANGES))("a database that returns %s", (_, change) => {
  it("is refused by the first call with invalid_option, and stores nothing", async () => {
    const { webhooks, storage } = createService(keepOpen(openChanged(file.path, change)));
    await expect(webhooks.emit(event)).rejects.toMatchObject({
      code: "invalid_option",
      field: "database",
      message: expect.stringMatching(/must return rows as objects and integers as numbers/),
    });
    await storage.close();
  });

  it("is refused as a transaction with invalid_argument, and stores nothing", async () => {
    const service = createService(keepOpen(openDatabase(file.path)));
    const { webhook } = await register(service);
    const host = keepOpen(openChanged(file.path, change));
    host.exec("BEGIN IMMEDIATE");
    await expect(service.webhooks.emit(event, { transaction: host })).rejects.toMatchObject({
      code: "invalid_argument",
      field: "transaction",
      message: expect.stringMatching(/must return rows as objects and integers as numbers/),
    });
    host.exec("COMMIT");
    expect((await service.webhooks.deliveries.list({ webhookId: webhook.id })).items).toEqual([]);
    await service.storage.close();
  });
});
