/**
 * The version of the key layout. It is stored once for the webhooks, with their number of
 * partitions, and once for the content.
 */

import { PostbellError } from "../../src/core/errors.js";
import type { RedisConnection } from "./connection.js";

/** Each is raised on its own: docs/redis.md says when. */
const WEBHOOKS_VERSION = 1;
const CONTENT_VERSION = 1;

/**
 * Stores the layout, or compares it with the stored one. Errors: `invalid_option` if they differ.
 */
export type LayoutGuard = (connection: RedisConnection) => Promise<void>;

const checkVersion = (version: unknown, supported: number, prefix: string): void => {
  if (version === supported) return;
  throw new PostbellError(
    "invalid_option",
    `redisStorage: prefix '${prefix}' holds version ${String(version)} of the layout, but this package knows version ${supported}. Use the version of the package that wrote it, or another prefix.`,
    { field: "prefix" },
  );
};

/** Content has no partitions, so a process with content alone does not fix their number. */
export const contentLayout =
  (prefix: string, metaKey: string): LayoutGuard =>
  async (connection) => {
    let version = await connection.call("HGET", metaKey, "layout");
    // Written only if missing, as below.
    if (version === null) {
      await connection.call("HSETNX", metaKey, "layout", CONTENT_VERSION);
      version = await connection.call("HGET", metaKey, "layout");
    }
    checkVersion(Number(version), CONTENT_VERSION, prefix);
  };

export const webhooksLayout =
  (prefix: string, partitions: number): LayoutGuard =>
  async (connection) => {
    const key = `{${prefix}}:layout`;
    let text = await connection.call("GET", key);
    // Written only if missing: a full Redis refuses even a SET with NX that would change nothing,
    // and a process has to be able to start on it.
    if (text === null) {
      await connection.call("SET", key, JSON.stringify({ version: WEBHOOKS_VERSION, partitions }), "NX");
      text = await connection.call("GET", key);
    }
    const stored = JSON.parse(String(text)) as { version?: number; partitions?: number };
    checkVersion(stored.version, WEBHOOKS_VERSION, prefix);
    if (stored.partitions !== partitions) {
      throw new PostbellError(
        "invalid_option",
        `redisStorage: partitions is ${partitions}, but prefix '${prefix}' was created with ${stored.partitions}. The number cannot change: set partitions to ${stored.partitions}, or use another prefix.`,
        { field: "partitions" },
      );
    }
  };
