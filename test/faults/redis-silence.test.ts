/**
 * Connections to Redis that are open and lead nowhere: behind a balancer that accepts and forgets,
 * behind a firewall that has dropped them, and to a master that hangs while another replaced it.
 * Every kind of client leaves them by itself.
 */

import { Cluster as Cluster6, Redis as Redis6 } from "ioredis";
import { Cluster as Cluster5, Redis as Redis5 } from "ioredis5";
import { afterAll, beforeAll, describe, expect, type TestContext, test } from "vitest";
import type { RedisStorageOptions } from "../../storage/redis/index.js";
import { freshPrefix } from "../support/redis.js";
import {
  type RedisCluster,
  type RedisServer,
  startCluster,
  startRedis,
  startSentinels,
} from "../support/redis-server.js";
import { startProxy, type TcpProxy } from "../support/tcp-proxy.js";
import {
  printFigures,
  type Receiver,
  type Service,
  startReceiver,
  startService,
  WHOLE_BOOKS,
} from "./support/redis-service.js";
import { eventually } from "./support/store-driver.js";

const HOST = "127.0.0.1";
/** A connection that is never given up stays for ever, so this may be long. */
const RESUMED_MS = 120_000;

let redis: RedisServer;
let cluster: RedisCluster;
let receiver: Receiver;
beforeAll(async () => {
  [redis, cluster, receiver] = await Promise.all([startRedis(), startCluster(2), startReceiver()]);
});
afterAll(async () => {
  await Promise.all([redis.stop(), cluster.stop(), receiver.close()]);
});

/** Opens a client through proxies, one for each server, in the order of the servers. */
type Connect = (ports: readonly number[]) => RedisStorageOptions | { readonly client: unknown };

const ONE_SERVER: readonly (readonly [string, Connect])[] = [
  ["the storage's own client", ([port]) => ({ url: `redis://${HOST}:${port}` })],
  ["a client of ioredis 5", ([port = 0]) => ({ client: new Redis5(port, HOST) })],
  ["a client of ioredis 6", ([port = 0]) => ({ client: new Redis6(port, HOST) })],
];

/** Maps the addresses that the nodes announce to those of the proxies. */
const throughProxies = (ports: readonly number[]) => {
  const reached = ports.map((port) => ({ host: HOST, port }));
  const named = cluster.nodes.map(({ port }, index) => [`${HOST}:${port}`, reached[index]]);
  return [reached, { natMap: Object.fromEntries(named) }] as const;
};

const CLUSTERS: readonly (readonly [string, Connect])[] = [
  ["a Cluster of ioredis 5", (ports) => ({ client: new Cluster5(...throughProxies(ports)) })],
  ["a Cluster of ioredis 6", (ports) => ({ client: new Cluster6(...throughProxies(ports)) })],
];

async function startThrough(
  connect: Connect,
  servers: readonly { readonly port: number }[],
  { onTestFinished }: Pick<TestContext, "onTestFinished">,
) {
  const proxies = await Promise.all(servers.map(({ port }) => startProxy({ host: HOST, port })));
  const prefix = freshPrefix();
  const options = connect(proxies.map(({ port }) => port)) as RedisStorageOptions;
  options.client?.on("error", () => {});
  const service = await startService({ redis: { ...options, prefix }, receiver });
  onTestFinished(async () => {
    await service.stop();
    options.client?.disconnect();
    await Promise.all(proxies.map((proxy) => proxy.stop()));
  });
  await service.register(1);
  await service.emit();
  await service.drained();
  return { service, proxies, prefix };
}

/** Emits until that succeeds, and expects that everything arrives. */
async function expectToResume(fault: string, service: Service): Promise<void> {
  const begin = performance.now();
  await service.emitSurely();
  const ms = Math.round(performance.now() - begin);
  await service.drained(RESUMED_MS);
  const figures = await service.figures();
  printFigures(fault, figures, `resumed after ${ms} ms`);
  expect(figures).toMatchObject({ lost: 0, books: WHOLE_BOOKS });
}

/** Waits until Redis counts so many connections that listen for notifications. */
async function expectListeners(prefix: string, count: number): Promise<void> {
  const counts = async (): Promise<boolean> =>
    (await redis.cli("PUBSUB", "NUMSUB", `{${prefix}}:notifications`)).endsWith(`\n${count}`);
  await eventually(counts, { ms: RESUMED_MS, what: "the process listens again" });
}

/** Cuts all connections, and lets those that follow lead nowhere for ever. */
async function replaceByDeadOnes(proxies: readonly TcpProxy[]): Promise<void> {
  const count = (): number => proxies.reduce((sum, proxy) => sum + proxy.connections(), 0);
  for (const proxy of proxies) await proxy.mode("accept-only");
  const before = count();
  for (const proxy of proxies) proxy.cutAll();
  // One for commands, one that listens.
  await eventually(() => count() >= before + 2, { ms: RESUMED_MS, what: "two new connections" });
  for (const proxy of proxies) await proxy.mode("pass");
}

describe("connections that were opened while a balancer accepted and forwarded nothing", () => {
  test.concurrent.for(ONE_SERVER)(
    "of %s: both are given up, deliveries go on, and the process is notified again",
    async ([kind, connect], context) => {
      const { service, proxies, prefix } = await startThrough(connect, [redis], context);
      await replaceByDeadOnes(proxies);
      await expectToResume(`accept-only, ${kind}`, service);
      await expectListeners(prefix, 1);
    },
  );

  test.concurrent.for(CLUSTERS)(
    "of %s are given up, and deliveries go on",
    async ([kind, connect], context) => {
      const { service, proxies } = await startThrough(connect, cluster.nodes, context);
      await replaceByDeadOnes(proxies);
      await expectToResume(`accept-only, ${kind}`, service);
    },
  );
});

describe("open connections that a firewall has forgotten", () => {
  test.concurrent.for(ONE_SERVER)(
    "of %s: both are given up, deliveries go on, and the process is notified again",
    async ([kind, connect], context) => {
      const { service, proxies, prefix } = await startThrough(connect, [redis], context);
      for (const proxy of proxies) proxy.freezeAll();
      await expectToResume(`frozen, ${kind}`, service);
      // The server still has the connection that was forgotten.
      await expectListeners(prefix, 2);
    },
  );

  test.concurrent.for(CLUSTERS)(
    "of %s are given up, and deliveries go on",
    async ([kind, connect], context) => {
      const { service, proxies } = await startThrough(connect, cluster.nodes, context);
      for (const proxy of proxies) proxy.freezeAll();
      await expectToResume(`frozen, ${kind}`, service);
    },
  );
});

describe("a master that hangs and that Sentinels replace", () => {
  test.for([
    ["a client of ioredis 5", Redis5, {}, "standard"],
    ["a client of ioredis 6", Redis6, {}, "standard"],
    ["a client with failoverDetector", Redis6, { failoverDetector: true }, "standard"],
    ["durability replicated", Redis6, {}, "replicated"],
  ] as const)("is left by %s while it still hangs", async ([kind, Redis, options, durability], context) => {
    const set = await startSentinels();
    const { sentinels, name, master } = set;
    const client = new (Redis as typeof Redis6)({ sentinels: [...sentinels], name, ...options });
    client.on("error", () => {});
    const service = await startService({
      redis: { client: client as RedisStorageOptions["client"], durability },
      receiver,
    });
    context.onTestFinished(async () => {
      process.kill(master.pid, "SIGCONT");
      await service.stop();
      client.disconnect();
      await set.stop();
    });
    await service.register(1);
    await service.emit();
    await service.drained();
    process.kill(master.pid, "SIGSTOP");
    await expectToResume(`master hangs, ${kind}`, service);
    const { warnings } = await service.storage.check();
    expect(warnings.join().includes("failoverDetector")).toBe(!("failoverDetector" in options));
  });
});
