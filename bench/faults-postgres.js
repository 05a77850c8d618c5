// Faults of Postgres: its server, the way to it, what its operators do.
import { execFile, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import pg from "pg";
import { postgresStorage } from "postbell/postgres";
import { findProgram } from "../scripts/databases-for-tests.js";
import { freePort } from "../scripts/private-redis.js";
import { waitFor } from "./faults-load.js";
import { startDatabase, startProxy } from "./servers.js";

const HOST = "127.0.0.1";
const urlOf = (port, database = "postgres") => `postgres://postgres@${HOST}:${port}/${database}`;

async function connect(url) {
  const client = new pg.Client(url);
  client.on("error", () => {});
  await client.connect();
  return client;
}

export async function openPostgres() {
  const server = await startDatabase("postgres");
  const { port } = server.address;
  const storage = postgresStorage({ url: urlOf(port) });
  await storage.migrate();
  await storage.close();
  return { server, port, storage: { kind: "postgres", url: urlOf(port) }, close: server.stop };
}

/** A server and a connection that hurts it. */
async function openWithClient() {
  const scene = await openPostgres();
  const client = await connect(urlOf(scene.port));
  return {
    ...scene,
    query: async (text) => (await client.query(text)).rows,
    close: () => client.end().then(scene.close),
  };
}

async function openBehindProxy() {
  const scene = await openWithClient();
  const target = { host: HOST, port: scene.port };
  const proxy = await startProxy(target);
  return {
    ...scene,
    target,
    proxy,
    storage: { kind: "postgres", url: urlOf(proxy.port) },
    close: () => proxy.stop().then(scene.close),
  };
}

/** The connections stay open on both sides for ever, and nothing passes on them any more. */
async function openHalfOpen() {
  const { query, proxy, ...scene } = await openBehindProxy();
  return {
    ...scene,
    async hurt() {
      await proxy.mode("accept-only");
      proxy.freezeAll();
    },
    heal: () => proxy.mode("pass"),
    async note() {
      const [{ count }] = await query(
        `SELECT count(*) FROM pg_stat_activity WHERE application_name = 'postbell'
          AND state LIKE 'idle in transaction%' AND state_change < now() - interval '5 s'`,
      );
      return `${count} idle in transaction for 5 s at the end`;
    },
  };
}

/** Other clients take each connection that the server has; those of the workers end. */
async function openExhausted() {
  const { query, ...scene } = await openWithClient();
  const clients = [];
  const takeAll = async () => {
    for (;;) {
      try {
        clients.push(await connect(scene.storage.url));
      } catch {
        return;
      }
    }
  };
  return {
    ...scene,
    async hurt() {
      await takeAll();
      await query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'postbell'",
      );
      await takeAll();
    },
    heal: () => Promise.all(clients.map((client) => client.end())),
    note: () => `${clients.length} connections of others`,
  };
}

async function openVacuum() {
  const { query, ...scene } = await openWithClient();
  let rounds = 0;
  return {
    ...scene,
    faultMs: 0,
    async hurt() {
      const tables = await query("SELECT tablename FROM pg_tables WHERE schemaname = 'postbell'");
      const names = tables.map(({ tablename }) => `postbell."${tablename}"`).join();
      const endAt = performance.now() + 8_000;
      for (; performance.now() < endAt; rounds++) await query(`VACUUM FULL ${names}`);
    },
    note: () => `${rounds} times all tables`,
  };
}

async function openRenamed() {
  const { query, ...scene } = await openWithClient();
  return {
    ...scene,
    hurt: () => query("ALTER SCHEMA postbell RENAME TO postbell_away"),
    heal: () => query("ALTER SCHEMA postbell_away RENAME TO postbell"),
  };
}

/** Postgres ends in order, or is killed, and is back 8 s later. */
async function openStopped(signal) {
  const { server, ...scene } = await openPostgres();
  return { ...scene, hurt: () => server.kill(signal), heal: server.restart };
}

/** Postgres does not run as root: there it runs as the user that its package created. */
function findUser() {
  if (process.getuid() !== 0) return {};
  const idOf = (what) => Number(execFileSync("id", [what, "postgres"], { encoding: "utf8" }));
  return { uid: idOf("-u"), gid: idOf("-g") };
}

/** Copies the server and follows it. */
async function startReplica(primaryPort) {
  const user = findUser();
  const dir = mkdtempSync(join(tmpdir(), "postbell-replica-"));
  if (user.uid !== undefined) chownSync(dir, user.uid, user.gid);
  const as = { ...user, cwd: dir, stdio: "ignore" };
  const from = ["-h", HOST, "-p", `${primaryPort}`, "-U", "postgres"];
  await promisify(execFile)(
    findProgram("pg_basebackup"),
    [...from, "-D", `${dir}/data`, "-R", "-c", "fast"],
    as,
  );
  const port = await freePort();
  const settings = [
    `listen_addresses=${HOST}`,
    "unix_socket_directories=",
    "max_connections=60",
    "max_prepared_transactions=2",
  ];
  const args = settings.flatMap((setting) => ["-c", setting]);
  const child = spawn(findProgram("postgres"), ["-D", `${dir}/data`, "-p", `${port}`, ...args], as);
  const end = () => child.kill("SIGQUIT");
  process.once("exit", end);
  return {
    port,
    async stop() {
      process.removeListener("exit", end);
      end();
      await once(child, "exit");
      rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/** The server is killed, and 8 s later its replica takes over. */
async function openFailOver({ isSynchronous }) {
  const { query, server, target, ...scene } = await openBehindProxy();
  const replica = await startReplica(scene.port);
  const follows = async () =>
    (await query("SELECT FROM pg_stat_replication WHERE state = 'streaming'")).length > 0;
  if (!(await waitFor(follows, 20_000))) throw new Error("The replica did not follow.");
  if (isSynchronous) {
    await query("ALTER SYSTEM SET synchronous_standby_names = '*'");
    await query("SELECT pg_reload_conf()");
  }
  return {
    ...scene,
    hurt: () => server.kill(),
    async heal() {
      const client = await connect(urlOf(replica.port));
      await client.query("SELECT pg_promote()");
      await client.end();
      target.port = replica.port;
    },
    async close() {
      await replica.stop();
      await scene.close();
    },
  };
}

/** A backup is made and restored next to the database that is in use. */
async function openBackup() {
  const { query, port, ...scene } = await openWithClient();
  const dir = mkdtempSync(join(tmpdir(), "postbell-faults-"));
  const file = join(dir, "backup");
  const at = ["-h", HOST, "-p", `${port}`, "-U", "postgres"];
  const execute = (program, args) => promisify(execFile)(findProgram(program), [...at, ...args]);
  let note;
  return {
    ...scene,
    faultMs: 0,
    async hurt(load) {
      const promised = load.promised.size;
      await execute("pg_dump", ["-Fc", "-n", "postbell", "-f", file, "postgres"]);
      await query("CREATE DATABASE restored");
      await execute("pg_restore", ["-d", "restored", file]);
      const client = await connect(urlOf(port, "restored"));
      const { rows } = await client.query("SELECT count(*) FROM postbell.events");
      await client.end();
      note = `${promised} events promised before the backup, ${rows[0].count} in it`;
    },
    note: () => note,
    close: () => scene.close().then(() => rmSync(dir, { recursive: true })),
  };
}

export const postgresFaults = [
  {
    name: "postgres-half-open",
    what: "for 8 s nothing passes; the connections from before stay open and dead",
    open: openHalfOpen,
  },
  {
    name: "postgres-connections",
    what: "for 8 s others hold all of `max_connections`, those of the workers end",
    open: openExhausted,
  },
  { name: "postgres-vacuum", what: "VACUUM FULL of all tables in a loop for 8 s", open: openVacuum },
  { name: "postgres-renamed", what: "the schema is renamed for 8 s", open: openRenamed },
  {
    name: "postgres-failover",
    what: "the server is killed, a synchronous replica takes over after 8 s",
    open: () => openFailOver({ isSynchronous: true }),
  },
  {
    name: "postgres-failover-async",
    what: "the same with an asynchronous replica",
    open: () => openFailOver({ isSynchronous: false }),
  },
  { name: "postgres-restart", what: "an orderly restart that takes 8 s", open: () => openStopped("SIGINT") },
  { name: "postgres-killed", what: "the server is killed for 8 s", open: () => openStopped("SIGKILL") },
  { name: "postgres-backup", what: "backup and restore during the load", open: openBackup },
];
