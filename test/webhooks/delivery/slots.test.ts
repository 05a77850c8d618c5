import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type SlotHolder, Slots } from "../../../src/webhooks/delivery/slots.js";
import type { Lane } from "../../../src/webhooks/store.js";

const roomOf = (slots: Slots): Record<Lane, number> => ({
  fast: slots.free("fast"),
  slow: slots.free("slow"),
});

function enter(slots: Slots, lane: Lane): SlotHolder {
  const holder: SlotHolder = { budget: null };
  slots.enter(holder, lane);
  return holder;
}

describe("slots", () => {
  it("are counted by lane", () => {
    const slots = new Slots({ fast: 2, slow: 1 });
    expect(roomOf(slots)).toEqual({ fast: 2, slow: 1 });
    const first = enter(slots, "fast");
    enter(slots, "slow");
    expect(roomOf(slots)).toEqual({ fast: 1, slow: 0 });
    slots.leave(first);
    expect(roomOf(slots)).toEqual({ fast: 2, slow: 0 });
  });

  it("move to the slow budget with an attempt that turns out slow, if there is room", () => {
    const slots = new Slots({ fast: 2, slow: 1 });
    const first = enter(slots, "fast");
    const second = enter(slots, "fast");
    slots.slowDown(first);
    slots.slowDown(second);
    expect(roomOf(slots)).toEqual({ fast: 1, slow: 0 });
    // The second one takes the place that the first one frees.
    slots.leave(first);
    expect(roomOf(slots)).toEqual({ fast: 2, slow: 0 });
    slots.leave(second);
    expect(roomOf(slots)).toEqual({ fast: 2, slow: 1 });
  });

  it("forget an attempt that waited for room in the slow budget and has left", () => {
    const slots = new Slots({ fast: 2, slow: 1 });
    const [first, second] = [enter(slots, "fast"), enter(slots, "fast")];
    slots.slowDown(first);
    slots.slowDown(second);
    slots.leave(second);
    slots.leave(first);
    expect(roomOf(slots)).toEqual({ fast: 2, slow: 1 });
  });

  it("are given back once, however often an attempt slows down or leaves", () => {
    const slots = new Slots({ fast: 1, slow: 2 });
    const slot = enter(slots, "fast");
    slots.slowDown(slot);
    slots.slowDown(slot);
    expect(roomOf(slots)).toEqual({ fast: 1, slow: 1 });
    slots.leave(slot);
    slots.leave(slot);
    slots.slowDown(slot);
    expect(roomOf(slots)).toEqual({ fast: 1, slow: 2 });
  });

  it("never pass either size, and are all free again in the end, in any order of events", () => {
    const sizes = fc.record({ fast: fc.integer({ min: 1, max: 5 }), slow: fc.integer({ min: 1, max: 5 }) });
    const steps = fc.array(
      fc.record({ kind: fc.constantFrom("fast", "slow", "slowDown", "leave"), which: fc.nat(100) }),
    );
    fc.assert(
      fc.property(sizes, steps, (most, events) => {
        const slots = new Slots(most);
        const open: SlotHolder[] = [];
        for (const { kind, which } of events) {
          const index = which % Math.max(1, open.length);
          if (kind === "fast" || kind === "slow") {
            if (slots.free(kind) > 0) open.push(enter(slots, kind));
          } else {
            const [holder] = kind === "slowDown" ? open.slice(index, index + 1) : open.splice(index, 1);
            if (holder) slots[kind](holder);
          }
          const { fast, slow } = roomOf(slots);
          expect(fast).toBeGreaterThanOrEqual(0);
          expect(slow).toBeGreaterThanOrEqual(0);
          expect(most.fast - fast + (most.slow - slow)).toBe(open.length);
        }
        for (const slot of open) slots.leave(slot);
        expect(roomOf(slots)).toEqual(most);
      }),
    );
  });
});
