/**
 * Counts what the scripts of the Redis storage do inside Redis: each command counts 1, and 1 for
 * each element of its reply.
 */

import { type RedisClient, redisStorage } from "../../storage/redis/index.js";
import { SCRIPTS } from "../../storage/redis/scripts.js";

const CALL = "local call = redis.call\n";

/** The text of a script that adds what it does to the number at `key`. */
function counted(text: string, key: string): string {
  if (!text.includes(CALL)) return text;
  const counting = `local call = function(...)
    local reply = redis.call(...)
    redis.call('INCRBY', '${key}', 1 + (type(reply) == 'table' and #reply or 0))
    return reply
  end\n`;
  return text.replace(CALL, counting);
}

/** A client that runs the scripts counted. */
function countingClient(client: RedisClient, key: string): RedisClient {
  const send = client.call.bind(client);
  const texts = new Map(Object.values(SCRIPTS).map(({ digest, text }) => [digest, counted(text, key)]));
  return Object.assign(client, {
    call(command: string, ...args: (string | number)[]): Promise<unknown> {
      const [digest, ...rest] = args;
      const text = command === "EVALSHA" ? texts.get(String(digest)) : undefined;
      return text === undefined ? send(command, ...args) : send("EVAL", text, ...rest);
    },
  });
}

/** A storage that says what its scripts have done so far. */
export function countedRedis(client: RedisClient, prefix: string) {
  const key = `${prefix}-work`;
  const storage = redisStorage({ client: countingClient(client, key), prefix, time: "clock" });
  return {
    storage,
    work: async () => Number(await client.call("GET", key)),
    destroy: () => client.disconnect(),
  };
}
