// A host of the package for `bench/faults.js` and `bench/soak.js`: emits at a rate, delivers, and
// tells its parent about each emit. It runs as a process, a worker of node:cluster or a thread.
import { createRequire } from "node:module";
import { parentPort } from "node:worker_threads";
import { Cluster, Redis } from "ioredis";
import { createWebhooks } from "postbell";
import { postgresStorage } from "postbell/postgres";
import { redisStorage } from "postbell/redis";
import { sqliteStorage } from "postbell/sqlite";

/** A host that hangs is not to run out of memory by its own load. */
const MAX_UNANSWERED = 2_000;
const TICK_MS = 20;

const tell = (message) => (parentPort ? parentPort.postMessage(message) : process.send?.(message));

const OPEN = {
  sqlite: (options) => sqliteStorage(options),
  postgres: (options) => postgresStorage(options),
  redis({ client, cluster, ...options }) {
    if (!client && !cluster) return redisStorage(options);
    const ownClient = cluster ? new Cluster(cluster) : new Redis(client);
    ownClient.on("error", () => {});
    return redisStorage({ ...options, client: ownClient });
  },
};

let webhooks;
let timer;
let sent = 0;
let unanswered = 0;

const log = (level) => (fields, message) => {
  tell({ log: level, message: message ?? fields });
  if (process.env.BENCH_LOG === "1") console.error(level, message ?? "", fields);
};

function emit(accounts) {
  const number = sent++;
  if (unanswered >= MAX_UNANSWERED) {
    tell({ refused: "not tried" });
    return;
  }
  unanswered++;
  const event = {
    type: "patient.updated",
    account: `bench-${number % accounts}`,
    resource: {
      resourceType: "Patient",
      id: `p${number}`,
      text: { status: "generated", div: "x".repeat(300) },
    },
  };
  webhooks
    .emit(event)
    .then(
      ({ id, deliveries: [delivery] }) =>
        tell(delivery ? { promised: id, deliveryId: delivery.id } : { refused: "no webhook" }),
      (error) => tell({ refused: error.code ?? error.name }),
    )
    .finally(() => unanswered--);
}

async function isPending(id) {
  try {
    return (await webhooks.deliveries.get(id)).state === "pending";
  } catch (error) {
    if (error.code === "not_found") return false;
    throw error;
  }
}

const COMMANDS = {
  open({ storage: { kind, ...address }, webhooks: options }) {
    webhooks = createWebhooks({
      storage: OPEN[kind](address),
      access: { authenticate: () => null, canRead: () => true },
      destinations: { allowHttp: true, allowPrivateNetworks: true },
      logger: { debug() {}, info() {}, warn: log("warn"), error: log("error") },
      ...options,
    });
  },
  async register({ account, url }) {
    const { webhook } = await webhooks.registrations.create({ subscriber: { id: "bench", account }, url });
    return webhook.id;
  },
  start: () => webhooks.start(),
  /** Events that a busy process was late for are made up for. */
  emit({ perSecond, accounts }) {
    const begun = performance.now();
    sent = 0;
    timer = setInterval(() => {
      const due = Math.floor(((performance.now() - begun) * perSecond) / 1_000);
      while (sent < due) emit(accounts);
    }, TICK_MS);
  },
  pause: () => clearInterval(timer),
  stop(options) {
    clearInterval(timer);
    return webhooks.stop(options);
  },
  /** Returns the deliveries among these that the storage still has to make. */
  async listPending(ids) {
    const pending = [];
    for (const id of ids) if (await isPending(id)) pending.push(id);
    return pending;
  },
  stats: (webhookId) => webhooks.deliveries.stats(webhookId),
  /** Stores events in bulk, each for all webhooks of its account. */
  async fill({ accounts, events }) {
    const resource = {
      resourceType: "Patient",
      id: "p",
      text: { status: "generated", div: "x".repeat(300) },
    };
    for (let done = 0; done < events; done += 200) {
      const account = `backlog-${(done / 200) % accounts}`;
      const list = Array.from({ length: Math.min(200, events - done) }, () => ({
        type: "patient.updated",
        account,
        resource,
      }));
      await webhooks.emit(list);
    }
  },
  /** Opens the file with another build of SQLite, as a host might do, writes and closes it. */
  useOtherBuild({ build, file }) {
    const Database = createRequire(import.meta.url)(build);
    const database = new Database(file);
    database.exec("CREATE TABLE IF NOT EXISTS host_notes (t text)");
    database.close();
  },
  usage() {
    globalThis.gc?.();
    const { rss, heapUsed } = process.memoryUsage();
    return { rss, heapUsed, handles: process.getActiveResourcesInfo().length };
  },
};

async function answer({ number, command, value }) {
  try {
    tell({ number, value: await COMMANDS[command](value) });
  } catch (error) {
    tell({ number, error: `${error.code ?? error.name}: ${error.message}` });
  }
}

(parentPort ?? process).on("message", (message) => void answer(message));
if (!parentPort) process.once("disconnect", () => process.exit());
// A worker of node:cluster loses what it is sent before it listens.
tell({ isReady: true });
