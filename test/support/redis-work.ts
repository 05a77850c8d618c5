/**
 * Counts what the functions of the Redis storage do inside Redis: each command counts 1, and 1 for
 * each element of its reply.
 */

import { type RedisClient, redisStorage } from "../../storage/redis/index.js";
import { LIBRARY, LIBRARY_NAME } from "../../storage/redis/library.js";

const COUNTED_NAME = LIBRARY_NAME.replace("postbell_", "postbell_counted_");

/** The library under another name. Each function adds what it does to a number beside its first key. */
const COUNTED = LIBRARY.replaceAll(LIBRARY_NAME, COUNTED_NAME)
  .replace(
    "READS, GOES_ON_WHEN_FULL, MAY_GROW = { 'no-writes' },",
    "READS, GOES_ON_WHEN_FULL, MAY_GROW = {},",
  )
  .replace(
    "  call = redis.call\n",
    `  call = function(...)
    local reply = redis.call(...)
    redis.call('INCRBY', values[1] .. '-work', 1 + (type(reply) == 'table' and #reply or 0))
    return reply
  end\n`,
  );

/** A client that calls the counted library. */
function countingClient(client: RedisClient): RedisClient {
  const send = client.call.bind(client);
  return Object.assign(client, {
    call(command: string, ...args: (string | number)[]): Promise<unknown> {
      const counted = args.map((arg) => (arg === LIBRARY ? COUNTED : arg));
      if (command === "FCALL") counted[0] = String(args[0]).replace(LIBRARY_NAME, COUNTED_NAME);
      return send(command, ...counted);
    },
  });
}

/** A storage that says what its functions have done so far. */
export function countedRedis(client: RedisClient, prefix: string) {
  const keys = ["meta", "audit"].map((name) => `{${prefix}:0}:${name}-work`);
  const storage = redisStorage({ client: countingClient(client), prefix, time: "clock" });
  return {
    storage,
    work: async () => {
      const counts = (await client.call("MGET", ...keys)) as (string | null)[];
      return counts.reduce((sum, count) => sum + Number(count), 0);
    },
    destroy: () => client.disconnect(),
  };
}
