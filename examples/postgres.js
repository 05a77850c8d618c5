// Events in the transaction of the record, without Redis and without an outbox: Express, Postgres
// for both, and a storage in a schema of its own.
//
//   DATABASE_URL=postgres://localhost/clinic node examples/postgres.js
//
// With `--once` it kills itself between record and commit, and shows what is left.
import express from "express";
import pg from "pg";
import { bearer, createWebhooks } from "postbell";
import { expressAdapter } from "postbell/express";
import { postgresStorage } from "postbell/postgres";
import { crashAt, showCrashes } from "./support/show-crashes.js";

const { DATABASE_URL, PORT = 3000, API_KEY = "demo-key", SUBSCRIBER_CA: ca } = process.env;
if (!DATABASE_URL) throw new Error("Set DATABASE_URL to a Postgres database.");

async function serve() {
  const pool = new pg.Pool({ connectionString: DATABASE_URL });
  // A restart of Postgres ends its connections. Without these listeners, it would end this process.
  pool.on("error", (error) => console.warn(`A connection to Postgres has ended: ${error.message}`));
  pool.on("connect", (client) => client.on("error", () => {})); // its next statement rejects
  const storage = postgresStorage({ url: DATABASE_URL }); // or { pool }
  await storage.migrate(); // in earnest: `postbell migrate`, or the host's own migrations
  await pool.query("CREATE TABLE IF NOT EXISTS patients (id text PRIMARY KEY, name text NOT NULL)");
  const webhooks = createWebhooks({
    storage,
    access: {
      authenticate: (request) => (bearer(request) === API_KEY ? { id: "key-1", account: "clinic" } : null),
      canRead: () => true, // in earnest: may this subscriber read this record?
    },
    ...(ca && { destinations: { allowPrivateNetworks: true, ca } }),
  });

  /** Writes a record and its event in one transaction: both are there, or neither. */
  async function savePatient(id, name, crash) {
    const client = await pool.connect();
    try {
      await client.query("BEGIN");
      await client.query("INSERT INTO patients VALUES ($1, $2)", [id, name]);
      const resource = { resourceType: "Patient", id, name: [{ text: name }] };
      await webhooks.emit({ type: "patient.created", account: "clinic", resource }, { transaction: client });
      if (name === "") throw new RangeError("a patient has a name");
      crashAt("before the commit", crash);
      await client.query("COMMIT");
      crashAt("after the commit", crash);
    } catch (error) {
      await client.query("ROLLBACK");
      throw error;
    } finally {
      client.release();
    }
  }

  const app = express();
  app.use("/api", expressAdapter(webhooks));
  app.put("/patients/:id", async (request, response) => {
    try {
      await savePatient(request.params.id, request.query.name, request.query.crash);
      response.sendStatus(204);
    } catch (error) {
      response.status(error instanceof RangeError ? 400 : 503).send(error.message);
    }
  });

  await webhooks.start();
  const server = app.listen(PORT, "127.0.0.1", () =>
    console.log(`Listening on http://127.0.0.1:${server.address().port}`),
  );
  const stop = async () => {
    server.close();
    await webhooks.stop();
    await storage.close();
    await pool.end();
  };
  for (const signal of ["SIGTERM", "SIGINT"]) process.once(signal, () => void stop());
}

if (process.argv.includes("--once")) await showCrashes(import.meta.filename);
else await serve();
