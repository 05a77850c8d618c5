import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createDeDuplicator } from "../../src/receiver/de-duplicator.js";
import { manualClock } from "../../src/testing/manual-clock.js";

const START = Date.UTC(2026, 0, 1);

describe("the window of handled ids", () => {
  it("gives an id to the first who asks, and to nobody else while it is handled", () => {
    const seen = createDeDuplicator({ max: 10, ttlMs: 1000, clock: manualClock(START) });
    expect(seen.claim("a")).toBe("new");
    expect(seen.claim("a")).toBe("in_flight");
    expect(seen.claim("b")).toBe("new");
  });

  it("knows an id once it was handled, and gives it again when it was not", () => {
    const seen = createDeDuplicator({ max: 10, ttlMs: 1000, clock: manualClock(START) });
    seen.claim("a");
    seen.confirm("a");
    expect(seen.claim("a")).toBe("done");
    seen.claim("b");
    seen.release("b");
    expect(seen.claim("b")).toBe("new");
  });

  it("forgets an id after its time, also one handled at the clock's very start, however often it came", async () => {
    const clock = manualClock(START);
    const seen = createDeDuplicator({ max: 10, ttlMs: 1000, clock });
    seen.claim("a");
    seen.confirm("a");
    await clock.advance(1000);
    expect(seen.claim("a")).toBe("done");
    await clock.advance(1);
    expect(seen.claim("a")).toBe("new");
  });

  it("forgets the oldest of too many, although it was asked for last", () => {
    const seen = createDeDuplicator({ max: 2, ttlMs: 1000, clock: manualClock(START) });
    for (const id of ["a", "b"]) {
      seen.claim(id);
      seen.confirm(id);
    }
    expect(seen.claim("a")).toBe("done");
    seen.claim("c");
    seen.confirm("c");
    expect(seen.claim("b")).toBe("done");
    expect(seen.claim("a")).toBe("new");
  });

  it("never forgets an id that is being handled, whatever comes meanwhile", () => {
    const seen = createDeDuplicator({ max: 2, ttlMs: 1000, clock: manualClock(START) });
    seen.claim("slow");
    for (let index = 0; index < 100; index += 1) {
      seen.claim(`other ${index}`);
      seen.confirm(`other ${index}`);
    }
    expect(seen.claim("slow")).toBe("in_flight");
  });

  it("agrees with a list searched from its end, whatever is done in whatever order", async () => {
    const step = fc.record({
      id: fc.constantFrom("a", "b", "c", "d"),
      act: fc.constantFrom("claim", "confirm", "release", "wait"),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const clock = manualClock(START);
        const seen = createDeDuplicator({ max: 3, ttlMs: 100, clock });
        const underway = new Set<string>();
        let done: { id: string; at: number }[] = [];
        const answers: string[] = [];
        const expected: string[] = [];
        for (const { id, act } of steps) {
          const isKnown = done.some((one) => one.id === id && clock.now() - one.at <= 100);
          if (act === "wait") {
            await clock.advance(40);
          } else if (act === "claim") {
            answers.push(seen.claim(id));
            expected.push(underway.has(id) ? "in_flight" : isKnown ? "done" : "new");
            if (!isKnown) underway.add(id);
          } else if (underway.delete(id)) {
            seen[act](id);
            if (act === "confirm")
              done = [...done.filter((one) => one.id !== id), { id, at: clock.now() }].slice(-3);
          }
        }
        expect(answers).toEqual(expected);
      }),
      { numRuns: 50 },
    );
  });
});
