/** How many attempts may be in flight in this process, in two budgets: one for endpoints known to be quick, one for all others. */

import type { Lane } from "../store.js";

/** Whoever may hold a slot. */
export interface SlotHolder {
  /** The budget that its slot belongs to, set by {@link Slots}. `null` while it holds none. */
  budget: Lane | null;
}

export type FreeSlots = Readonly<Record<Lane, number>>;

export interface Slots {
  /** Slots of a lane that are neither taken nor reserved. */
  free(lane: Lane): number;
  /** Gives a holder without a slot one of the lane, also where none is free. */
  enter(holder: SlotHolder, lane: Lane): void;
  /** Moves an attempt that has turned out slow to the slow budget, if that has room, and so frees its place in the fast one. */
  slowDown(holder: SlotHolder): void;
  /** Does nothing for a holder without a slot. */
  leave(holder: SlotHolder): void;
  /** Keeps free slots for claims that are still being asked for. */
  reserve(room: FreeSlots): void;
  endReservation(room: FreeSlots): void;
}

/**
 * At most `sizes.fast + sizes.slow` attempts are in flight at once, whatever the endpoints do. A slow attempt that finds the slow budget full stays where it is,
 * and is the first to move when a place there is free.
 */
export function createSlots(sizes: FreeSlots): Slots {
  const used: Record<Lane, number> = { fast: 0, slow: 0 };
  const reserved: Record<Lane, number> = { fast: 0, slow: 0 };
  /** Holders in the fast budget that should be in the slow one. */
  const overdue = new Set<SlotHolder>();

  const move = (holder: SlotHolder): void => {
    overdue.delete(holder);
    used.fast -= 1;
    used.slow += 1;
    holder.budget = "slow";
  };

  return Object.freeze<Slots>({
    free: (lane) => Math.max(0, sizes[lane] - used[lane] - reserved[lane]),
    enter(holder, lane) {
      used[lane] += 1;
      holder.budget = lane;
    },
    slowDown(holder) {
      if (holder.budget !== "fast") return;
      if (used.slow < sizes.slow) move(holder);
      else overdue.add(holder);
    },
    leave(holder) {
      if (holder.budget === null) return;
      used[holder.budget] -= 1;
      holder.budget = null;
      if (overdue.size === 0) return;
      overdue.delete(holder);
      const [next] = overdue;
      if (next !== undefined && used.slow < sizes.slow) move(next);
    },
    reserve({ fast, slow }) {
      reserved.fast += fast;
      reserved.slow += slow;
    },
    endReservation({ fast, slow }) {
      reserved.fast -= fast;
      reserved.slow -= slow;
    },
  });
}
