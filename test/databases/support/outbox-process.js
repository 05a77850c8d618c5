// A host's process that moves events, and dies or stops at the step that CRASH_AT names: `<call>:<before|sent|after>`.
import mysql from "mysql2/promise";
import pg from "pg";
import { createWebhooks } from "postbell";
import { mysqlSource, outbox, pgSource } from "postbell/outbox";
import { redisStorage } from "postbell/redis";

const { DATABASE, TABLE, REDIS_URL, REDIS_PREFIX, CRASH_AT, SIGNAL } = process.env;
const { kind, address } = JSON.parse(DATABASE);

let hasCrashed = false;
const crash = () => {
  if (hasCrashed) return;
  hasCrashed = true;
  process.kill(process.pid, SIGNAL);
};

/** The same object, except that one of its methods crashes the process where it is told to. */
const crashing = (object, name) => {
  const [call, when] = CRASH_AT.split(":");
  if (call !== name) return object;
  return {
    ...object,
    async [call](...args) {
      if (when === "before") crash();
      const answer = object[call](...args);
      if (when === "sent") {
        // Data that was written to the socket in this turn is sent.
        await new Promise((resolve) => setImmediate(resolve));
        crash();
      }
      const result = await answer;
      if (when === "after" && (call !== "claim" || result.length > 0)) crash();
      return result;
    },
  };
};

const open = () => {
  if (kind === "postgres") {
    const pool = new pg.Pool({ ...address, user: "postgres", database: "postgres" });
    return { source: pgSource({ pool, table: TABLE }), end: () => pool.end() };
  }
  const pool = mysql.createPool({ ...address, user: "root", database: "host" });
  // The commit of a claim is a call of its own here.
  const getConnection = async () => {
    const connection = await pool.getConnection();
    const commit = { commit: () => connection.query("COMMIT") };
    const query = (sql) => (sql === "COMMIT" ? crashing(commit, "commit").commit() : connection.query(sql));
    return {
      query,
      execute: (...args) => connection.execute(...args),
      release: () => connection.release(),
      destroy: () => connection.destroy(),
    };
  };
  const given = {
    execute: (...args) => pool.execute(...args),
    query: (sql) => pool.query(sql),
    getConnection,
  };
  return { source: mysqlSource({ pool: given, table: TABLE }), end: () => pool.end() };
};

const { source, end } = open();
const storage = redisStorage({ url: REDIS_URL, prefix: REDIS_PREFIX });
const webhooks = createWebhooks({ storage, access: { authenticate: () => null, canRead: () => true } });
const box = outbox({
  webhooks: crashing({ emit: (event) => webhooks.emit(event) }, "emit"),
  source: ["claim", "remove"].reduce(crashing, source),
  batch: Number(process.env.BATCH ?? 100),
  pollMs: 20,
});
const close = async () => {
  await box.stop({ graceMs: 5_000 });
  await storage.close();
  await end();
  process.exit();
};
process.on("SIGTERM", () => void close());
await box.start();
