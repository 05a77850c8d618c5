/**
 * A delivery that this process attempts: one object from its claim to its record, which changes as
 * it goes.
 */

import type { Deadline } from "../../core/deadlines.js";
import type { Span } from "../../core/telemetry.js";
import type { Claim, Lane } from "../store.js";

export interface Flight {
  readonly claim: Claim;
  /** Monotonic time before the claim was asked for: its lease cannot have begun earlier. */
  readonly claimedAt: number;
  /** Set when a process that stops waits no longer: nothing may be sent after it. */
  isCancelled: boolean;
  /** Set just before the first byte leaves. */
  isSent: boolean;
  /** Set once the result of the attempt is known: what is left is to settle it. */
  isOver: boolean;
  /** The budget that its slot belongs to. `null` while it holds none. */
  budget: Lane | null;
  /** When it counts as slow. */
  slowMark: Deadline | undefined;
  /** When the first attempt began, by the storage's time: the schedule counts from here. */
  startedAt: number;
  /** When the request was made, by the storage's time, and by the monotonic clock. */
  sentAt: number;
  sentAtMonotonic: number;
  /** Of the attempt, where the host asked for telemetry. */
  span: Span | undefined;
}

export const createFlight = (claim: Claim, claimedAt: number): Flight => ({
  claim,
  claimedAt,
  isCancelled: false,
  isSent: false,
  isOver: false,
  budget: null,
  slowMark: undefined,
  startedAt: 0,
  sentAt: 0,
  sentAtMonotonic: 0,
  span: undefined,
});
