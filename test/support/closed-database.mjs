// Uses databases that were closed, and prints the errors as JSON. Argument: the driver. To touch a
// closed database of libsql in the wrong way ends the process, so this is a process of its own.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Libsql from "libsql";
import { createWebhooks } from "../../dist/index.js";
import { sqliteStorage } from "../../dist/sqlite.js";

/** As better-sqlite3 behaves, which is not installed here: a closed database throws `TypeError`. */
class BetterSqlite {
  #own;
  constructor(path) {
    this.#own = new Libsql(path);
  }
  #require() {
    if (!this.open) throw new TypeError("The database connection is not open");
    return this.#own;
  }
  get open() {
    return this.#own.open;
  }
  get inTransaction() {
    return this.open && this.#own.inTransaction;
  }
  exec(text) {
    this.#require().exec(text);
    return this;
  }
  prepare(text) {
    const statement = this.#require().prepare(text);
    const use =
      (name) =>
      (...values) =>
        this.#require() && statement[name](...values);
    return { all: use("all"), run: use("run") };
  }
  close() {
    if (this.#own.open) this.#own.close();
  }
}

const DRIVERS = {
  libsql: Libsql,
  "better-sqlite3": BetterSqlite,
  "node:sqlite": process.getBuiltinModule("node:sqlite")?.DatabaseSync,
};
const Database = DRIVERS[process.argv[2]];

const folder = mkdtempSync(join(tmpdir(), "postbell-closed-"));
const open = () => new Database(join(folder, "own.db"));
const event = { type: "patient.updated", account: "clinic", resource: { resourceType: "Patient", id: "1" } };
const errorOf = (promise) =>
  promise.then(
    () => "resolved",
    ({ name, code, field, message }) => ({ name, code, field, message }),
  );

const own = open();
const storage = sqliteStorage({ database: own });
const webhooks = createWebhooks({
  storage,
  access: { authenticate: () => null, canRead: () => true },
  logger: false,
});
const { webhook } = await webhooks.registrations.create({
  subscriber: { id: "key", account: "clinic" },
  url: "https://subscriber.example/",
});

function begin() {
  const host = open();
  host.exec("BEGIN IMMEDIATE");
  return host;
}

const found = {};
const closed = begin();
closed.close();
found.closedBefore = await errorOf(webhooks.emit(event, { transaction: closed }));

// The statements of the first event are compiled: libsql runs them after the close, too.
const during = begin();
await webhooks.emit(event, { transaction: during });
during.exec("ROLLBACK");
during.exec("BEGIN IMMEDIATE");
const emitting = errorOf(webhooks.emit(event, { transaction: during }));
await Promise.resolve();
during.exec("ROLLBACK");
during.close();
found.closedMeanwhile = await emitting;

const host = begin();
const late = errorOf(webhooks.emit(event));
host.exec("ROLLBACK");
found.emitBeforeClose = await late;
const log = await webhooks.deliveries.list({ webhookId: webhook.id });
found.stored = log.items.length;

own.close();
found.ownClosed = await errorOf(webhooks.emit(event));
found.ownClosedRead = await errorOf(webhooks.registrations.list({ account: "clinic" }));
found.ownClosedStart = await errorOf(webhooks.start());
await webhooks.stop();
found.ownClosedCheck = await errorOf(storage.check());
await Promise.all([storage.close(), storage.close()]);
await storage.close();
host.exec("BEGIN IMMEDIATE");
found.storageClosed = await errorOf(webhooks.emit(event, { transaction: host }));
host.exec("ROLLBACK");
host.close();
found.closedGiven = await errorOf((async () => sqliteStorage({ database: host }))());
rmSync(folder, { recursive: true });
console.log(JSON.stringify(found));
