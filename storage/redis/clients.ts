/**
 * The ioredis clients of a storage, each made when it is first needed: from a URL, or by
 * duplicating the client of the host. Clients that were made here are closed here.
 */

import type { Clock, Timer } from "../../src/core/clock.js";
import { importFromPackage } from "../../src/core/import-package.js";
import type { Logger } from "../../src/core/logger.js";
import { classifyRedisError, storageClosed } from "./redis-errors.js";

/** A process notices within about a second that Redis is back, or has loaded its data. */
const MAX_RECONNECT_MS = 1_000;
/** How long TCP and TLS may take, and again how long the first replies. */
const CONNECT_MS = 3_000;
/** The same for the first replies to a client of the host, which connects as the host wants. */
const HOST_HANDSHAKE_MS = 10_000;
/** A socket that the other side does not close must not keep the process running. */
const DISCONNECT_MS = 100;

export interface RedisClients {
  /** True if the main client was made here, not by the host. */
  readonly isOwn: boolean;
  /** For every command that returns at once. */
  readonly main: () => Promise<RedisClient>;
  /** A second one, for commands that block or listen. */
  readonly second: () => Promise<RedisClient>;
  /** For subscriptions. The client of a Cluster keeps a connection of its own for them. */
  readonly subscriber: () => Promise<RedisClient>;
  readonly close: () => void;
}

type Constructor = new (url: string, options: object) => RedisClient;

async function createClient(url: string, random: () => number): Promise<RedisClient> {
  const Redis = await importFromPackage<Constructor>(() => import("ioredis"), "Redis", {
    message: "redisStorage({ url }) needs the package ioredis: npm install ioredis.",
    field: "url",
  });
  return new Redis(url, {
    lazyConnect: true,
    // Calls check `status` before they send. The queue of the client would have no bound.
    enableOfflineQueue: false,
    maxRetriesPerRequest: 3,
    connectTimeout: CONNECT_MS,
    disconnectTimeout: DISCONNECT_MS,
    maxLoadingRetryTime: MAX_RECONNECT_MS,
    retryStrategy: (times: number) => Math.min(50 * 2 ** times, MAX_RECONNECT_MS) * (0.5 + random() / 2),
    // A demoted master replies READONLY. The new master is at the same address.
    reconnectOnError: (error: Error) => (classifyRedisError(error) === "READONLY" ? 2 : false),
  });
}

/**
 * Replaces a connection that is open and not ready in time: a balancer may accept connections that
 * lead nowhere, on which ioredis waits for ever. Returns the function that ends this.
 */
function limitHandshake(client: RedisClient, clock: () => Clock, limitMs: number): () => void {
  let timer: Timer | undefined;
  const clear = (): void => {
    clock().clearTimeout(timer);
    timer = undefined;
  };
  const begin = (): void => {
    clear();
    timer = clock().setTimeout(() => {
      if (client.status === "connect") client.disconnect(true);
    }, limitMs);
  };
  const listeners = [
    ["connect", begin],
    ["ready", clear],
    ["close", clear],
  ] as const;
  for (const [event, listener] of listeners) client.on(event, listener);
  if (client.status === "connect") begin();
  return () => {
    clear();
    for (const [event, listener] of listeners) client.off(event, listener);
  };
}

const hasSentinels = ({ options = {} }: RedisClient): boolean =>
  "sentinels" in options && Array.isArray(options.sentinels);

/** The options of further connections like that of the host, which are closed here. */
function toDuplicateOptions(client: RedisClient): object {
  const common = {
    // Who listens subscribes again when a connection is ready. The promise that ioredis makes for
    // doing so is nobody's: its rejection would end the process.
    autoResubscribe: false,
    connectTimeout: CONNECT_MS,
    disconnectTimeout: DISCONNECT_MS,
    maxLoadingRetryTime: MAX_RECONNECT_MS,
  };
  if (!hasSentinels(client)) return common;
  // A master that hangs keeps its connections. Sentinels tell when another one has replaced it.
  return { ...common, failoverDetector: true, sentinelCommandTimeout: CONNECT_MS };
}

/**
 * Lets the client of the host follow to the master that Sentinels have sent the own one to. The old
 * master may hang, or still take commands whose changes are lost once it becomes a replica.
 */
function follow(client: RedisClient, duplicate: RedisClient): void {
  const isElsewhere =
    client.stream?.remotePort !== duplicate.stream?.remotePort ||
    client.stream?.remoteAddress !== duplicate.stream?.remoteAddress;
  if (client.status === "ready" && isElsewhere) client.disconnect(true);
}

/** Lists what makes a client of the host unsafe, as sentences for `check()`. */
export function listClientWarnings(client: RedisClient): readonly string[] {
  if (!hasSentinels(client)) return [];
  const { failoverDetector, sentinelCommandTimeout } = client.options as Record<string, unknown>;
  const warnings: string[] = [];
  if (failoverDetector !== true)
    warnings.push(
      "The client does not listen to the Sentinels: it leaves a master that hangs only after 10 silent seconds. Create it with failoverDetector: true.",
    );
  if (!Number(sentinelCommandTimeout))
    warnings.push(
      "The client waits for ever for a Sentinel that hangs. Create it with sentinelCommandTimeout: 3000.",
    );
  return warnings;
}

export function createRedisClients(
  source: { url: string } | { client: RedisClient },
  { debug, clock }: { debug: Logger["debug"]; clock: () => Clock },
): RedisClients {
  const opened: RedisClient[] = [];
  const limits: (() => void)[] = [];
  let isClosed = false;

  const adopt = (client: RedisClient): RedisClient => {
    opened.push(client);
    limits.push(limitHandshake(client, clock, CONNECT_MS));
    // Without a listener ioredis writes to the console. The failed call reports the error.
    client.on("error", (error) => debug({ kind: classifyRedisError(error) }, "a connection to Redis failed"));
    // The storage was closed while the client was being made.
    if (isClosed) {
      client.disconnect();
      throw storageClosed();
    }
    return client;
  };
  const once = (create: () => Promise<RedisClient>): (() => Promise<RedisClient>) => {
    let created: Promise<RedisClient> | undefined;
    return () => {
      if (isClosed) return Promise.reject(storageClosed());
      created ??= create();
      return created;
    };
  };

  const main = once(async () => {
    if ("url" in source) return adopt(await createClient(source.url, () => clock().random()));
    limits.push(limitHandshake(source.client, clock, HOST_HANDSHAKE_MS));
    return source.client;
  });
  const second = once(async () => {
    const client = await main();
    if (client.isCluster) return adopt(client.duplicate());
    const created = adopt(client.duplicate(toDuplicateOptions(client)));
    if (hasSentinels(client)) created.on("ready", () => follow(client, created));
    return created;
  });
  return {
    isOwn: "url" in source,
    main,
    second,
    subscriber: async () => {
      const client = await main();
      return client.isCluster ? client : second();
    },
    close() {
      isClosed = true;
      for (const end of limits) end();
      for (const client of opened) client.disconnect();
    },
  };
}

/** An argument of a command. */
export type RedisArgument = string | number;

/** The methods that `Redis` and `Cluster` of ioredis 5 and 6 have in common. */
export interface RedisClient {
  readonly status: string;
  /** The options of the client. */
  readonly options?: object;
  /** The socket of the present connection; a Cluster has none of its own. */
  readonly stream?: {
    readonly remoteAddress?: string | undefined;
    readonly remotePort?: number | undefined;
  };
  /** True for a client of a Cluster. */
  readonly isCluster?: boolean;
  /** Sends any command. */
  call(command: string, ...args: RedisArgument[]): Promise<unknown>;
  /** Subscribes to channels. */
  subscribe(...channels: string[]): Promise<unknown>;
  /** Unsubscribes from channels. */
  unsubscribe(...channels: string[]): Promise<unknown>;
  /** Adds a listener. */
  on(event: string, listener: (...args: unknown[]) => void): unknown;
  /** Removes a listener. */
  off(event: string, listener: (...args: unknown[]) => void): unknown;
  /** Opens the connection of a client with `lazyConnect`. */
  connect(): Promise<void>;
  /** Drops the connection at once. */
  disconnect(reconnect?: boolean): void;
  /** Closes the connection once all sent commands have a reply. */
  quit(): Promise<unknown>;
  /** Creates another client for the same server, with the same options but for those given. */
  duplicate(options?: object): RedisClient;
  /** For a Cluster: its connections to the nodes. */
  nodes?(role: "master"): readonly (RedisClient & {
    readonly options: { readonly host?: string | undefined; readonly port?: number | undefined };
  })[];
}
