/** Every option of `postgresStorage`: its type for hosts, and the table of defaults and ranges. */

import { oneOf, value, wholeNumber } from "../../src/core/options.js";
import { sealKeysOption } from "../seal.js";
import type { PostgresPool } from "./client.js";
import { SCHEMA_NAME } from "./migrate.js";

/** Options of {@link postgresStorage}: `url` or `pool`, not both. */
export interface PostgresStorageOptions {
  /**
   * The storage opens its own connections to this address, and closes them. Either this or `pool`.
   */
  readonly url?: string | undefined;
  /**
   * Your own pool, instead of `url`; the storage never ends it. Until `close()`, it keeps lost
   * connections from ending the process.
   */
  readonly pool?: PostgresPool | undefined;
  /** The schema that holds the tables. Default `postbell`. */
  readonly schema?: string | undefined;
  /**
   * `session` keeps one connection open to be notified; `transaction`, for a pooler such as
   * PgBouncer in transaction mode, polls every half second. Default `session` with `url`,
   * `transaction` with `pool`.
   */
  readonly connections?: "session" | "transaction" | undefined;
  /**
   * Keys of 32 bytes, or their base64: the first encrypts the secrets of webhooks, all decrypt
   * them; without keys they are stored as plain text.
   */
  readonly sealKeys?: readonly (Uint8Array | string)[] | undefined;
  readonly limits?:
    | {
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

const MAX_URL = 2_000;

const isPool = (given: unknown): boolean =>
  typeof given === "object" &&
  given !== null &&
  ["connect", "end"].every((method) => typeof (given as Record<string, unknown>)[method] === "function");

const isUrl = (given: unknown): boolean =>
  typeof given === "string" &&
  given.length <= MAX_URL &&
  /^postgres(?:ql)?:\/\//.test(given) &&
  URL.canParse(given);

export const postgresStorageOptions = {
  url: value<string | undefined>("a postgres:// URL", isUrl, undefined),
  pool: value<PostgresPool | undefined>("a pool of pg", isPool, undefined),
  schema: value(
    "the name of a schema: at most 48 letters, digits and underscores, not first a digit",
    (given) => typeof given === "string" && SCHEMA_NAME.test(given),
    "postbell",
    "text",
  ),
  connections: value<"session" | "transaction" | undefined>(
    "'session' or 'transaction'",
    (given) => given === "session" || given === "transaction",
    undefined,
  ),
  sealKeys: sealKeysOption,
  limits: {
    pendingPerAccount: wholeNumber("count", 100_000, { min: 1 }),
    contentChanges: wholeNumber("count", 20_000, { min: 100 }),
  },
  time: oneOf(["server", "clock"], "server"),
};
