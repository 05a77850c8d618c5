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
  url?: string | undefined;
  /**
   * Your own pool, instead of `url`; the storage never ends it. Until `close()`, it keeps lost
   * connections from ending the process.
   */
  pool?: PostgresPool | undefined;
  /** The schema that holds the tables. Default `postbell`. */
  schema?: string | undefined;
  /**
   * `session` keeps one connection open to be notified; `transaction`, for a pooler such as
   * PgBouncer in transaction mode, polls every half second. Default `session` with `url`,
   * `transaction` with `pool`.
   */
  connections?: "session" | "transaction" | undefined;
  /**
   * Keys of 32 bytes, or their base64: the first encrypts the secrets of webhooks and the data keys
   * of `sealEvents`, all decrypt them; without keys, secrets are stored as plain text.
   */
  sealKeys?: readonly (Uint8Array | string)[] | undefined;
  limits?:
    | {
        /** Pending deliveries of one account. Default 100 000. */
        pendingPerAccount?: number | undefined;
        /**
         * Changes of content that a process can catch up with; one that missed more loads all
         * content again. Default 20 000.
         */
        contentChanges?: number | undefined;
      }
    | undefined;
  /**
   * Whose time counts: the server's or, for tests, that of the service's `clock`. Default `server`.
   */
  time?: "server" | "clock" | undefined;
}

const MAX_URL = 2_000;

const isPool = (option: unknown): boolean =>
  typeof option === "object" &&
  option !== null &&
  ["connect", "end"].every((method) => typeof (option as Record<string, unknown>)[method] === "function");

const isUrl = (option: unknown): boolean =>
  typeof option === "string" &&
  option.length <= MAX_URL &&
  /^postgres(?:ql)?:\/\//.test(option) &&
  URL.canParse(option);

export const postgresStorageOptions = {
  url: value<string | undefined>("a postgres:// URL", isUrl, undefined),
  pool: value<PostgresPool | undefined>("a pool of pg", isPool, undefined),
  schema: value(
    "the name of a schema: at most 48 letters, digits and underscores, not first a digit",
    (option) => typeof option === "string" && SCHEMA_NAME.test(option),
    "postbell",
    "text",
  ),
  connections: value<"session" | "transaction" | undefined>(
    "'session' or 'transaction'",
    (option) => option === "session" || option === "transaction",
    undefined,
  ),
  sealKeys: sealKeysOption,
  limits: {
    pendingPerAccount: wholeNumber("count", 100_000, { min: 1 }),
    contentChanges: wholeNumber("count", 20_000, { min: 100 }),
  },
  time: oneOf(["server", "clock"], "server"),
};
