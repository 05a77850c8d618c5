/** A delivery that this process attempts: one mutable object from its claim to its settlement. */

import type { Deadline } from "../../core/deadlines.js";
import type { Claim, Lane } from "../store.js";

export interface Flight {
  readonly claim: Claim;
  /** Monotonic time before the claim was requested: the lease cannot begin earlier. */
  readonly claimedAt: number;
  /** Set when the grace period of a stop is over: nothing may be sent after this. */
  isCancelled: boolean;
  /** Set just before the first byte is sent. */
  isSent: boolean;
  /** Set when the result of the attempt is known and only has to be settled. */
  isOver: boolean;
  /** The budget of its slot. `null` while it has no slot. */
  budget: Lane | null;
  /** When the attempt counts as slow. */
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
