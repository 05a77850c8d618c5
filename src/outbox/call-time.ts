/** Limits the time of calls to an outbox source. */

import { type Clock, withTimeout } from "../core/clock.js";
import { PostbellError } from "../core/errors.js";
import type { OutboxSource } from "./outbox-source.js";

/**
 * Returns the source with calls that reject if they take longer than `ms`. A later result would be
 * out of date, because the leases have ended.
 */
export function limitCallTime(source: OutboxSource, clock: Clock, ms: number): OutboxSource {
  const createError = (): Error =>
    new PostbellError("storage_unavailable", `The outbox's source did not respond within ${ms} ms.`);
  const limit =
    <A extends readonly unknown[], R>(call: (...given: A) => Promise<R>): ((...given: A) => Promise<R>) =>
    (...given) =>
      withTimeout(clock, ms, call(...given), createError);
  return {
    claim: limit((request) => source.claim(request)),
    remove: limit((keys) => source.remove(keys)),
    retry: limit((request) => source.retry(request)),
    park: limit((request) => source.park(request)),
    parked: limit((request) => source.parked(request)),
    release: limit((keys) => source.release(keys)),
    stats: limit(() => source.stats()),
  };
}
