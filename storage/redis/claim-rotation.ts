/** Claims due deliveries from all partitions, each in turn first. */

import type { ClaimRequest, WebhookStore } from "../../src/webhooks/store.js";
import type { Partition } from "./partition.js";
import {
  type ClaimResult,
  EMPTY_ROOM,
  getRoomLeft,
  type PartitionClaims,
  UNREACHED_MS,
} from "./partition-claims.js";
import { resultUnknown } from "./redis-errors.js";
import type { Settlements } from "./settlements.js";
import type { RedisStoreContext } from "./store-context.js";

/**
 * Just within the four seconds that the service gives a storage: later claims would not be taken.
 */
export const CLAIM_WITHIN_MS = 3_900;
/**
 * If all partitions together took longer than this, the others are claimed from with the next
 * claim.
 */
const CLAIM_OTHERS_WITHIN_MS = 1_000;

const getEarliest = (times: readonly (number | null)[]): number | null => {
  const known = times.filter((at): at is number => at !== null);
  return known.length > 0 ? Math.min(...known) : null;
};

export function createClaim(
  { partitions, logger, clock, connect }: RedisStoreContext,
  partitionClaims: PartitionClaims,
  settlements: Settlements,
): WebhookStore["claim"] {
  /** The partition that comes first in the next claim. */
  let first = 0;

  const getTurn = (): readonly Partition[] => {
    const inTurn = [...partitions.all.slice(first), ...partitions.all.slice(0, first)];
    first = (first + 1) % inTurn.length;
    return inTurn;
  };

  /**
   * Calls all partitions at once: the first in turn with the whole room, the others only to learn
   * when something is due. The room that is left goes to the others, one after another.
   */
  const claimFromAll = async (request: ClaimRequest, began: number): Promise<ClaimResult> => {
    const inTurn = getTurn();
    const errors: unknown[] = [];
    /** A partition that fails must not cost the others their claims. It is called again soon. */
    const claimFrom = (partition: Partition, room: ClaimRequest["room"]): Promise<ClaimResult> =>
      partitionClaims.claim(partition, { ...request, room }).catch((error: unknown) => {
        errors.push(error);
        return { claims: [], nextAt: request.now + UNREACHED_MS };
      });
    const results = await Promise.all(
      inTurn.map((partition, place) => claimFrom(partition, place === 0 ? request.room : EMPTY_ROOM)),
    );
    if (errors.length === inTurn.length) throw errors[0];
    const isLate = clock.monotonic() - began > CLAIM_OTHERS_WITHIN_MS;
    const claims = [...(results[0]?.claims ?? [])];
    for (const [place, partition] of inTurn.entries()) {
      const { nextAt } = results[place] ?? { nextAt: null };
      const room = getRoomLeft(request.room, claims);
      const isDue = nextAt !== null && nextAt <= request.now;
      if (place === 0 || isLate || !isDue || room.fast + room.slow === 0) continue;
      const result = await claimFrom(partition, room);
      results[place] = result;
      claims.push(...result.claims);
    }
    for (const error of errors) logger.error({ error }, "due deliveries of a partition could not be claimed");
    return { claims, nextAt: getEarliest(results.map(({ nextAt }) => nextAt)) };
  };

  return async (request) => {
    const began = clock.monotonic();
    const now = await connect(request.now);
    // The caller computed the times of the request before the storage's time was known.
    if (now !== request.now) return { claims: [], nextAt: now + 1 };
    const result = await claimFromAll(request, began);
    if (result.claims.length === 0 || clock.monotonic() - began < CLAIM_WITHIN_MS) return result;
    settlements.release(result.claims, now);
    throw resultUnknown("no reply in time");
  };
}
