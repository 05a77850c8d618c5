/** Redis as a storage under test. */

import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { type RedisStorage, redisStorage } from "../../../storage/redis/index.js";
import { type RedisOptions, startRedis } from "../../support/redis-server.js";
import { contentFaults } from "./content-checker.js";
import type {
  OpenOptions,
  StorageAddress,
  StorageInspector,
  StorageUnderTest,
} from "./storage-under-test.js";

type RedisAddress = Extract<StorageAddress, { readonly kind: "redis" }>;

/** Returns the URL and the prefix of an address, which must be one on Redis. */
export function toRedis(address: StorageAddress): RedisAddress {
  if (address.kind !== "redis") throw new Error(`${address.kind} is not Redis.`);
  return address;
}

/** Ends leases: the end of each is a score that only the server's clock is compared with. */
const EXPIRE = `
  local ended = {}
  for _, ref in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '(1', '+inf')) do
    local record = redis.call('HGET', KEYS[2], ref) or ''
    local owner = string.match(record, '^l,([^.,]*)')
    for _, dead in ipairs(ARGV) do
      if owner == dead then
        redis.call('ZADD', KEYS[1], 1, ref)
        ended[#ended + 1] = ref
      end
    end
  end
  return ended`;

function inspectRedis({ url, prefix }: RedisAddress, storage: RedisStorage): StorageInspector {
  const redis = new Redis(url);
  redis.on("error", () => {});
  /** All that stays of a storage that holds nothing. */
  const empty: readonly string[] = [`{${prefix}:0}:meta`, `{${prefix}}:layout`];
  return {
    async expireLeases(owners) {
      const keys = [`{${prefix}:0}:leases`, `{${prefix}:0}:deliveries`];
      const ended = (await redis.eval(EXPIRE, keys.length, ...keys, ...owners)) as string[];
      return ended.length;
    },
    async endNoticeLeases() {
      const key = `{${prefix}:0}:health-notifications`;
      for (const webhook of await redis.zrange(key, "0", "-1")) await redis.zadd(key, "XX", "1", webhook);
    },
    async findFaults() {
      const { repaired } = await storage.check();
      return repaired === 0 ? [] : [`${repaired} counters or places were wrong`];
    },
    async findLeftovers() {
      const keys = await redis.keys(`{${prefix}*`);
      const removals = `{${prefix}:0}:removals`;
      const left = `${removals}: ${await redis.hlen(removals)}`;
      return keys
        .filter((key) => !empty.includes(key))
        .map((key) => (key === removals ? left : key))
        .sort();
    },
    findContentFaults: () => contentFaults(url, prefix),
    async close() {
      redis.disconnect();
      await storage.close();
    },
  };
}

/** Starts a Redis server of its own. */
export async function startRedisUnderTest(
  persistence: NonNullable<RedisOptions["persistence"]>,
): Promise<StorageUnderTest> {
  const server = await startRedis({ persistence });
  const open = ({ url, prefix }: RedisAddress, { time, contentChanges }: OpenOptions = {}): RedisStorage =>
    redisStorage({ url, prefix, time, limits: { contentChanges } });
  return {
    kind: "redis",
    server: { name: "Redis", ...server },
    fresh: async () => ({ kind: "redis", url: server.url, prefix: `scene-${randomUUID()}` }),
    open: (address, options) => open(toRedis(address), options),
    inspect: (address) => inspectRedis(toRedis(address), open(toRedis(address))),
    through: (address, port) => ({ ...toRedis(address), url: `redis://127.0.0.1:${port}` }),
    stop: server.stop,
  };
}
