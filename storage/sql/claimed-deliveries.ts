/**
 * The rows of deliveries that this process has claimed. While a lease names a delivery, nothing
 * but settling it changes its row, so it is not read again. Its event may get another delivery
 * meanwhile, which `completed` allows for.
 */

import { LRUCache } from "lru-cache";
import type { Settlement } from "../../src/webhooks/store.js";
import type { DueRow } from "./webhook-tables.js";

/**
 * More than a process has in flight by default. A claim counts in full until its last delivery is
 * settled. A delivery that is not known is read when it is settled.
 */
const MOST_CLAIMED = 10_000;

/** The rows of each claim, by its token, and by the ids of the deliveries. */
export type ClaimedDeliveries = LRUCache<string, Map<string, DueRow>>;

export const createClaimedDeliveries = (): ClaimedDeliveries =>
  new LRUCache({ maxSize: MOST_CLAIMED, sizeCalculation: ({ size }) => size });

/** Forgets deliveries that were settled. */
export function forgetClaimed(claimed: ClaimedDeliveries, settlements: readonly Settlement[]): void {
  for (const { id, token } of settlements) {
    const rows = claimed.get(token);
    if (rows?.delete(id) && rows.size === 0) claimed.delete(token);
  }
}
