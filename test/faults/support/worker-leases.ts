/**
 * Ends leases as time would, so that no test waits for it: the end of each is a score that only the
 * server's clock is compared with.
 */

import type { Redis } from "ioredis";
import type { Worker } from "./worker-host.js";

/** Fields of a stored delivery's line, counted as Lua does. */
const EXPIRE = `
  local ended = {}
  for _, ref in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '(1', '+inf')) do
    local record = redis.call('HGET', KEYS[2], ref) or ''
    local fields = {}
    for field in string.gmatch(record .. ',', '([^,]*),') do fields[#fields + 1] = field end
    -- Of a first lease the record holds the token alone.
    local token = string.match(record, '^l:(.*)$') or fields[11] or ''
    local owner = string.match(token, '^[^.]*')
    for _, dead in ipairs(ARGV) do
      if owner == dead then
        redis.call('ZADD', KEYS[1], 1, ref)
        ended[#ended + 1] = ref
      end
    end
  end
  return ended`;

/** The prefix of all tokens of a process. */
export const ownersOf = (worker: Worker): readonly string[] => {
  const tokens = worker.journal().flatMap(({ token }) => (token === undefined ? [] : [token]));
  return [...new Set(tokens.map((token) => token.slice(0, token.indexOf("."))))];
};

/** Ends the leases of these processes; how many there were. */
export async function expireLeases(redis: Redis, prefix: string, owners: readonly string[]): Promise<number> {
  const keys = [`{${prefix}:0}:leases`, `{${prefix}:0}:deliveries`];
  const ended = (await redis.eval(EXPIRE, keys.length, ...keys, ...owners)) as string[];
  return ended.length;
}

/** Makes the health steps of all endpoints due that have one. */
export async function endNoticeLeases(redis: Redis, prefix: string): Promise<void> {
  const key = `{${prefix}:0}:notices`;
  for (const webhook of await redis.zrange(key, "0", "-1")) await redis.zadd(key, "XX", "1", webhook);
}
