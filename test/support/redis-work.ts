/**
 * Counts what the functions of the Redis storage do inside Redis: each command counts 1, and 1 for
 * each element of its reply; or as many as its arguments have bytes.
 */

import { type RedisClient, redisStorage } from "../../storage/redis/index.js";
import { LIBRARY, LIBRARY_NAME } from "../../storage/redis/library.js";

/** A unit of work, and how Lua counts it for one command. */
const UNITS = {
  commands: "1 + (type(reply) == 'table' and #reply or 0)",
  bytes: "#table.concat({ ... })",
} as const;

type Unit = keyof typeof UNITS;

const toCountedName = (name: string, unit: Unit): string => name.replace("postbell_", `postbell_${unit}_`);

/** The library under another name: each function counts what it does beside its first key. */
const toCounted = (unit: Unit): string =>
  LIBRARY.replaceAll(LIBRARY_NAME, toCountedName(LIBRARY_NAME, unit))
    .replace(
      "READS, GOES_ON_WHEN_FULL, MAY_GROW = { 'no-writes' },",
      "READS, GOES_ON_WHEN_FULL, MAY_GROW = {},",
    )
    .replace(
      "  call = redis.call\n",
      `  call = function(...)
    local reply = redis.call(...)
    redis.call('INCRBY', values[1] .. '-work', ${UNITS[unit]})
    return reply
  end\n`,
    );

/** A client that calls the counted library. */
function countingClient(client: RedisClient, unit: Unit): RedisClient {
  const send = client.call.bind(client);
  const library = toCounted(unit);
  return Object.assign(client, {
    call(command: string, ...args: (string | number)[]): Promise<unknown> {
      const counted = args.map((arg) => (arg === LIBRARY ? library : arg));
      if (command === "FCALL") counted[0] = toCountedName(String(args[0]), unit);
      return send(command, ...counted);
    },
  });
}

/** A storage that says what its functions have done so far. */
export function countedRedis(client: RedisClient, prefix: string, unit: Unit = "commands") {
  const keys = ["meta", "audit"].map((name) => `{${prefix}:0}:${name}-work`);
  const storage = redisStorage({ client: countingClient(client, unit), prefix, time: "clock" });
  return {
    storage,
    work: async () => {
      const counts = (await client.call("MGET", ...keys)) as (string | null)[];
      return counts.reduce((sum, count) => sum + Number(count), 0);
    },
    destroy: () => client.disconnect(),
  };
}
