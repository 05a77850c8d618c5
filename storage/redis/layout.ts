/** Which layout the keys have: stored once for the webhooks, with their number of partitions, and once for the content. */

import { PostbellError } from "../../src/core/errors.js";
import type { RedisLink } from "./link.js";

/** Raised on their own: docs/redis.md says when. */
const WEBHOOKS_VERSION = 2;
const CONTENT_VERSION = 1;

/** Stores the layout, or holds this process to the stored one. Errors: `invalid_option` where it is another one. */
export type LayoutGuard = (link: RedisLink) => Promise<void>;

const checkVersion = (version: unknown, known: number, prefix: string): void => {
  if (version === known) return;
  throw new PostbellError(
    "invalid_option",
    `redisStorage: prefix '${prefix}' holds version ${String(version)} of the layout, and this package knows version ${known}.`,
    { field: "prefix" },
  );
};

/** Content has no partitions: a process that knows of content alone neither fixes their number nor needs to know it. */
export const contentLayout =
  (prefix: string, metaKey: string): LayoutGuard =>
  async (link) => {
    let version = await link.call("HGET", metaKey, "layout");
    // Only then, as below.
    if (version === null) {
      await link.call("HSETNX", metaKey, "layout", CONTENT_VERSION);
      version = await link.call("HGET", metaKey, "layout");
    }
    checkVersion(Number(version), CONTENT_VERSION, prefix);
  };

export const webhooksLayout =
  (prefix: string, partitions: number): LayoutGuard =>
  async (link) => {
    const key = `{${prefix}}:layout`;
    let text = await link.call("GET", key);
    // Only then: a full Redis refuses it, also where nothing would be set, and a process that starts there has to go on.
    if (text === null) {
      await link.call("SET", key, JSON.stringify({ version: WEBHOOKS_VERSION, partitions }), "NX");
      text = await link.call("GET", key);
    }
    const stored = JSON.parse(String(text)) as { version?: number; partitions?: number };
    checkVersion(stored.version, WEBHOOKS_VERSION, prefix);
    if (stored.partitions !== partitions) {
      throw new PostbellError(
        "invalid_option",
        `redisStorage: partitions is ${partitions}, and prefix '${prefix}' was begun with ${stored.partitions}; the number is fixed.`,
        { field: "partitions" },
      );
    }
  };
