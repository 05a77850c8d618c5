/**
 * Every option of `redisStorage`: its type for hosts, and the one table of defaults and ranges that
 * it is read by.
 */

import { oneOf, value, wholeNumber } from "../../src/core/options.js";
import type { RedisClient } from "./client.js";
import { SEAL_KEY_BYTES } from "./seal.js";

/** What {@link redisStorage} takes: `url` or `client`, not both. */
export interface RedisStorageOptions {
  /**
   * Where Redis or Valkey is: `redis://`, `rediss://` or a path of a socket. The storage opens its
   * own connections, with ioredis, and closes them. Either this or `client`.
   */
  readonly url?: string | undefined;
  /**
   * A client that the host has: `Redis` (also with Sentinel) or `Cluster` of ioredis 5 or 6,
   * without `keyPrefix`. It is never closed here.
   */
  readonly client?: RedisClient | undefined;
  /** What all keys begin with, within their hash tag. Default `postbell`. */
  readonly prefix?: string | undefined;
  /**
   * How many parts the accounts are spread over, each in one slot; fixed once something is stored.
   * Default 1, for a Cluster 16.
   */
  readonly partitions?: number | undefined;
  /**
   * `replicated`: each emit, and each change of content, asks with `WAIT` whether a replica has it;
   * an emit answers `confirmed`. Default `standard`.
   */
  readonly durability?: "standard" | "replicated" | undefined;
  /** How long an emit waits for a replica, ms. Default 500. */
  readonly replicationTimeoutMs?: number | undefined;
  /**
   * Keys of 32 bytes, as bytes or in base64: the first seals the secrets of webhooks, all open
   * them. Default none: secrets are stored as they are.
   */
  readonly sealKeys?: readonly (Uint8Array | string)[] | undefined;
  readonly limits?:
    | {
        /** Pending deliveries in all; each partition may hold its share. Default 1 000 000. */
        readonly pending?: number | undefined;
        /** Pending deliveries of one account. Default 100 000. */
        readonly pendingPerAccount?: number | undefined;
        /**
         * Changes of content that a process can catch up with; one that missed more loads the
         * content again. Default 20 000.
         */
        readonly contentChanges?: number | undefined;
      }
    | undefined;
  /**
   * Whose time counts: the Redis server's, so that all processes agree, or that of the service's
   * `clock`, for tests. Default `server`.
   */
  readonly time?: "server" | "clock" | undefined;
}

const isText = (given: unknown): boolean => typeof given === "string" && given !== "";

/**
 * `keyPrefix` would put itself before the hash tag, and ioredis 5 leaves it out of some commands.
 */
const isClient = (given: unknown): boolean => {
  if (typeof given !== "object" || given === null) return false;
  const { call, options } = given as {
    readonly call?: unknown;
    readonly options?: {
      readonly keyPrefix?: unknown;
      readonly redisOptions?: { readonly keyPrefix?: unknown };
    };
  };
  return typeof call === "function" && !options?.keyPrefix && !options?.redisOptions?.keyPrefix;
};

const isUrl = (given: unknown): boolean => isText(given) && /^(?:rediss?:\/\/|\/)/.test(given as string);

/** `undefined` where it is no key. */
export function readSealKey(given: unknown): Buffer | undefined {
  const bytes = typeof given === "string" ? Buffer.from(given, "base64") : given;
  return bytes instanceof Uint8Array && bytes.length === SEAL_KEY_BYTES ? Buffer.from(bytes) : undefined;
}

export const redisStorageOptions = {
  url: value<string | undefined>("a redis:// or rediss:// URL or the path of a socket", isUrl, undefined),
  client: value<RedisClient | undefined>("a client of ioredis without keyPrefix", isClient, undefined),
  prefix: value(
    "1 to 100 characters, none of them a brace",
    (given) => isText(given) && /^[^{}\s]{1,100}$/.test(given as string),
    "postbell",
    "text",
  ),
  partitions: value<number | undefined>(
    "a whole number from 1 to 256",
    (given) => Number.isInteger(given) && (given as number) >= 1 && (given as number) <= 256,
    undefined,
    "count",
  ),
  durability: oneOf(["standard", "replicated"], "standard"),
  replicationTimeoutMs: wholeNumber("ms", 500, { min: 1, max: 3_000 }),
  sealKeys: value<readonly (Uint8Array | string)[]>(
    "a list of keys of 32 bytes, as bytes or in base64",
    (given) => Array.isArray(given) && given.every((key) => readSealKey(key) !== undefined),
    [],
    "list of keys",
  ),
  limits: {
    pending: wholeNumber("count", 1_000_000, { min: 1 }),
    pendingPerAccount: wholeNumber("count", 100_000, { min: 1 }),
    contentChanges: wholeNumber("count", 20_000, { min: 100 }),
  },
  time: oneOf(["server", "clock"], "server"),
};
