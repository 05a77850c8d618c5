// A whole host: Express, records in Postgres, the outbox beside them, Redis behind Postbell, the
// portal, and an orderly stop. Two processes of it may run beside each other.
//
//   DATABASE_URL=postgres://localhost/clinic REDIS_URL=redis://localhost:6379 \
//     node examples/production.js
//
// With `--once` it saves two records, gets their notifications at an endpoint of its own, stops,
// and ends with exit code 0 if both came. Without REDIS_URL it then starts a Redis of its own.
import { once } from "node:events";
import express from "express";
import pg from "pg";
import { bearer, createHealth, createWebhooks } from "postbell";
import { expressAdapter } from "postbell/express";
import { outbox, pgSource } from "postbell/outbox";
import { createPortal } from "postbell/portal";
import { redisStorage } from "postbell/redis";
import { localRedis } from "./support/local-redis.js";
import { startSubscriber } from "./support/subscriber.js";

const isOnce = process.argv.includes("--once");
const { DATABASE_URL, REDIS_URL, PORT = 3000, API_KEY = "demo-key", SUBSCRIBER_CA } = process.env;
if (!DATABASE_URL) throw new Error("Set DATABASE_URL to a Postgres database.");
const ownRedis = REDIS_URL ? undefined : await localRedis();
const endpoint = isOnce ? await startSubscriber() : undefined;
const ca = endpoint?.ca ?? SUBSCRIBER_CA;

// 1. The parts. Nothing runs yet.
const account = { id: "key-1", account: "clinic" };
const pool = new pg.Pool({ connectionString: DATABASE_URL });
// A restart of Postgres ends its connections. Without a listener, it would end this process.
pool.on("error", (error) => console.warn(`A connection to Postgres has ended: ${error.message}`));
const storage = redisStorage({ url: REDIS_URL ?? ownRedis.url, prefix: "clinic" });
const webhooks = createWebhooks({
  storage,
  access: {
    authenticate: (request) => (bearer(request) === API_KEY ? account : null),
    canRead: () => true, // in earnest: may this subscriber read this record?
  },
  // The endpoint of `--once` is on this machine, behind a certificate of its own.
  ...(ca && { destinations: { allowPrivateNetworks: true, ca } }),
});
const source = pgSource({ pool });
const box = outbox({ webhooks, source });
const portal = createPortal({
  webhooks,
  authorize: () => (isOnce ? null : { name: "Operator", subscriber: account }), // in earnest: your session
});

// 2. The tables: in earnest, `source.schema()` in a migration.
await source.install();
await pool.query("CREATE TABLE IF NOT EXISTS patients (id text PRIMARY KEY, name text NOT NULL)");

/** Writes a record and its event in one transaction: both are there, or neither. */
async function savePatient(id, name) {
  const client = await pool.connect();
  try {
    await client.query("BEGIN");
    await client.query(
      "INSERT INTO patients VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET name = excluded.name",
      [id, name],
    );
    const resource = { resourceType: "Patient", id, name: [{ text: name }] };
    await source.add(client, { type: "patient.updated", account: account.account, resource });
    await client.query("COMMIT");
  } catch (error) {
    await client.query("ROLLBACK");
    throw error;
  } finally {
    client.release();
  }
  // Otherwise the outbox looks by itself, within a second.
  box.wake();
}

// 3. The server. Postbell's routes come before the body parser of the host.
const app = express();
app.use("/api", expressAdapter(webhooks));
app.use("/portal", expressAdapter(portal));
app.use("/", expressAdapter(createHealth({ webhooks }))); // /healthz and /livez
app.use(express.json());
app.put("/patients/:id", async (request, response) => {
  await savePatient(request.params.id, String(request.body.name));
  response.sendStatus(204);
});

await webhooks.start(); // rejects if Redis cannot be reached
await box.start();
const server = app.listen(isOnce ? 0 : PORT, "127.0.0.1");
await once(server, "listening");
const base = `http://127.0.0.1:${server.address().port}`;
console.log(`Listening on ${base}`);

// 4. The end: no new requests, no new events, then the attempts in flight, then the storage.
async function stop() {
  server.close();
  server.closeIdleConnections();
  await box.stop();
  await webhooks.stop({ graceMs: 10_000 });
  await storage.close();
  await pool.end();
  await ownRedis?.stop();
  endpoint?.close();
}
for (const signal of ["SIGTERM", "SIGINT"]) process.once(signal, () => void stop());

if (isOnce) {
  const headers = { authorization: `Bearer ${API_KEY}`, "content-type": "application/json" };
  const ask = async (method, path, body) => {
    const response = await fetch(base + path, { method, headers, body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return response.status === 204 ? undefined : response.json();
  };
  const { secret, webhook } = await ask("POST", "/api/v1/webhooks", { url: endpoint.url });
  const arrived = new Set();
  const all = new Promise((resolve) => {
    endpoint.receive(secret, ({ event }) => {
      arrived.add(event.context[0].resource.entry[0].resource.id);
      if (arrived.size === 2) resolve();
    });
  });
  await ask("PUT", "/patients/p1", { name: "Ada" });
  await ask("PUT", "/patients/p2", { name: "Grace" });
  await all;
  console.log(`Saved and delivered: ${[...arrived].toSorted((a, b) => a.localeCompare(b)).join(", ")}.`);
  await ask("DELETE", `/api/v1/webhooks/${webhook.id}`);
  await stop();
  console.log("Stopped.");
}
