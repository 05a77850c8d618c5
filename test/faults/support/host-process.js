// A host that writes a record and emits an event of the same id in one transaction, again and
// again, until it is killed. Some transactions it rolls back.
import { randomUUID } from "node:crypto";
import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { createWebhooks } from "postbell";
import { openDatabase, openStorage } from "./open-storage.js";

const { storage: address, journal } = JSON.parse(process.env.HOST_OPTIONS ?? "{}");

/** Runs statements of the host on a connection of its own. */
async function openSqlite() {
  const database = await openDatabase(address.file);
  return async (work) => {
    // Waits for the other process without blocking: this process writes with another connection.
    for (;;) {
      try {
        database.exec("BEGIN IMMEDIATE");
        break;
      } catch (error) {
        if (error.code !== "SQLITE_BUSY" && error.errcode !== 5) throw error;
        await sleep(1);
      }
    }
    await work(database, (text, ...values) => database.prepare(text).run(...values));
  };
}

async function openPostgres() {
  const { default: pg } = await import("pg");
  const pool = new pg.Pool({ connectionString: address.url });
  return async (work) => {
    const client = await pool.connect();
    await client.query("BEGIN");
    await work(client, (text, ...values) => client.query(text.replace("?", "$1"), values));
    client.release();
  };
}

const transact = await (address.kind === "sqlite" ? openSqlite() : openPostgres());
const storage = await openStorage(address);
const webhooks = createWebhooks({
  storage,
  access: { authenticate: () => null, canRead: () => true },
  logger: { debug() {}, info() {}, warn() {}, error() {} },
});

for (let round = 0; ; round++) {
  const id = randomUUID();
  await transact(async (transaction, run) => {
    await run("INSERT INTO host_records (id) VALUES (?)", id);
    const resource = { resourceType: "Patient", id: "p1" };
    await webhooks.emit({ id, type: "patient.updated", account: "clinic", resource }, { transaction });
    const isUndone = round % 4 === 3;
    await run(isUndone ? "ROLLBACK" : "COMMIT");
    appendFileSync(journal, `${isUndone ? "undone" : "committed"} ${id}\n`);
  });
  await sleep(1);
}
