/** What is stored once for all partitions: how many there are, and which version of the layout they have. */

import { PostbellError } from "../../src/errors.js";
import type { Link } from "./link.js";

const VERSION = 1;

/** Stores the layout, or holds this process to the stored one. Errors: `invalid_option` where it has another number of partitions or a newer version. */
export async function holdToLayout(link: Link, prefix: string, partitions: number): Promise<void> {
  const key = `{${prefix}}:layout`;
  let text = await link.call("GET", key);
  // Only then: a full Redis refuses it, also where nothing would be set, and a process that starts there has to go on.
  if (text === null) {
    await link.call("SET", key, JSON.stringify({ version: VERSION, partitions }), "NX");
    text = await link.call("GET", key);
  }
  const stored = JSON.parse(String(text)) as { version?: number; partitions?: number };
  if (stored.version !== VERSION) {
    throw new PostbellError(
      "invalid_option",
      `redisStorage: prefix '${prefix}' holds version ${stored.version} of the layout, and this package knows version ${VERSION}.`,
      { field: "prefix" },
    );
  }
  if (stored.partitions !== partitions) {
    throw new PostbellError(
      "invalid_option",
      `redisStorage: partitions is ${partitions}, and prefix '${prefix}' was begun with ${stored.partitions}; the number is fixed.`,
      { field: "partitions" },
    );
  }
}
