// Events in the host's own transaction: the table of the outbox lies beside the host's, in Postgres
// if DATABASE_URL names one, and a process moves them to Postbell. `node examples/outbox.js --once`
// ends by itself, with exit code 0 if what was committed was emitted, once, and nothing else.
// Without DATABASE_URL it runs in memory.
import { once } from "node:events";
import { createWebhooks } from "postbell";
import { memoryStorage } from "postbell/memory";
import { memorySource, outbox, pgSource } from "postbell/outbox";

const isOnce = process.argv.includes("--once");
const say = (...words) => console.log(...words);
const eventOf = (id) => ({
  type: "patient.updated",
  account: "clinic",
  resource: { resourceType: "Patient", id },
});

/**
 * The host's writes: `save(id)` commits, `fail(id)` rolls back. Each writes its event in the same
 * transaction.
 */
async function onPostgres(connectionString) {
  const { default: pg } = await import("pg");
  const pool = new pg.Pool({ connectionString });
  // A restart of Postgres ends its connections. Without a listener, it would end this process.
  pool.on("error", (error) => say(`A connection to Postgres has ended: ${error.message}`));
  const source = pgSource({ pool });
  await source.install(); // in earnest: source.schema() in a migration
  await pool.query("CREATE TABLE IF NOT EXISTS example_patients (id text PRIMARY KEY, saved_at timestamptz)");
  const write = async (id, end) => {
    const client = await pool.connect();
    try {
      await client.query("BEGIN");
      await client.query(
        "INSERT INTO example_patients VALUES ($1, now()) ON CONFLICT (id) DO UPDATE SET saved_at = now()",
        [id],
      );
      const eventId = await source.add(client, eventOf(id));
      await client.query(end);
      return eventId;
    } finally {
      client.release();
    }
  };
  const close = async () => {
    await pool.query("DROP TABLE example_patients");
    await pool.end();
  };
  return { source, save: (id) => write(id, "COMMIT"), fail: (id) => write(id, "ROLLBACK"), close };
}

function inMemory() {
  const source = memorySource();
  return {
    source,
    save: (id) => source.add(eventOf(id)),
    fail: async () => undefined,
    close: async () => {},
  };
}

const { DATABASE_URL } = process.env;
const host = DATABASE_URL ? await onPostgres(DATABASE_URL) : inMemory();
say(DATABASE_URL ? "On Postgres." : "In memory: set DATABASE_URL for Postgres.");

// 1. Postbell, with an endpoint, and the outbox before it. Nothing is sent here, so the service
// itself is not started.
const storage = memoryStorage();
const webhooks = createWebhooks({ storage, access: { authenticate: () => null, canRead: () => true } });
const subscriber = { id: "key-1", account: "clinic" };
const { webhook } = await webhooks.registrations.create({ subscriber, url: "https://hooks.example.com/in" });
const box = outbox({ webhooks, source: host.source, logger: { ...console, debug: () => {} } });
await box.start();

// 2. Three transactions; one is rolled back.
const saved = [await host.save("p1"), await host.save("p2")];
await host.fail("p3");
say("Committed: p1, p2. Rolled back: p3.");

// 3. They are emitted at the next look, or now:
box.wake();
await box.idle();
const { items: deliveries } = await webhooks.deliveries.list({ webhookId: webhook.id });
for (const { eventId, type } of deliveries) say(`  emitted: ${type} ${eventId}`);
const { waiting, parked, emitted } = await box.stats();
say(`Outbox: ${emitted} emitted, ${waiting} waiting, ${parked} parked.`);
const ids = deliveries.map(({ eventId }) => eventId);
const ok = waiting === 0 && ids.length === saved.length && saved.every((id) => ids.includes(id));
say(ok ? "Done: what was committed was emitted, once." : "Failed: not what was committed.");
process.exitCode = ok ? 0 : 1;

if (ok && !isOnce) {
  say("Still running until Ctrl-C.");
  await once(process, "SIGINT");
}
await box.stop();
await webhooks.stop();
await storage.close();
await host.close();
