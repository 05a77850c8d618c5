/**
 * Decides what a repair does with an event: how it stands for a webhook, and which of its
 * deliveries may be moved. Pure. Memory and SQL call these functions; on Redis
 * `library/recover.lua` repeats them, and the contract proves the two equal.
 */

import type { EventStanding } from "../../src/webhooks/store.js";

/** How many deliveries of an event to a webhook there are in all, and in some of the states. */
interface DeliveryCounts {
  all: number;
  pending: number;
  delivered: number;
  withheld: number;
}

export function findStanding({ all, pending, delivered, withheld }: DeliveryCounts): EventStanding {
  if (pending > 0) return "pending";
  if (delivered > 0) return "delivered";
  if (all === 0) return "missed";
  return withheld > 0 ? "withheld" : "failed";
}

/** The times of a pending delivery that is not in flight. */
interface WaitingTimes {
  startedAt: number | null;
  dueAt: number;
  extraAt: number | null;
}

/**
 * True if a delivery waits for a retry that is due after `at`, so that it can be attempted then in
 * addition. One that was never attempted is due already, or has a separate turn.
 */
export const isMovable = ({ startedAt, dueAt, extraAt }: WaitingTimes, at: number): boolean =>
  startedAt !== null && extraAt === null && dueAt > at;
