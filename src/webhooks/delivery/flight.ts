/** A delivery that this process attempts: one object from its claim to its record, which changes as it goes. */

import type { Deadline } from "../../deadlines.js";
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
}

export const createFlight = (claim: Claim, claimedAt: number): Flight => ({
  claim,
  claimedAt,
  isCancelled: false,
  isSent: false,
  isOver: false,
  budget: null,
  slowMark: undefined,
});
