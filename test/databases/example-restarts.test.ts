/** The examples go on when the server behind them is restarted, and deliver what comes after it. */

import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { join, resolve } from "node:path";
import pg from "pg";
import { describe, expect, it, onTestFinished } from "vitest";
import { pgSource } from "../../storage/outbox/index.js";
import { type Receiver, startReceiver } from "../faults/support/redis-service.js";
import { eventually } from "../support/eventually.js";
import { startCluster, startRedis } from "../support/redis-server.js";
import { type DatabaseServer, startDatabase } from "./support/database-server.js";

const root = resolve(import.meta.dirname, "..", "..");

interface RunningExample {
  /** Waits for a condition. Rejects with the output if the example ends. */
  readonly until: (condition: () => boolean | Promise<boolean>, what: string) => Promise<void>;
  /** Resolves with what a pattern finds in the output once it is there. */
  readonly says: (pattern: RegExp) => Promise<string>;
  /** Ends the example as its operator does. Resolves with its exit code. */
  readonly end: (signal: NodeJS.Signals) => Promise<number | null>;
}

/** Starts an example as its first comment tells a reader to. */
function startExample(name: string, env: NodeJS.ProcessEnv): RunningExample {
  const child: ChildProcess = spawn(process.execPath, [join(root, "examples", name)], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const exit = once(child, "exit");
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream?.on("data", (chunk: Buffer) => {
      output += chunk.toString();
    });
  const until: RunningExample["until"] = (condition, what) =>
    eventually(() => {
      if (child.exitCode !== null || child.signalCode !== null)
        throw new Error(`${name} has ended:\n${output}`);
      return condition();
    }, what);
  return {
    until,
    async says(pattern) {
      await until(() => pattern.test(output), `${name} says ${pattern}`);
      return pattern.exec(output)?.[1] ?? "";
    },
    async end(signal) {
      child.kill(signal);
      await exit;
      return child.exitCode;
    },
  };
}

interface Call {
  readonly key?: string;
  readonly body?: unknown;
}

/** Sends a request of JSON. Resolves with the status; 0 if the host does not respond. */
async function call(method: string, url: string, { key = "demo-key", body }: Call = {}) {
  const headers = {
    authorization: `Bearer ${key}`,
    ...(body === undefined ? {} : { "content-type": "application/json" }),
  };
  const request = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
  const response = await fetch(url, request).catch(() => undefined);
  const text = (await response?.text()) ?? "";
  const isJson = response?.headers.get("content-type")?.includes("json") === true;
  return { status: response?.status ?? 0, body: isJson ? JSON.parse(text) : text };
}

async function startPostgres() {
  const server = await startDatabase("postgres");
  onTestFinished(() => server.stop());
  if (!("port" in server.address)) throw new Error("Postgres listens on a port.");
  return { ...server, url: `postgres://postgres@127.0.0.1:${server.address.port}/postgres` };
}

async function startDurableRedis() {
  const server = await startRedis({ persistence: "aof-always" });
  onTestFinished(() => server.stop());
  return server;
}

async function openReceiver(base: string, receiver: Receiver): Promise<void> {
  const { body } = await call("POST", `${base}/api/v1/webhooks`, { body: { url: receiver.url("") } });
  receiver.trust(body.webhook.id, body.secret);
}

async function startEndpoint(): Promise<Receiver> {
  const receiver = await startReceiver();
  onTestFinished(() => receiver.close());
  return receiver;
}

/** Restarts in order, which tells the clients, and then as after a power cut. */
const restarts = (server: Pick<DatabaseServer, "kill" | "restart">) =>
  (["SIGINT", "SIGKILL"] as const).map((signal) => async () => {
    await server.kill(signal);
    await server.restart();
  });

describe("Postgres is restarted under", () => {
  it("postgres.js, while its connections are idle, and while one is lent for a transaction", async () => {
    const [server, receiver] = await Promise.all([startPostgres(), startEndpoint()]);
    const env = { DATABASE_URL: server.url, PORT: "0", SUBSCRIBER_CA: receiver.ca };
    const example = startExample("postgres.js", env);
    const base = await example.says(/Listening on (\S+)/);
    await openReceiver(base, receiver);
    const save = async (id: string) => (await call("PUT", `${base}/patients/${id}?name=Ada`)).status;
    const deliverOne = async (): Promise<void> => {
      const before = receiver.arrivals.length;
      await example.until(async () => (await save(randomUUID())) === 204, "a patient is saved");
      await example.until(() => receiver.arrivals.length > before, "the notification arrives");
    };
    const statement = async (text: string): Promise<number> => {
      const client = new pg.Client({ connectionString: server.url });
      await client.connect();
      const { rowCount } = await client.query(text);
      await client.end();
      return rowCount ?? 0;
    };
    await deliverOne();
    for (const restart of restarts(server)) {
      await restart();
      await deliverOne();
    }
    for (const restart of restarts(server)) {
      // A prepared transaction keeps its lock through a restart, so that no waiting one can commit.
      await statement("BEGIN; LOCK TABLE patients; PREPARE TRANSACTION 'lock'");
      const saving = save(randomUUID());
      const waiting = "SELECT 1 FROM pg_locks WHERE relation = 'patients'::regclass AND NOT granted";
      await example.until(async () => (await statement(waiting)) > 0, "the host's transaction waits");
      await restart();
      expect(await saving).toBe(503);
      await statement("ROLLBACK PREPARED 'lock'");
      await deliverOne();
    }
    expect(await example.end("SIGTERM")).toBe(0);
  });

  it("production.js, and then its Redis", async () => {
    const [server, redis, receiver] = await Promise.all([
      startPostgres(),
      startDurableRedis(),
      startEndpoint(),
    ]);
    const env = { DATABASE_URL: server.url, REDIS_URL: redis.url, PORT: "0", SUBSCRIBER_CA: receiver.ca };
    const example = startExample("production.js", env);
    const base = await example.says(/Listening on (\S+)/);
    await openReceiver(base, receiver);
    const deliverOne = async (): Promise<void> => {
      const before = receiver.arrivals.length;
      const save = () => call("PUT", `${base}/patients/p1`, { body: { name: "Ada" } });
      await example.until(async () => (await save()).status === 204, "a patient is saved");
      await example.until(() => receiver.arrivals.length > before, "the notification arrives");
    };
    await deliverOne();
    for (const restart of [...restarts(server), () => redis.kill().then(redis.restart), redis.restart]) {
      await restart();
      await deliverOne();
    }
    expect(await example.end("SIGTERM")).toBe(0);
  });

  it("outbox.js", async () => {
    const server = await startPostgres();
    const example = startExample("outbox.js", { DATABASE_URL: server.url });
    await example.says(/(Still running)/);
    const pool = new pg.Pool({ connectionString: server.url });
    onTestFinished(() => pool.end());
    const source = pgSource({ pool });
    const moveOne = async (): Promise<void> => {
      const client = await pool.connect();
      const resource = { resourceType: "Patient", id: "p4" };
      await source.add(client, { type: "patient.updated", account: "clinic", resource });
      client.release();
      await example.until(async () => (await source.stats()).waiting === 0, "the event is emitted");
      expect((await source.stats()).parked).toBe(0);
    };
    for (const restart of restarts(server)) {
      await restart();
      await moveOne();
    }
    expect(await example.end("SIGINT")).toBe(0);
  });
});

describe("Redis is restarted under", () => {
  it("two-processes.js", async () => {
    const redis = await startDurableRedis();
    const example = startExample("two-processes.js", { REDIS_URL: redis.url });
    const log = await example.says(/curl -s (\S+\/log\/\S+)/);
    const isDelivered = async (eventId: string): Promise<boolean> => {
      const { body } = await call("GET", log);
      return body.items?.some(
        (delivery: { eventId: string; state: string }) =>
          delivery.eventId === eventId && delivery.state === "delivered",
      );
    };
    for (const restart of [() => redis.kill().then(redis.restart), redis.restart]) {
      await restart();
      let events: readonly string[] = [];
      await example.until(async () => {
        const { status, body } = await call("POST", new URL("/patients", log).href, { body: ["p13"] });
        events = status === 200 ? body.events : [];
        return events.length === 1;
      }, "an event is emitted");
      await example.until(() => isDelivered(events[0] ?? ""), "it is delivered");
    }
    expect(await example.end("SIGINT")).toBe(0);
  });

  it("cluster.js, all masters at once", async () => {
    const cluster = await startCluster(3, "aof-always");
    onTestFinished(() => cluster.stop());
    const nodes = cluster.nodes.map(({ host, port }) => `${host}:${port}`).join(",");
    const example = startExample("cluster.js", { REDIS_CLUSTER: nodes });
    const webhooks = await example.says(/curl -s (\S+\/webhooks) /);
    const key = "key-a";
    const [webhook] = (await call("GET", webhooks, { key })).body.webhooks;
    await cluster.restart();
    let sent = "";
    await example.until(async () => {
      const { status, body } = await call("POST", `${webhooks}/${webhook.id}/test`, { key });
      sent = body.id;
      return status === 202;
    }, "a test event is sent");
    await example.until(async () => {
      const { body } = await call("GET", `${webhooks}/${webhook.id}/deliveries/${sent}`, { key });
      return body.state === "delivered";
    }, "it is delivered");
    expect(await example.end("SIGINT")).toBe(0);
  });
});
