// Faults on the way to endpoints, and of the hosts themselves: names, connections, stops, crashes.
import { execFileSync } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { startEndpoint, startWorker } from "./faults-load.js";
import { openPostgres } from "./faults-postgres.js";
import { openFolder } from "./faults-sqlite.js";
import { startRedis } from "./servers.js";

const NAME_SERVERS = ["127.0.0.71", "127.0.0.72", "127.0.0.73"];
const MOVED = "127.0.0.2";
const PENDING = Number(process.env.BENCH_PENDING ?? 1_000_000);
const BACKLOG_WEBHOOKS = 10;

/** Answers every name with `dns.address`. It is silent about the types of record in `dns.drops`. */
async function startNameServer(ip, dns) {
  const socket = createSocket("udp4").on("message", (query, from) => {
    let end = 12;
    while (query[end]) end += query[end] + 1;
    const type = query.readUInt16BE(end + 1) === 1 ? "A" : "other";
    if (dns.drops.has(type)) return;
    const id = query.subarray(0, 2);
    const head = Buffer.from([0x81, 0x80, 0, 1, 0, type === "A" ? 1 : 0, 0, 0, 0, 0]);
    const record = type === "A" ? [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4, ...dns.address.split(".")] : [];
    socket.send(
      Buffer.concat([id, head, query.subarray(12, end + 5), Buffer.from(record)]),
      from.port,
      from.address,
    );
  });
  socket.bind(53, ip);
  await once(socket, "listening");
  return socket;
}

/** Workers that ask name servers of ours: a file is mounted over their /etc/resolv.conf alone. */
async function openNames(servers) {
  const { storage, folder, close } = openFolder();
  const file = join(folder, "resolv.conf");
  const ips = NAME_SERVERS.slice(0, servers);
  writeFileSync(file, ips.map((ip) => `nameserver ${ip}\n`).join(""));
  const mount = `mount --bind ${file} /etc/resolv.conf`;
  try {
    execFileSync("unshare", ["-m", "sh", "-c", mount], { stdio: "ignore" });
  } catch {
    close();
    return { skip: "only root may mount a resolv.conf" };
  }
  const dns = { drops: new Set(), address: "127.0.0.1" };
  const sockets = await Promise.all(ips.map((ip) => startNameServer(ip, dns)));
  const shell = ["-m", "sh", "-c", `${mount} && exec "${process.execPath}" "$0" "$@"`];
  return {
    dns,
    storage,
    load: {
      settings: { execPath: "unshare", execArgv: shell },
      urlOf: ({ port }, index) => `http://hooks-${index}.example.test:${port}`,
    },
    close() {
      for (const socket of sockets) socket.close();
      close();
    },
  };
}

/** How the endpoints are judged, and how many attempts failed. */
async function describeHealth({ workers, webhookIds }) {
  const states = new Set();
  let failed = 0;
  for (const id of webhookIds) {
    const { health, lastDay } = await workers[0].call("stats", id);
    states.add(health.status);
    failed += lastDay.attempts - lastDay.succeeded;
  }
  return `endpoints ${[...states].join(", ")}; ${failed} failed attempts`;
}

async function openDropped(servers) {
  const { dns, ...scene } = await openNames(servers);
  return {
    ...scene,
    note: describeHealth,
    hurt({ endpoint }) {
      // Without kept connections, each request needs a lookup.
      endpoint.keepsConnections = false;
      dns.drops.add("other");
    },
    heal() {},
  };
}

async function openOutage() {
  const { dns, ...scene } = await openNames(1);
  return {
    ...scene,
    faultMs: 20_000,
    note: describeHealth,
    hurt({ endpoint }) {
      endpoint.keepsConnections = false;
      dns.drops = new Set(["A", "other"]);
    },
    heal() {
      dns.drops.clear();
    },
  };
}

async function openMoved() {
  const { dns, ...scene } = await openNames(1);
  let there;
  return {
    ...scene,
    faultMs: 0,
    patienceMs: 100_000,
    isFlow: ({ host }) => host === MOVED,
    async hurt({ endpoint }) {
      there = await startEndpoint(MOVED, endpoint.port, endpoint.arrivals);
      dns.address = MOVED;
    },
    note: ({ endpoint }) => {
      const last = endpoint.arrivals.findLast(({ host }) => host !== MOVED);
      const first = endpoint.arrivals.find(({ host }) => host === MOVED);
      return `the old address was used for ${((last.at - first.at) / 1_000).toFixed(1)} s after the new one`;
    },
    close() {
      there?.close();
      scene.close();
    },
  };
}

/** Each of 120 hosts gets a request from each worker every 2 s, as its connection is closed. */
function openIdle() {
  const hosts = 120;
  const scene = openFolder();
  return {
    ...scene,
    load: {
      endpoints: hosts,
      listenOn: "0.0.0.0",
      urlOf: ({ port }, index) => `http://127.0.1.${index + 1}:${port}`,
    },
    hurt: ({ endpoint }) => endpoint.closeIdleAfter(2_000),
    faultMs: 20_000,
    heal: ({ endpoint }) => endpoint.closeIdleAfter(65_000),
    note: describeHealth,
  };
}

/** The endpoint hangs, and each worker is stopped past its grace and followed by another. */
function openStop() {
  return {
    ...openFolder(),
    faultMs: 5_000,
    hurt({ endpoint }) {
      endpoint.status = undefined;
    },
    async heal(load) {
      for (const [index, worker] of load.workers.entries()) {
        await worker.call("stop", { graceMs: 500 });
        if (index === load.workers.length - 1) load.endpoint.status = 200;
        await load.replace(index);
      }
    },
  };
}

/** One of two workers crashes; what it was sending is leased to it for a minute. */
const openCrash = (host) => ({
  ...openFolder(),
  load: { host },
  faultMs: 0,
  hurt: (load) => load.replace(0),
});

/** Deliveries of another account wait when the workers start. */
async function openPending(open) {
  const scene = await open();
  const limits = { pendingPerAccount: 2 * PENDING };
  // Redis has a bound for all accounts too.
  if (scene.storage.kind === "redis") limits.pending = 2 * PENDING;
  const storage = { ...scene.storage, limits };
  const endpoint = await startEndpoint();
  const worker = startWorker(() => {});
  await worker.call("open", { storage });
  for (let index = 0; index < BACKLOG_WEBHOOKS; index++)
    await worker.call("register", { account: "backlog-0", url: `http://127.0.0.1:${endpoint.port}/backlog` });
  const startedAt = performance.now();
  await worker.call("fill", { accounts: 1, events: PENDING / BACKLOG_WEBHOOKS }, 600_000);
  const seconds = Math.round((performance.now() - startedAt) / 1_000);
  await worker.kill();
  return {
    ...scene,
    storage,
    beforeMs: 0,
    faultMs: 0,
    load: { endpoint },
    note: () => `${PENDING} stored in ${seconds} s, ${endpoint.backlog} of them delivered`,
  };
}

async function openRedis() {
  const { url, stop } = await startRedis({ persistence: "aof-everysec" });
  return { storage: { kind: "redis", url }, close: stop };
}

export const outboundFaults = [
  {
    name: "dns-dropped-1",
    what: "the name server drops AAAA queries, no connection is kept",
    open: () => openDropped(1),
  },
  { name: "dns-dropped-3", what: "three name servers drop AAAA queries", open: () => openDropped(3) },
  { name: "dns-outage", what: "the name server is silent for 20 s, no connection is kept", open: openOutage },
  { name: "dns-moved", what: "the name gets another address, the old one goes on", open: openMoved },
  {
    name: "endpoint-idle",
    what: "120 hosts close connections that are idle for 2 s, for 20 s",
    open: openIdle,
  },
  {
    name: "stop-grace",
    what: "the endpoint hangs; `stop` past its grace, then the next process",
    open: openStop,
  },
  { name: "crash-process", what: "a worker is killed and replaced", open: () => openCrash("process") },
  { name: "crash-cluster", what: "the same under node:cluster", open: () => openCrash("cluster") },
  { name: "crash-thread", what: "the same in worker_threads", open: () => openCrash("thread") },
  {
    name: "pending-postgres",
    what: `${PENDING} deliveries wait at the start, Postgres`,
    open: () => openPending(openPostgres),
  },
  {
    name: "pending-redis",
    what: `${PENDING} deliveries wait at the start, Redis`,
    open: () => openPending(openRedis),
  },
];
