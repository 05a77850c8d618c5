// Faults of Redis: its server, the way to it, its clock.
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { generate } from "selfsigned";
import { freePort } from "../scripts/private-redis.js";
import { waitFor } from "./faults-load.js";
import { startCluster, startProxy, startRedis, startSink } from "./servers.js";

const HOST = "127.0.0.1";
const CLOCK_AHEAD = new URL("./clock-ahead.c", import.meta.url);
/** Each key takes that long to load, so that a small data set is LOADING for a while. */
const LOADED_KEYS = 80_000;
const KEY_LOAD_MICROS = 100;

async function openServer(options = {}) {
  const server = await startRedis({ persistence: "aof-always", ...options });
  return { server, storage: { kind: "redis", url: server.url }, close: server.stop };
}

/** A server behind a proxy. `target` is where new connections lead. */
async function openBehindProxy(options) {
  const { server, close } = await openServer(options);
  const target = { host: HOST, port: server.port };
  const proxy = await startProxy(target);
  return {
    server,
    target,
    proxy,
    storage: { kind: "redis", url: `redis://${HOST}:${proxy.port}` },
    async close() {
      await proxy.stop();
      await close();
    },
  };
}

async function openSwallowing() {
  const { server, target, proxy, ...scene } = await openBehindProxy();
  const sink = await startSink();
  return {
    ...scene,
    hurt() {
      target.port = sink.port;
      proxy.cutAll();
    },
    // The connections that were accepted meanwhile stay open, and nothing ever comes back on them.
    heal() {
      target.port = server.port;
    },
    async close() {
      sink.close();
      await scene.close();
    },
  };
}

async function openSlow() {
  const { proxy, ...scene } = await openBehindProxy();
  return {
    ...scene,
    hurt: () => proxy.mode({ delayMs: 100 }),
    heal: () => proxy.mode("pass"),
  };
}

/** The server is killed and comes back when it is healed. */
async function openKilled(options) {
  const { server, ...scene } = await openServer(options);
  return { ...scene, hurt: server.kill, heal: server.restart };
}

async function openLoading() {
  const { server, ...scene } = await openServer({
    args: ["--key-load-delay", `${KEY_LOAD_MICROS}`, "--loading-process-events-interval-bytes", "1024"],
  });
  await server.cli("DEBUG", "POPULATE", `${LOADED_KEYS}`, "filler", "100");
  await server.cli("BGREWRITEAOF");
  const isRewritten = async () => {
    const info = await server.cli("INFO", "persistence");
    return /aof_rewrite_in_progress:0/.test(info) && /aof_rewrite_scheduled:0/.test(info);
  };
  if (!(await waitFor(isRewritten, 60_000))) throw new Error("The data set was not written.");
  return {
    ...scene,
    faultMs: 0,
    hurt: server.kill,
    // Takes connections, and refuses commands, until all is loaded; resolves then.
    heal: server.restart,
  };
}

async function openAsleep() {
  const { server, ...scene } = await openServer();
  return { ...scene, faultMs: 0, hurt: () => server.cli("DEBUG", "SLEEP", "5") };
}

async function openTls() {
  const dir = mkdtempSync(join(tmpdir(), "postbell-faults-"));
  const paths = { key: join(dir, "key.pem"), cert: join(dir, "cert.pem") };
  const made = await generate([{ name: "commonName", value: "localhost" }], {
    keySize: 2048,
    extensions: [{ name: "subjectAltName", altNames: [{ type: 2, value: "localhost" }] }],
  });
  writeFileSync(paths.key, made.private);
  writeFileSync(paths.cert, made.cert);
  const port = await freePort();
  const files = [
    "--tls-cert-file",
    paths.cert,
    "--tls-key-file",
    paths.key,
    "--tls-ca-cert-file",
    paths.cert,
  ];
  const args = ["--tls-port", `${port}`, ...files, "--tls-auth-clients", "no"];
  const { close, ...scene } = await openKilled({ args });
  return {
    ...scene,
    storage: { kind: "redis", url: `rediss://localhost:${port}` },
    load: { settings: { env: { ...process.env, NODE_EXTRA_CA_CERTS: paths.cert } } },
    async close() {
      await close();
      rmSync(dir, { recursive: true });
    },
  };
}

async function openKeyPrefix() {
  const { server, ...scene } = await openServer();
  return { ...scene, storage: { kind: "redis", client: { port: server.port, keyPrefix: "app:" } } };
}

async function openCluster() {
  const cluster = await startCluster(3, "aof-always");
  return {
    storage: { kind: "redis", cluster: cluster.nodes },
    faultMs: 0,
    hurt: cluster.restart,
    close: cluster.stop,
  };
}

/**
 * The clock of the server jumps; its monotonic one does not. libfaketime cannot do it: it calls
 * itself without end when jemalloc, which Redis is built with, asks for the time at the start.
 */
async function openWrongClock() {
  const dir = mkdtempSync(join(tmpdir(), "postbell-faults-"));
  const file = join(dir, "is-ahead");
  const library = join(dir, "clock-ahead.so");
  try {
    execFileSync("cc", ["-shared", "-fPIC", "-o", library, CLOCK_AHEAD.pathname], { stdio: "ignore" });
  } catch {
    return { skip: "it needs a C compiler and Linux" };
  }
  Object.assign(process.env, { LD_PRELOAD: library, CLOCK_AHEAD_FILE: file });
  let opened;
  try {
    opened = await openServer();
  } finally {
    delete process.env.LD_PRELOAD;
    delete process.env.CLOCK_AHEAD_FILE;
  }
  const { server, ...scene } = opened;
  let jumped;
  return {
    ...scene,
    async hurt() {
      writeFileSync(file, "");
      await sleep(200);
      const [seconds] = (await server.cli("TIME")).split("\n");
      jumped = Math.round(seconds - Date.now() / 1_000);
    },
    heal: () => rmSync(file),
    note: () => `the clock of Redis was ${jumped} s ahead`,
    async close() {
      await scene.close();
      rmSync(dir, { recursive: true });
    },
  };
}

/** Starts a sentinel that gives a primary up after a second. */
async function startSentinel(primary) {
  const dir = mkdtempSync(join(tmpdir(), "postbell-sentinel-"));
  const port = await freePort();
  const config = join(dir, "sentinel.conf");
  const lines = [
    `port ${port}`,
    `bind ${HOST}`,
    `dir ${dir}`,
    `sentinel monitor bench ${HOST} ${primary.port} 1`,
    "sentinel down-after-milliseconds bench 1000",
    "sentinel failover-timeout bench 5000",
  ];
  writeFileSync(config, `${lines.join("\n")}\n`);
  const child = spawn("redis-server", [config, "--sentinel"], { stdio: "ignore" });
  const stop = () => {
    child.kill("SIGKILL");
    rmSync(dir, { recursive: true, force: true });
  };
  process.once("exit", stop);
  return { port, stop };
}

/** The primary hangs for 8 s, and Sentinel makes the replica the primary. */
async function openSentinel({ durability, failoverDetector = false }) {
  const args = ["--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1"];
  const primary = await startRedis({ persistence: "aof-always", args });
  const replica = await startRedis({
    persistence: "aof-always",
    args: [...args, "--replicaof", HOST, `${primary.port}`],
  });
  const sentinel = await startSentinel(primary);
  const isInStep = async () => /master_link_status:up/.test(await replica.cli("INFO", "replication"));
  if (!(await waitFor(isInStep, 10_000))) throw new Error("The replica did not follow.");
  // Sentinel learns of replicas when it looks the second time, after 10 s.
  await sleep(11_000);
  const sentinels = [{ host: HOST, port: sentinel.port }];
  return {
    storage: { kind: "redis", durability, client: { sentinels, name: "bench", failoverDetector } },
    hurt: () => process.kill(primary.pid, "SIGSTOP"),
    heal: () => process.kill(primary.pid, "SIGCONT"),
    async note() {
      const role = (await replica.cli("ROLE")).split("\n")[0];
      return `the replica is ${role} at the end`;
    },
    async close() {
      sentinel.stop();
      await Promise.all([primary.stop(), replica.stop()]);
    },
  };
}

export const redisFaults = [
  {
    name: "redis-sentinel",
    what: "Sentinel: the primary hangs for 8 s (SIGSTOP), the replica takes over",
    open: () => openSentinel({ durability: "standard" }),
  },
  {
    name: "redis-sentinel-replicated",
    what: 'the same with `durability: "replicated"`',
    open: () => openSentinel({ durability: "replicated" }),
  },
  {
    name: "redis-sentinel-detector",
    what: "the same with `failoverDetector` of ioredis",
    open: () => openSentinel({ durability: "standard", failoverDetector: true }),
  },
  {
    name: "redis-swallow",
    what: "for 8 s, a balancer accepts connections and swallows what comes",
    open: openSwallowing,
  },
  { name: "redis-latency", what: "a round trip takes 200 ms more for 8 s", open: openSlow },
  {
    name: "redis-loading",
    what: "the server is killed and is LOADING for some 10 s",
    open: openLoading,
  },
  { name: "redis-sleep", what: "DEBUG SLEEP 5", open: openAsleep },
  { name: "redis-tls", what: "over TLS, the server is killed for 8 s", open: openTls },
  {
    name: "redis-key-prefix",
    what: "the host's client has a `keyPrefix`, which is refused",
    open: openKeyPrefix,
  },
  {
    name: "redis-clock",
    what: "the clock of the server is an hour ahead for 8 s",
    open: openWrongClock,
  },
  {
    name: "redis-killed",
    what: "the server is killed for 8 s, `appendfsync always`",
    open: () => openKilled(),
  },
  { name: "redis-cluster", what: "all three nodes of a cluster are killed and started", open: openCluster },
];
