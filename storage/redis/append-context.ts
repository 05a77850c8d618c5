/**
 * The parts that both ways of storing events share, and the time limit for claims made with an
 * event.
 */

import { withTimeout } from "../../src/core/clock.js";
import { CLAIM_WITHIN_MS } from "./claiming.js";
import type { RedisArgument } from "./client.js";
import type { EventCache } from "./event-cache.js";
import type { ClaimResult, PartitionClaims } from "./partition-claims.js";
import { resultUnknown } from "./redis-errors.js";
import type { Settlements } from "./settlements.js";
import type { RedisStoreContext } from "./store-context.js";

export interface AppendOptions {
  readonly context: RedisStoreContext;
  readonly claims: PartitionClaims;
  readonly settlements: Settlements;
  readonly cache: EventCache;
  readonly nonce: () => string;
}

/**
 * Resolves with claims made with an event, or `undefined` if they take longer than the caller
 * waits.
 */
type ClaimInTime = (
  claiming: Promise<ClaimResult>,
  calledAt: number,
  now: number,
) => Promise<ClaimResult | undefined>;

/** Shared by the two scripts that store events. */
export interface AppendContext extends AppendOptions {
  /** The bounds of pending deliveries, as both scripts take them. */
  readonly bounds: readonly RedisArgument[];
  readonly claimInTime: ClaimInTime;
}

export function createClaimInTime({ context, settlements }: AppendOptions): ClaimInTime {
  const { clock, logger, notifyWorkers } = context;
  const createError = (): Error => resultUnknown("no reply in time");
  return async (claiming, calledAt, now) => {
    const leftMs = CLAIM_WITHIN_MS - (clock.monotonic() - calledAt);
    try {
      if (leftMs <= 0) throw createError();
      return await withTimeout(clock, leftMs, claiming, createError);
    } catch (error) {
      // The events are stored. Their deliveries are left to a later claim.
      logger.warn({ error }, "nothing could be claimed with an event");
      notifyWorkers(String(now));
      claiming.then(({ claims }) => settlements.release(claims, now)).catch(() => {});
      return undefined;
    }
  };
}
