/**
 * Whose turn it is: the order of deliveries within their endpoint, the shares of endpoints in a
 * claim, and the order in which completed events are freed. Pure. Memory and SQL call these
 * functions, `library/rules.lua` and the SQL functions repeat them; `vectors.json` proves them
 * equal.
 */

import type { Lane } from "../../src/webhooks/store.js";
import { HEAD_START_MS, KEPT_FROM } from "./constants.js";

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

/**
 * Returns the place of an event, completed now, among those of its account: the first is freed
 * first if there are too many. One that is kept as long as most has the time as its place. One with
 * a `keepMs` of its own follows all of those, in the order of the ends, and its place tells when it
 * ends: {@link KEPT_FROM} plus that time.
 *
 * @param keepMs `null` for the retention of all
 */
export const findFreePlace = (now: number, keepMs: number | null): number =>
  keepMs === null ? now : KEPT_FROM + now + keepMs;
