/**
 * The rows of deliveries that this process has claimed. While a lease names a delivery, nothing
 * but settling it changes its row, so it is not read again. Its event may get another delivery
 * meanwhile, which `completed` allows for.
 */

import { LRUCache } from "lru-cache";
import type { Settlement } from "../../src/webhooks/store.js";
import type { DeliveryRow, EventTexts } from "./delivery-rows.js";

/** A due delivery with its event, as a claim reads it. */
export type DueRow = Omit<
  DeliveryRow,
  "created_at" | "state" | "reason" | "ended_at" | "queued_at" | "attempts"
> &
  EventTexts & {
    readonly at: number;
    /** How many deliveries its event had had. */
    readonly event_deliveries: number;
    /** Null if they are too long to be remembered. */
    readonly attempts: string | null;
    readonly event_id: string;
    /** Null if the database has lost it: the core then reports the event as unreadable. */
    payload: string | null;
  };

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
