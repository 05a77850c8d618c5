/** Postgres behind PgBouncer in transaction mode, and what the storage leaves in a session. */

import pg from "pg";
import { describe, expect, it, onTestFinished } from "vitest";
import { silentLogger } from "../../src/core/logger.js";
import { createWebhooks, systemClock, type Webhooks } from "../../src/index.js";
import { postgresStorage } from "../../storage/postgres/index.js";
import { describeChaos } from "../faults/support/chaos-suite.js";
import { KEY } from "../faults/support/ledger.js";
import { startPostgresUnderTest, toPostgres } from "../faults/support/postgres-under-test.js";
import { startForTests } from "../faults/support/start-for-tests.js";
import { driveStore, newEvent } from "../faults/support/store-driver.js";
import { hasPgBouncer } from "./support/pgbouncer.js";

describe.runIf(hasPgBouncer)("behind PgBouncer in transaction mode", () => {
  const on = startForTests(() => startPostgresUnderTest({ isPooled: true }));

  describeChaos({ start: () => startPostgresUnderTest({ isPooled: true }), workers: 2 });

  it("a host emits in its own transactions, while the storage has sessions", async () => {
    const { url, schema } = toPostgres(await on().fresh());
    const port = on().server?.port ?? 0;
    const storage = postgresStorage({ url: `postgres://postgres@127.0.0.1:${port}/postgres`, schema });
    const pool = new pg.Pool({ connectionString: url, max: 10 });
    onTestFinished(async () => {
      await storage.close();
      await pool.end();
    });
    const webhooks: Webhooks = createWebhooks({
      storage,
      access: { authenticate: () => null, canRead: () => true },
      logger: silentLogger,
    });
    await webhooks.registrations.create({ subscriber: KEY, url: "https://hooks.example.com/" });
    const change = async (isUndone: boolean): Promise<void> => {
      const client = await pool.connect();
      try {
        await client.query("BEGIN");
        await webhooks.emit(
          {
            ...{ type: "patient.updated", account: KEY.account },
            resource: { resourceType: "Patient", id: "p1" },
          },
          { transaction: client },
        );
        await client.query(isUndone ? "ROLLBACK" : "COMMIT");
      } finally {
        client.release();
      }
    };
    for (let round = 0; round < 10; round++) {
      await Promise.all(Array.from({ length: 10 }, (_, index) => change(index % 2 === 0)));
    }
    const { store } = driveStore(storage);
    expect(await store.stats()).toMatchObject({ events: 50, pending: 50 });
  });
});

describe("connections that a pooler lends for one transaction each", () => {
  const on = startForTests(() => startPostgresUnderTest());

  it("keep nothing of it: no setting, no lock, no prepared statement, no channel, no temporary table", async () => {
    const { url, schema } = toPostgres(await on().fresh());
    const pool = new pg.Pool({ connectionString: url, max: 1 });
    onTestFinished(() => pool.end());
    const left = async (): Promise<unknown> => {
      const { rows } = await pool.query(
        `SELECT pg_backend_pid() AS pid, (SELECT count(*) FROM pg_prepared_statements) AS statements,
          (SELECT count(*) FROM pg_listening_channels()) AS channels,
          (SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory') AS locks,
          (SELECT count(*) FROM pg_class WHERE relpersistence = 't') AS tables,
          (SELECT string_agg(name || ' = ' || setting, ', ' ORDER BY name) FROM pg_settings
            WHERE source = 'session') AS settings`,
      );
      return rows;
    };
    const before = await left();
    const storage = postgresStorage({ pool, schema });
    await storage.migrate();
    const { register, append, claim, settle, store } = driveStore(storage);
    await register();
    await append(newEvent("clinic"));
    for (const claimed of await claim()) await settle(claimed);
    await store.stats();
    const content = storage.content({ clock: systemClock, logger: silentLogger });
    await content.commit([
      { key: "post/1", expectedVersion: 0, record: { columns: "{}", body: "{}", unique: [] } },
    ]);
    await storage.check();
    expect(await left()).toEqual(before);
    await storage.close();
  });
});
