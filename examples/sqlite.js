// Events that survive a killed process, with nothing installed but Node: records and webhooks are
// in one SQLite file. Before Node 22.13: npm install libsql.
//
//   node examples/sqlite.js          serves on http://127.0.0.1:3000
//   node examples/sqlite.js --once   kills itself between record and event, and shows what is left
import { createServer } from "node:http";
import { bearer, createWebhooks } from "postbell";
import { nodeAdapter } from "postbell/node";
import { sqliteStorage } from "postbell/sqlite";
import { openDatabase } from "./support/open-database.js";
import { crashAt, showCrashes } from "./support/show-crashes.js";

const { FILE = "clinic.db", PORT = 3000, API_KEY = "demo-key", SUBSCRIBER_CA: ca } = process.env;

async function serve() {
  const storage = sqliteStorage({ file: FILE });
  const webhooks = createWebhooks({
    storage,
    access: {
      authenticate: (request) => (bearer(request) === API_KEY ? { id: "key-1", account: "clinic" } : null),
      canRead: () => true, // in earnest: may this subscriber read this record?
    },
    ...(ca && { destinations: { allowPrivateNetworks: true, ca } }),
  });

  await webhooks.start();
  // Another connection to the same file, for the host's transactions. The storage has created the
  // file, so that only its owner may read it.
  const records = await openDatabase(FILE);
  records.exec(
    "PRAGMA busy_timeout = 1000; CREATE TABLE IF NOT EXISTS patients (id TEXT PRIMARY KEY, name TEXT NOT NULL)",
  );

  /** Writes a record and its event in one transaction: both are there, or neither. */
  async function savePatient(id, name, crash) {
    records.exec("BEGIN IMMEDIATE");
    try {
      records.prepare("INSERT INTO patients VALUES (?, ?)").run(id, name);
      const resource = { resourceType: "Patient", id, name: [{ text: name }] };
      await webhooks.emit({ type: "patient.created", account: "clinic", resource }, { transaction: records });
      if (name === "") throw new RangeError("a patient has a name");
      crashAt("before the commit", crash);
      records.exec("COMMIT");
      crashAt("after the commit", crash);
    } catch (error) {
      records.exec("ROLLBACK");
      throw error;
    }
  }

  // One request at a time writes: a transaction must not mix with that of another request.
  let last = Promise.resolve();
  const api = nodeAdapter(webhooks, { prefix: "/api" });
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url, "http://localhost");
    const id = /^\/patients\/(\w+)$/.exec(pathname)?.[1];
    if (id === undefined) return api(request, response);
    const saving = last.then(() => savePatient(id, searchParams.get("name"), searchParams.get("crash")));
    last = saving.catch(() => {});
    saving.then(
      () => response.writeHead(204).end(),
      (error) => response.writeHead(error instanceof RangeError ? 400 : 503).end(error.message),
    );
  });

  server.listen(PORT, "127.0.0.1", () =>
    console.log(`Listening on http://127.0.0.1:${server.address().port}`),
  );

  const stop = async () => {
    server.close();
    await webhooks.stop();
    await storage.close();
    records.close();
  };
  for (const signal of ["SIGTERM", "SIGINT"]) process.once(signal, () => void stop());
}

if (process.argv.includes("--once")) await showCrashes(import.meta.filename);
else await serve();
