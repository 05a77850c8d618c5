/**
 * The contracts of storage and content store on Redis in the ways that storage-contract.test.ts
 * leaves out: with both majors of the client, with lost replies, and on a Cluster.
 */

import { Cluster as Cluster6, Redis as Redis6 } from "ioredis";
import { Cluster as Cluster5, Redis as Redis5 } from "ioredis5";
import { afterAll, beforeAll, describe, test } from "vitest";
import { contentStoreContract, storageContract } from "../../../src/testing/index.js";
import { type RedisClient, redisStorage } from "../../../storage/redis/index.js";
import { freshPrefix, redisUrl } from "../../support/redis.js";
import { type RedisCluster, startCluster } from "../../support/redis-server.js";

/** Two storages on the same data, each with its own client, like two processes. */
function pair(connect: () => RedisClient, partitions: number) {
  const clients = [connect(), connect()] as const;
  const prefix = freshPrefix();
  const [storage, peer] = clients.map((client) =>
    redisStorage({ client, prefix, partitions, time: "clock" }),
  );
  if (!storage || !peer) throw new Error("two clients make two storages");
  const destroy = (): void => {
    for (const client of clients) client.disconnect();
  };
  return { storage, peer, destroy };
}

describe("on one server, with a client of ioredis 5 and four partitions, the contracts hold:", () => {
  const create = () => pair(() => new Redis5(redisUrl()), 4);
  storageContract({ test, create });
  contentStoreContract({ test, create });
});

/**
 * A client whose connection breaks before each reply: it sends the command again, and only the
 * second reply arrives.
 */
function sendsTwice(): RedisClient {
  const client = new Redis6(redisUrl());
  const once: RedisClient["call"] = client.call.bind(client);
  return Object.assign(client, {
    async call(command: string, ...args: (string | number)[]) {
      if (command === "FCALL") await once(command, ...args);
      return once(command, ...args);
    },
  });
}

describe("with every script sent twice and only the second reply read, the contracts hold:", () => {
  // A notification may be lost: the first reply, which nobody reads, carried it.
  storageContract({ test, create: () => pair(sendsTwice, 2), hints: false, seeds: [8] });
  contentStoreContract({ test, create: () => pair(sendsTwice, 2), seeds: [8] });
});

describe.each([
  ["5", Cluster5],
  ["6", Cluster6],
])("on a Cluster of three masters, with ioredis %s, the contracts hold:", (_, Cluster) => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startCluster(3);
  });
  afterAll(() => cluster.stop());
  const create = () => pair(() => new Cluster([...cluster.nodes]), 16);
  storageContract({ test, create, seeds: [6, 7] });
  contentStoreContract({ test, create, seeds: [6, 7] });
});
