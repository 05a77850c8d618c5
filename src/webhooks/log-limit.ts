/** Bounds the log: a failure that repeats with every delivery must not flood it. */

import { LRUCache } from "lru-cache";
import type { Clock } from "../core/clock.js";
import type { Logger } from "../core/logger.js";
import { createRateLimit } from "../http/rate-limit.js";

/**
 * Lines with the same message about the same webhook or account, also in one burst. The delivery
 * log has every attempt.
 */
const LINES_PER_MINUTE = 60;

const MAX_KEYS = 10_000;

/** Messages are fixed texts. Those without a webhook or an account share one limit each. */
function toKey(level: keyof Logger, fields: object, message: string): string {
  const { webhook, account } = fields as { webhook?: string; account?: string };
  return `${level} ${webhook ?? account ?? ""} ${message}`;
}

/**
 * Returns a logger that passes on a limited number of similar lines a minute. The next line that
 * passes has the number of those left out before it as `omitted`.
 */
export function limitLogger(logger: Logger, clock: Clock): Logger {
  const lines = createRateLimit({ perMinute: LINES_PER_MINUTE, clock });
  const omitted = new LRUCache<string, number>({ max: MAX_KEYS });
  const limit =
    (level: keyof Logger) =>
    (fields: object, message: string): void => {
      const key = toKey(level, fields, message);
      const count = omitted.get(key) ?? 0;
      if (lines.take(key) > 0) {
        omitted.set(key, count + 1);
        return;
      }
      omitted.delete(key);
      logger[level](count === 0 ? fields : { ...fields, omitted: count }, message);
    };
  return Object.freeze({
    debug: limit("debug"),
    info: limit("info"),
    warn: limit("warn"),
    error: limit("error"),
  });
}
