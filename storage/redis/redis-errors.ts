/**
 * Errors of the Redis storage. Every failure of Redis or its client becomes a `PostbellError` with a
 * stable code: `storage_full` if Redis refuses to grow, otherwise `storage_unavailable`.
 */

import { PostbellError } from "../../src/core/errors.js";
import type { RedisLimits } from "./store-context.js";

/** The error for a bound of the storage itself, in the words of its option. */
export const partitionFull = (bound: string, limits: RedisLimits): PostbellError =>
  new PostbellError(
    "storage_full",
    `The Redis storage has reached limits.${bound} (${limits[bound as keyof RedisLimits]} in this partition); nothing was stored. Raise it, or try again later.`,
    { field: `limits.${bound}` },
  );
