/** Every option of `redisStorage`: its type for hosts, and the table of defaults and ranges. */

import { oneOf, value, wholeNumber } from "../../src/core/options.js";
import { sealKeysOption } from "../seal.js";
import type { RedisClient } from "./clients.js";

/** Options of {@link redisStorage}: `url` or `client`, not both. */
export interface RedisStorageOptions {
  /**
   * The storage opens its own connections to this address, and closes them. Either this or
   * `client`.
   */
  readonly url?: string | undefined;
  /**
   * Your own `Redis` (also with Sentinel) or `Cluster` of ioredis 5 or 6, instead of `url`; the
   * storage never closes it.
   */
  readonly client?: RedisClient | undefined;
  /** The prefix of all keys, within their hash tag. Default `postbell`. */
  readonly prefix?: string | undefined;
  /**
   * Parts that accounts are distributed over, 1 to 256, each in one slot, fixed once data is
   * stored. Default 1, for a Cluster 16.
   */
  readonly partitions?: number | undefined;
  /**
   * With `replicated`, each emit and each change of content waits for a replica, and processes poll
   * for each other's work five times a second. An emit returns `confirmed`. Default `standard`.
   */
  readonly durability?: "standard" | "replicated" | undefined;
  /** How long that wait may take. Default 500. */
  readonly replicationTimeoutMs?: number | undefined;
  /**
   * Keys of 32 bytes, or their base64: the first encrypts the secrets of webhooks and the data keys
   * of `sealEvents`, all decrypt them; without keys, secrets are stored as plain text.
   */
  readonly sealKeys?: readonly (Uint8Array | string)[] | undefined;
  readonly limits?:
    | {
        /** Pending deliveries in all. Each partition may hold its share. Default 1 000 000. */
        readonly pending?: number | undefined;
        /** Pending deliveries of one account. Default 100 000. */
        readonly pendingPerAccount?: number | undefined;
        /**
         * Changes of content that a process can catch up with; one that missed more loads all
         * content again. Default 20 000.
         */
        readonly contentChanges?: number | undefined;
      }
    | undefined;
  /**
   * Whose time counts: the server's or, for tests, that of the service's `clock`. Default `server`.
   */
  readonly time?: "server" | "clock" | undefined;
}

const isText = (input: unknown): boolean => typeof input === "string" && input !== "";

/**
 * True for options that change keys or the types of replies. `keyPrefix` would come before the hash
 * tag, and ioredis 5 does not add it to some commands.
 */
const changesCommands = (options: unknown): boolean => {
  if (typeof options !== "object" || options === null) return false;
  const { keyPrefix, stringNumbers, replyMapping, redisOptions } = options as Record<string, unknown>;
  if (keyPrefix || stringNumbers || replyMapping === "resp3") return true;
  return changesCommands(redisOptions);
};

const isClient = (input: unknown): boolean => {
  if (typeof input !== "object" || input === null) return false;
  const { call, options, isCluster } = input as Record<string, unknown>;
  if (typeof call !== "function" || changesCommands(options)) return false;
  // ioredis 5 puts calls of several slots into one pipeline, and then rejects all of them.
  return !(isCluster && (options as Record<string, unknown> | undefined)?.["enableAutoPipelining"]);
};

/** The error of a client that cannot parse a URL contains all of it, with its password. */
const isUrl = (input: unknown): boolean =>
  typeof input === "string" &&
  (input.startsWith("/") || (/^rediss?:\/\//.test(input) && URL.canParse(input)));

export const redisStorageOptions = {
  url: value<string | undefined>("a redis:// or rediss:// URL or the path of a socket", isUrl, undefined),
  client: value<RedisClient | undefined>(
    "a client of ioredis without keyPrefix, stringNumbers and replyMapping resp3, as a Cluster also without enableAutoPipelining",
    isClient,
    undefined,
  ),
  prefix: value(
    "1 to 100 characters, none of them a brace, a blank or a lone surrogate",
    // Redis would store different lone surrogates as the same character.
    (input) => isText(input) && /^[^{}\s\p{Surrogate}]{1,100}$/u.test(input as string),
    "postbell",
    "text",
  ),
  partitions: value<number | undefined>(
    "a whole number from 1 to 256",
    (input) => Number.isInteger(input) && (input as number) >= 1 && (input as number) <= 256,
    undefined,
    "count",
  ),
  durability: oneOf(["standard", "replicated"], "standard"),
  replicationTimeoutMs: wholeNumber("ms", 500, { min: 1, max: 3_000 }),
  sealKeys: sealKeysOption,
  limits: {
    pending: wholeNumber("count", 1_000_000, { min: 1 }),
    pendingPerAccount: wholeNumber("count", 100_000, { min: 1 }),
    contentChanges: wholeNumber("count", 20_000, { min: 100 }),
  },
  time: oneOf(["server", "clock"], "server"),
};
