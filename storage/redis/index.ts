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
import { repairPartition, type StorageReport, type TalliesReply } from "./check.js";
import type { RedisClient } from "./client.js";
import { createConnections } from "./connections.js";
import { createContentKeys, listContentWarnings } from "./content-keys.js";
import { createRedisContentStore } from "./content-store.js";
import { contentLayout, webhooksLayout } from "./layout.js";
import { type RedisStorageOptions, readSealKey, redisStorageOptions } from "./options.js";
import { createPartitions } from "./partition.js";
import { SCRIPTS } from "./scripts.js";
import { createSeal } from "./seal.js";
import { createSession, type Session } from "./session.js";
import type { RedisStoreContext } from "./store-context.js";
import { createRedisWebhookStore } from "./webhook-store.js";

export type { StorageReport } from "./check.js";
export type { RedisArgument, RedisClient } from "./client.js";
export type { RedisStorageOptions } from "./options.js";

export interface RedisStorage extends Storage, ContentStorage {
  /** Looks at the server, compares the books of webhooks with what they count and puts right what differs, and tells what content has lost. Errors: `storage_unavailable`. */
  check(): Promise<StorageReport>;
}

const CLUSTER_PARTITIONS = 16;
/** How long work that another process made may lie unnoticed, where its hint was lost, and where there are none. */
const MAX_SLEEP_MS = 1_000;
const MAX_SLEEP_WITHOUT_HINTS_MS = 200;
/** Tells a repair that nobody said how many slots an endpoint has: then it leaves the line of endpoints as it is. */
const ANY_NUMBER = 1_000_000;

function sourceOf(
  url: string | undefined,
  client: RedisClient | undefined,
): { readonly url: string } | { readonly client: RedisClient } {
  if (url !== undefined && client === undefined) return { url };
  if (client !== undefined && url === undefined) return { client };
  throw new PostbellError("invalid_option", "redisStorage: give either url or client.", { field: "url" });
}

/**
 * A storage on Redis 6.2 and newer or Valkey: single, with Sentinel, or a Cluster.
 *
 * Guarantee: everything the contracts of storage and content store ask, as durable as the server is: see "How durable" in docs/guides/scale-out.md. The time is the server's, so that the clocks of the hosts do not matter.
 * Nothing is opened until the first call. What this storage opened is closed by `close()`; a client of the host never is.
 * Errors: `invalid_option` for an unknown or unusable option, also from the first call on, where what is stored has another number of partitions.
 */
export function redisStorage(options: RedisStorageOptions): RedisStorage {
  const settings = readOptions("redisStorage", redisStorageOptions, options);
  const { url, client, prefix, durability, replicationTimeoutMs, limits, time } = settings;
  const source = sourceOf(url, client);
  const count = settings.partitions ?? (client?.isCluster ? CLUSTER_PARTITIONS : 1);
  const partitions = createPartitions(prefix, count);
  const contentKeys = createContentKeys(prefix);
  const layout = webhooksLayout(prefix, count);
  const layoutOfContent = contentLayout(prefix, contentKeys.key("meta"));
  const seal = createSeal(settings.sealKeys.flatMap((key) => readSealKey(key) ?? []));
  const isReplicated = durability === "replicated";
  let logger = silentLogger;
  let clock = systemClock;
  const connections = createConnections(source, {
    debug: (fields, message) => logger.debug(fields, message),
    random: () => clock.random(),
  });

  const base = { connections, partitions, prefix, time, isReplicated, replicationTimeoutMs };
  let session: Session | undefined;
  /** As the services have it; unknown before the first of them. */
  let slots: number | undefined;
  const sessionFor = (context: { readonly clock: Clock; readonly logger: Logger }): Session => {
    if (!session) {
      ({ clock, logger } = context);
      session = createSession({ ...base, clock, logger });
    }
    return session;
  };

  const inspectAndRepair = async (own: Session): Promise<StorageReport> => {
    const reports = await own.inspect();
    const [worst] = [...reports].sort((a, b) => b.warnings.length - a.warnings.length);
    if (!worst) throw new PostbellError("storage_unavailable", "No server can be reached.");
    // A replica takes no repairs.
    if (reports.some(({ role }) => role !== "master")) return { ...worst, repaired: 0 };
    await own.open(layout);
    const link = await own.link();
    let repaired = 0;
    for (const partition of partitions.all) {
      const before = (): readonly number[] => [own.time.now(), slots ?? ANY_NUMBER, 0, 0];
      repaired += await repairPartition(partition, link.call, {
        repair: async (what, names) =>
          Number(await link.run(SCRIPTS.repair, partition, [...before(), what, ...names])),
        tallies: async (...args) =>
          (await link.run(SCRIPTS.repairTallies, partition, [...before(), ...args])) as TalliesReply,
      });
    }
    const sizes = (await link.run(SCRIPTS.contentCheck, contentKeys, [])) as number[];
    const warnings = [...worst.warnings, ...listContentWarnings(sizes)];
    return { ...worst, ok: warnings.length === 0, warnings, repaired };
  };

  return Object.freeze<RedisStorage>({
    webhooks({ clock: ownClock, logger: ownLogger, perEndpoint, retention }) {
      const own = sessionFor({ clock: ownClock, logger: ownLogger });
      const { time: clockwork, hints, link, open, reopen } = own;
      slots = perEndpoint;
      const before = (now: number): readonly number[] => [now, perEndpoint, retention.ms, retention.events];
      const context: RedisStoreContext = {
        partitions,
        seal,
        limits: { ...limits, pending: Math.ceil(limits.pending / count) },
        logger: ownLogger,
        clock: ownClock,
        retentionMs: retention.ms,
        maxSleepMs: isReplicated ? MAX_SLEEP_WITHOUT_HINTS_MS : MAX_SLEEP_MS,
        run: async (script, partition, args, scriptCall) =>
          (await link()).run(script, partition, [...before(scriptCall.now), ...args], scriptCall),
        runDurably: async (script, partition, args, scriptCall) =>
          isReplicated
            ? own.runReplicated(script, partition, [...before(scriptCall.now), ...args], scriptCall)
            : { reply: await context.run(script, partition, args, scriptCall), confirmed: undefined },
        call: async (command, ...args) => (await link()).call(command, ...args),
        async at(now) {
          const wasKnown = clockwork.isKnown;
          await open(layout);
          await clockwork.refresh();
          return wasKnown ? now : clockwork.now();
        },
        notifyWorkers: (at) => {
          if (at) hints.tell(Number(at));
        },
        connectionId: own.connectionId,
        onReset: reopen,
        isReplicated,
      };
      return createRedisWebhookStore(context, {
        now: () => clockwork.now(),
        watch: (listener) => hints.watch(listener),
      });
    },
    content({ clock: ownClock, logger: ownLogger }) {
      return createRedisContentStore({
        keys: contentKeys,
        session: sessionFor({ clock: ownClock, logger: ownLogger }),
        layout: layoutOfContent,
        isReplicated,
        changesKept: limits.contentChanges,
        logger: ownLogger,
      });
    },
    async check() {
      const own = session ?? createSession({ ...base, clock, logger });
      try {
        return await inspectAndRepair(own);
      } finally {
        if (own !== session) own.close();
      }
    },
    async close() {
      session?.close();
      connections.close();
    },
  });
}
