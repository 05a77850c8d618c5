/** The sources on real servers: the contract, and what only a database can do to them. */

import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it, test } from "vitest";
import type { EventInput } from "../../src/index.js";
import { outboxSourceContract } from "../../src/testing/index.js";
import { DATABASES, type Database } from "./support/database.js";

const event: EventInput = {
  type: "patient.updated",
  account: "clinic",
  resource: { resourceType: "Patient", id: "p1" },
};

describe.each(["postgres", "mariadb"] as const)("the source on %s", (kind) => {
  let database: Database;
  let count = 0;
  const freshTable = () => database.table(`outbox_${++count}`);
  beforeAll(async () => {
    database = await DATABASES[kind]();
  });
  afterAll(() => database.close());

  outboxSourceContract({
    test,
    async create() {
      const { source, begin } = await freshTable();
      return {
        source,
        begin,
        wait: (ms) => sleep(ms),
        async add(events) {
          const transaction = await begin();
          const ids = await transaction.addAll(events);
          await transaction.commit();
          return ids;
        },
      };
    },
  });

  it("installs its table as often as it is told to, also from many at once", async () => {
    const { source, sql } = await freshTable();
    await Promise.all(Array.from({ length: 8 }, () => source.install()));
    expect(await sql("SELECT * FROM outbox")).toEqual([]);
    await sql("DROP TABLE outbox");
    await Promise.all(Array.from({ length: 8 }, () => source.install()));
    expect(await source.stats()).toEqual({ waiting: 0, parked: 0, oldestMs: null });
  });

  it("keeps no host waiting that writes while rows are claimed", async () => {
    const { source, begin } = await freshTable();
    for (let round = 0; round < 20; round++) {
      const open = await begin();
      await open.add(event);
      const other = await begin();
      const claimed = source.claim({ limit: 100, leaseMs: 60_000 });
      await other.add(event);
      await other.commit();
      await claimed;
      await open.commit();
    }
    expect((await source.stats()).waiting).toBe(40);
  });

  it("finds the due rows by an index, which ends the search where the table is large and little is due", async () => {
    const { source, begin, sql, claimPlan } = await freshTable();
    for (let round = 0; round < 20; round++) {
      const transaction = await begin();
      await transaction.addAll(Array.from({ length: 100 }, () => event));
      await transaction.commit();
    }
    await sql("UPDATE outbox SET due_at = NULL WHERE seq > 10");
    await sql(kind === "postgres" ? "ANALYZE outbox" : "ANALYZE TABLE outbox");
    const plan = await claimPlan();
    expect(plan).toMatch(kind === "postgres" ? /Index Cond: \(due_at <=/ : /"type":"range".*"key":"due"/);
    expect(plan).not.toMatch(/sort/i);
    expect((await source.claim({ limit: 100, leaseMs: 60_000 })).length).toBe(10);
  });

  it("leaves no lock and no transaction behind a claim", async () => {
    const { source, begin, sql } = await freshTable();
    const transaction = await begin();
    await transaction.add(event);
    await transaction.commit();
    await source.claim({ limit: 10, leaseMs: 60_000 });
    const open =
      kind === "postgres"
        ? "SELECT pid FROM pg_stat_activity WHERE xact_start IS NOT NULL AND pid <> pg_backend_pid() AND datname IS NOT NULL AND backend_type = 'client backend'"
        : "SELECT trx_id FROM information_schema.innodb_trx";
    expect(await sql(open)).toEqual([]);
  });
});
