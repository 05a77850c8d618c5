/** Remembers events in Redis, a key for each. */

import { PostbellError } from "../../src/core/errors.js";
import { readOptions, value } from "../../src/core/options.js";
import type { ReceivedEvents } from "../../src/receiver/received-events.js";

/**
 * The part of a client of ioredis that is called. For node-redis, pass
 * `{ call: (...words) => client.sendCommand(words.map(String)) }`.
 */
export interface RedisCommands {
  /** Sends a command with its arguments. */
  call(command: string, ...words: (string | number)[]): PromiseLike<unknown>;
}

/** Options of `redisReceived`. */
export interface RedisReceivedOptions {
  /** Your own client. It is never closed. */
  client: RedisCommands;
  /** Begins each key. Default `postbell:received:`. Set it if receivers share a database. */
  prefix?: string | undefined;
}

const OPTIONS = {
  client: value<RedisCommands | undefined>(
    "a client of ioredis, or an object with call(command, ...words)",
    (input) => typeof (input as Partial<RedisCommands> | null)?.call === "function",
    undefined,
    "a client",
  ),
  prefix: value(
    "a text of 1 to 200 characters",
    (input) => typeof input === "string" && input.length > 0 && input.length <= 200,
    "postbell:received:",
  ),
};

const DONE = "done";
/** Deletes the lease of one claim, and no other. */
const RELEASE = "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1]) or 0";

/**
 * Remembers events in Redis or Valkey. Does no I/O yet. Redis must not evict the keys:
 * `maxmemory-policy noeviction`.
 *
 * @throws `invalid_option`
 *
 * @example
 * const storage = redisReceived({ client: new Redis(process.env.REDIS_URL) });
 * const receiver = createReceiver({ verify: stripe(secret), storage, onEvent });
 */
export function redisReceived(options: RedisReceivedOptions): ReceivedEvents {
  const { client, prefix } = readOptions("redisReceived", OPTIONS, options);
  if (client === undefined) {
    const message = "redisReceived: client is missing: pass a client of ioredis.";
    throw new PostbellError("invalid_option", message, { field: "client" });
  }
  const toKey = (id: string): string => `${prefix}e:${id}`;
  const expiry = (ms: number): number => Math.max(1, Math.ceil(ms));
  return Object.freeze<ReceivedEvents>({
    async claim({ id, now, leaseUntil }) {
      const key = toKey(id);
      if ((await client.call("SET", key, leaseUntil, "PX", expiry(leaseUntil - now), "NX")) !== null)
        return "new";
      return (await client.call("GET", key)) === DONE ? "done" : "in_flight";
    },
    async confirm({ id, now, keepUntil }) {
      await client.call("SET", toKey(id), DONE, "PX", expiry(keepUntil - now));
    },
    async release({ id, leaseUntil }) {
      await client.call("EVAL", RELEASE, 1, toKey(id), String(leaseUntil));
    },
    async readCursor(feed) {
      const cursor = await client.call("GET", `${prefix}c:${feed}`);
      return typeof cursor === "string" ? cursor : undefined;
    },
    async writeCursor({ feed, cursor }) {
      await client.call("SET", `${prefix}c:${feed}`, cursor);
    },
  });
}
