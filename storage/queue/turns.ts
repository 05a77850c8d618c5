/**
 * Whose turn it is: the order of deliveries within their endpoint, and the shares of endpoints in a
 * claim. Pure. Memory and SQL call these functions, `scripts/lib/turns.lua` and the SQL functions
 * repeat them; `vectors.json` proves them equal.
 */

import type { Lane } from "../../src/webhooks/store.js";
import { HEAD_START_MS } from "./constants.js";

export const LANES: readonly Lane[] = ["fast", "slow"];

/** The times of a delivery that place it in the queue of its endpoint. */
interface QueuedTimes {
  startedAt: number | null;
  dueAt: number;
  /** When an extra attempt is due; `null` if none was requested. */
  extraAt: number | null;
}

/**
 * Returns the time by which a pending delivery is queued. Only one that is due already gets the
 * head start of a first attempt: any other would be served too early.
 */
export function findQueueTime({ startedAt, dueAt, extraAt }: QueuedTimes, now: number): number {
  const at = extraAt ?? dueAt;
  return startedAt === null && at <= now ? at - HEAD_START_MS : at;
}

/**
 * Returns how many deliveries an endpoint may get in one round of a claim: the room of the lane is
 * divided equally among the endpoints that are ready, and the first in turn get what is left over.
 * A round serves at most `room` endpoints. What some do not need is divided in the next round.
 *
 * @param index the endpoint's place among them, from 0
 */
export const divideRoom = (room: number, endpoints: number, index: number): number =>
  Math.floor(room / endpoints) + (index < room % endpoints ? 1 : 0);
