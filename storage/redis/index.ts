/**
 * `postbell/redis`: a storage on Redis or Valkey, durable and shared by any number of processes.
 *
 * @module postbell/redis
 */

import type { ContentStorage } from "../../src/content/store.js";
import { type Clock, systemClock } from "../../src/core/clock.js";
import { PostbellError } from "../../src/core/errors.js";
import { type Logger, silentLogger } from "../../src/core/logger.js";
import { readOptions } from "../../src/core/options.js";
import type { Storage } from "../../src/webhooks/store.js";
import { createSeal, readSealKeys } from "../seal.js";
import { checkStorage } from "./check.js";
import { createRedisClients, type RedisClient } from "./clients.js";
import { createRedisContentStore } from "./content-store.js";
import { contentLayout, webhooksLayout } from "./layout.js";
import { type RedisStorageOptions, redisStorageOptions } from "./options.js";
import { createContentKeys, createPartitions } from "./partition.js";
import type { StorageReport } from "./server-report.js";
import { createSession, createStoreContext, type FunctionLimits, type Session } from "./session.js";
import { createRedisWebhookStore } from "./webhook-store.js";

export type { RedisArgument, RedisClient } from "./clients.js";
export type { RedisStorageOptions } from "./options.js";
export type { StorageReport } from "./server-report.js";

export interface RedisStorage extends Storage, ContentStorage, AsyncDisposable {
  /**
   * Checks the server and the stored data. It reports settings that may lose data, corrects
   * counters and queues of webhooks, and warns of lost content. Errors: `storage_unavailable`.
   */
  check(): Promise<StorageReport>;
}

const CLUSTER_PARTITIONS = 16;

function toSource(
  url: string | undefined,
  client: RedisClient | undefined,
): { url: string } | { client: RedisClient } {
  if (url !== undefined && client === undefined) return { url };
  if (client !== undefined && url === undefined) return { client };
  throw new PostbellError(
    "invalid_option",
    `redisStorage: give either url or client (got ${url === undefined ? "neither" : "both"}).`,
    { field: "url" },
  );
}

/**
 * A storage on Redis 7 and newer or Valkey 7.2 and newer: one server, Sentinel, or a Cluster.
 *
 * Guarantee: everything the contracts of webhook storage and content store require, as durable as
 * the server is: see "How durable" in docs/guides/scale-out.md. The server's time counts, so the
 * clocks of the hosts do not matter.
 *
 * It opens nothing before the first call. `close()` closes the connections that this storage
 * opened, and never the client of the host.
 *
 * Errors: `invalid_option` for an unknown or unusable option. The first call also rejects with it
 * if the stored data has another number of partitions.
 *
 * @example const storage = redisStorage({ url: "redis://localhost:6379" }); const webhooks =
 *   createWebhooks({ storage, access });
 */
export function redisStorage(options: RedisStorageOptions): RedisStorage {
  const settings = readOptions("redisStorage", redisStorageOptions, options);
  const { url, client, prefix, durability, replicationTimeoutMs, limits, time } = settings;
  const source = toSource(url, client);
  const count = settings.partitions ?? (client?.isCluster ? CLUSTER_PARTITIONS : 1);
  const partitions = createPartitions(prefix, count);
  const contentKeys = createContentKeys(prefix);
  const layout = webhooksLayout(prefix, count);
  const layoutOfContent = contentLayout(prefix, contentKeys.key("meta"));
  const seal = createSeal(readSealKeys(settings.sealKeys));
  const isReplicated = durability === "replicated";
  let logger = silentLogger;
  let clock = systemClock;
  const clients = createRedisClients(source, {
    debug: (fields, message) => logger.debug(fields, message),
    clock: () => clock,
  });

  const base = { clients, partitions, prefix, time, isReplicated, replicationTimeoutMs };
  let session: Session | undefined;
  /** Of the latest service; unknown before the first one. */
  let functionLimits: FunctionLimits | undefined;
  /** All services share the session, with the clock and logger of the first. */
  const getSession = (context: { clock: Clock; logger: Logger }): Session => {
    if (!session) {
      ({ clock, logger } = context);
      session = createSession({ ...base, clock, logger });
    }
    return session;
  };

  return Object.freeze<RedisStorage>({
    webhooks({ clock: serviceClock, logger: serviceLogger, perEndpoint, perSecond = null, retention }) {
      const shared = getSession({ clock: serviceClock, logger: serviceLogger });
      functionLimits = {
        perEndpoint,
        perSecond: perSecond ?? undefined,
        retentionMs: retention.keepMs,
        retentionEvents: retention.events,
      };
      const context = createStoreContext({
        session: shared,
        layout,
        partitions,
        seal,
        limits: { ...limits, pending: Math.ceil(limits.pending / count) },
        isReplicated,
        clock: serviceClock,
        logger: serviceLogger,
        functionLimits,
      });
      return createRedisWebhookStore(context, {
        now: () => shared.time.now(),
        watch: (listener) => shared.workers.watch(listener),
        connectionProblem: shared.connectionProblem,
      });
    },
    content({ clock: serviceClock, logger: serviceLogger }) {
      return createRedisContentStore({
        keys: contentKeys,
        session: getSession({ clock: serviceClock, logger: serviceLogger }),
        layout: layoutOfContent,
        isReplicated,
        changesKept: limits.contentChanges,
        logger: serviceLogger,
      });
    },
    async check() {
      const shared = session ?? createSession({ ...base, clock, logger });
      try {
        return await checkStorage(shared, { partitions, contentKeys, layout, functionLimits });
      } finally {
        if (shared !== session) shared.close();
      }
    },
    async close() {
      session?.close();
      clients.close();
    },
    [Symbol.asyncDispose]() {
      return this.close();
    },
  });
}
