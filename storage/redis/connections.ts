/** The connections of a storage: made when they are first needed, from a URL or beside the host's client, and closed where they were made here. */

import { PostbellError } from "../../src/core/errors.js";
import type { Logger } from "../../src/core/logger.js";
import type { RedisClient } from "./client.js";
import { classifyRedisError } from "./link.js";

const MAX_RECONNECT_MS = 2_000;

export interface Connections {
  /** Whether the main one was made here. */
  readonly isOwn: boolean;
  /** For everything that does not wait. */
  readonly main: () => Promise<RedisClient>;
  /** A second one, for what waits or listens. */
  readonly second: () => Promise<RedisClient>;
  /** A Cluster listens on a connection that its client keeps apart by itself. */
  readonly listening: () => Promise<RedisClient>;
  readonly close: () => void;
}

type Constructor = new (url: string, options: object) => RedisClient;

async function open(url: string, random: () => number): Promise<RedisClient> {
  let Redis: Constructor;
  try {
    ({ Redis } = (await import("ioredis")) as unknown as { Redis: Constructor });
  } catch (cause) {
    throw new PostbellError(
      "invalid_option",
      "redisStorage({ url }) needs the package ioredis: npm install ioredis",
      {
        field: "url",
        cause,
      },
    );
  }
  return new Redis(url, {
    lazyConnect: true,
    // What is not connected is told so by `status`; a queue of its own has no bound.
    enableOfflineQueue: false,
    maxRetriesPerRequest: 3,
    connectTimeout: 3_000,
    // A socket that is not closed by the other side either must not keep the process alive.
    disconnectTimeout: 100,
    retryStrategy: (times: number) => Math.min(50 * 2 ** times, MAX_RECONNECT_MS) * (0.5 + random() / 2),
    // A master that was demoted answers so: the new one is behind the same address.
    reconnectOnError: (error: Error) => (classifyRedisError(error) === "READONLY" ? 2 : false),
  });
}

export function createConnections(
  source: { readonly url: string } | { readonly client: RedisClient },
  { debug, random }: { readonly debug: Logger["debug"]; readonly random: () => number },
): Connections {
  const own: RedisClient[] = [];
  let isClosed = false;

  const closed = (): PostbellError =>
    new PostbellError("storage_unavailable", "The storage has been closed.");
  const keep = (client: RedisClient): RedisClient => {
    own.push(client);
    // Without a listener ioredis writes to the console. What failed is told by the call that it failed.
    client.on("error", (error) => debug({ kind: classifyRedisError(error) }, "a connection to Redis failed"));
    // Closed while it was being made.
    if (isClosed) {
      client.disconnect();
      throw closed();
    }
    return client;
  };
  const once = (make: () => Promise<RedisClient>): (() => Promise<RedisClient>) => {
    let made: Promise<RedisClient> | undefined;
    return () => {
      if (isClosed) return Promise.reject(closed());
      made ??= make();
      return made;
    };
  };

  const main = once(async () => ("client" in source ? source.client : keep(await open(source.url, random))));
  const second = once(async () => keep((await main()).duplicate()));
  return {
    isOwn: "url" in source,
    main,
    second,
    listening: async () => {
      const client = await main();
      return client.isCluster ? client : second();
    },
    close() {
      isClosed = true;
      for (const client of own) client.disconnect();
    },
  };
}
