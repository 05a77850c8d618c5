/** How many attempts may be under way in this process, in two budgets: one for endpoints known to be quick, one for all others. */

import type { Lane } from "../store.js";

export interface Slot {
  /** Moves an attempt that has turned out slow to the slow budget, if that has room, and so frees its place in the fast one. */
  slowDown(): void;
  leave(): void;
}

export interface Slots {
  room(): Record<Lane, number>;
  enter(lane: Lane): Slot;
}

/**
 * At most `sizes.fast + sizes.slow` attempts are under way at once, whatever the endpoints do. A slow attempt that finds the slow budget full stays where it is,
 * and is the first to move when a place there is free.
 */
export function createSlots(sizes: Readonly<Record<Lane, number>>): Slots {
  const used: Record<Lane, number> = { fast: 0, slow: 0 };
  /** Slots in the fast budget that should be in the slow one. */
  const overdue = new Set<{ budget: Lane }>();

  const move = (slot: { budget: Lane }): void => {
    overdue.delete(slot);
    used.fast -= 1;
    used.slow += 1;
    slot.budget = "slow";
  };

  return Object.freeze<Slots>({
    room: () => ({ fast: Math.max(0, sizes.fast - used.fast), slow: Math.max(0, sizes.slow - used.slow) }),
    enter(lane) {
      const slot = { budget: lane };
      let hasLeft = false;
      used[lane] += 1;
      return {
        slowDown() {
          if (hasLeft || slot.budget === "slow") return;
          if (used.slow < sizes.slow) move(slot);
          else overdue.add(slot);
        },
        leave() {
          if (hasLeft) return;
          hasLeft = true;
          overdue.delete(slot);
          used[slot.budget] -= 1;
          const [next] = overdue;
          if (next && used.slow < sizes.slow) move(next);
        },
      };
    },
  });
}
