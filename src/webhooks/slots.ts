/** How many attempts may be under way in this process, in two budgets: one for endpoints known to be quick, one for all others. */

import type { Lane } from "./store.js";

export interface Slot {
  /** Moves an attempt that has turned out slow to the slow budget, if that has room, and so frees its place in the fast one. */
  slowDown(): void;
  leave(): void;
}

export interface Slots {
  room(): Record<Lane, number>;
  enter(lane: Lane): Slot;
}

/** At most `sizes.fast + sizes.slow` attempts are under way at once, whatever the endpoints do. */
export function createSlots(sizes: Readonly<Record<Lane, number>>): Slots {
  const used: Record<Lane, number> = { fast: 0, slow: 0 };
  return Object.freeze<Slots>({
    room: () => ({ fast: Math.max(0, sizes.fast - used.fast), slow: Math.max(0, sizes.slow - used.slow) }),
    enter(lane) {
      let budget: Lane | null = lane;
      used[lane] += 1;
      return {
        slowDown() {
          if (budget !== "fast" || used.slow >= sizes.slow) return;
          used.fast -= 1;
          used.slow += 1;
          budget = "slow";
        },
        leave() {
          if (budget !== null) used[budget] -= 1;
          budget = null;
        },
      };
    },
  });
}
