import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createSlots, type Slot } from "../src/webhooks/delivery/slots.js";

describe("slots", () => {
  it("are counted by lane", () => {
    const slots = createSlots({ fast: 2, slow: 1 });
    expect(slots.room()).toEqual({ fast: 2, slow: 1 });
    const first = slots.enter("fast");
    slots.enter("slow");
    expect(slots.room()).toEqual({ fast: 1, slow: 0 });
    first.leave();
    expect(slots.room()).toEqual({ fast: 2, slow: 0 });
  });

  it("move to the slow budget with an attempt that turns out slow, if there is room", () => {
    const slots = createSlots({ fast: 2, slow: 1 });
    const first = slots.enter("fast");
    const second = slots.enter("fast");
    first.slowDown();
    second.slowDown();
    expect(slots.room()).toEqual({ fast: 1, slow: 0 });
    // The second one takes the place that the first one frees.
    first.leave();
    expect(slots.room()).toEqual({ fast: 2, slow: 0 });
    second.leave();
    expect(slots.room()).toEqual({ fast: 2, slow: 1 });
  });

  it("forget an attempt that waited for room in the slow budget and has left", () => {
    const slots = createSlots({ fast: 2, slow: 1 });
    const [first, second] = [slots.enter("fast"), slots.enter("fast")];
    first.slowDown();
    second.slowDown();
    second.leave();
    first.leave();
    expect(slots.room()).toEqual({ fast: 2, slow: 1 });
  });

  it("are given back once, however often an attempt slows down or leaves", () => {
    const slots = createSlots({ fast: 1, slow: 2 });
    const slot = slots.enter("fast");
    slot.slowDown();
    slot.slowDown();
    expect(slots.room()).toEqual({ fast: 1, slow: 1 });
    slot.leave();
    slot.leave();
    slot.slowDown();
    expect(slots.room()).toEqual({ fast: 1, slow: 2 });
  });

  it("never pass either size, and are all free again in the end, in any order of events", () => {
    const sizes = fc.record({ fast: fc.integer({ min: 1, max: 5 }), slow: fc.integer({ min: 1, max: 5 }) });
    const steps = fc.array(
      fc.record({ kind: fc.constantFrom("fast", "slow", "slowDown", "leave"), which: fc.nat(100) }),
    );
    fc.assert(
      fc.property(sizes, steps, (most, events) => {
        const slots = createSlots(most);
        const open: Slot[] = [];
        for (const { kind, which } of events) {
          const index = which % Math.max(1, open.length);
          if (kind === "fast" || kind === "slow") {
            if (slots.room()[kind] > 0) open.push(slots.enter(kind));
          } else if (kind === "slowDown") open[index]?.slowDown();
          else open.splice(index, 1)[0]?.leave();
          const { fast, slow } = slots.room();
          expect(fast).toBeGreaterThanOrEqual(0);
          expect(slow).toBeGreaterThanOrEqual(0);
          expect(most.fast - fast + (most.slow - slow)).toBe(open.length);
        }
        for (const slot of open) slot.leave();
        expect(slots.room()).toEqual(most);
      }),
    );
  });
});
