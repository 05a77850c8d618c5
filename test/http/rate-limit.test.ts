import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createRateLimit } from "../../src/http/rate-limit.js";
import { manualClock } from "../../src/testing/manual-clock.js";

describe("the rate limit", () => {
  it("lets a minute's requests through at once, then one for each share of a minute", async () => {
    const clock = manualClock(0);
    const { take } = createRateLimit({ perMinute: 4, clock });
    expect([take("a"), take("a"), take("a"), take("a")]).toEqual([0, 0, 0, 0]);
    expect(take("a")).toBe(15);
    await clock.advance(14_000);
    expect(take("a")).toBe(1);
    await clock.advance(1_000);
    expect(take("a")).toBe(0);
    expect(take("a")).toBe(15);
  });

  it("saves up no more than a minute's requests", async () => {
    const clock = manualClock(0);
    const { take } = createRateLimit({ perMinute: 2, clock });
    take("a");
    await clock.advance(86_400_000);
    expect([take("a"), take("a")]).toEqual([0, 0]);
    expect(take("a")).toBeGreaterThan(0);
  });

  it("keeps one key's requests from counting against another", () => {
    const { take } = createRateLimit({ perMinute: 1, clock: manualClock(0) });
    expect([take("a"), take("b"), take("__proto__")]).toEqual([0, 0, 0]);
    expect(take("a")).toBe(60);
  });

  it("takes back what was not used, and saves up no more for it", async () => {
    const clock = manualClock(0);
    const { take, putBack } = createRateLimit({ perMinute: 2, clock });
    expect([take("a"), take("a")]).toEqual([0, 0]);
    putBack("a");
    expect([take("a"), take("a") > 0]).toEqual([0, true]);
    putBack("b");
    await clock.advance(60_000);
    putBack("a");
    expect([take("a"), take("a"), take("a") > 0]).toEqual([0, 0, true]);
    expect([take("b"), take("b"), take("b") > 0]).toEqual([0, 0, true]);
  });

  it("sets no limit at 0", () => {
    const { take, putBack } = createRateLimit({ perMinute: 0, clock: manualClock(0) });
    putBack("a");
    expect(Array.from({ length: 10_000 }, () => take("a")).every((seconds) => seconds === 0)).toBe(true);
  });

  it("remembers a bounded number of keys, the busiest of them longest", () => {
    const { take } = createRateLimit({ perMinute: 2, clock: manualClock(0) });
    take("quiet");
    take("quiet");
    for (let key = 0; key < 10_000; key++) {
      take(`key ${key}`);
      take("busy");
    }
    expect(take("busy")).toBeGreaterThan(0);
    expect(take("quiet")).toBe(0);
  });

  it("never lets more through than its rate, and keeps the promise of the seconds it names", async () => {
    const steps = fc.array(fc.nat(5_000), { minLength: 1, maxLength: 60 });
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 1_000 }), steps, async (perMinute, waits) => {
        const clock = manualClock(1_000_000);
        const { take } = createRateLimit({ perMinute, clock });
        let taken = 0;
        for (let left = perMinute; left > 0; left--) taken += take("a") === 0 ? 1 : 0;
        for (const ms of waits) {
          await clock.advance(ms);
          const seconds = take("a");
          expect(Number.isInteger(seconds) && seconds >= 0 && seconds <= 60).toBe(true);
          await clock.advance(seconds * 1000);
          const isPromised = seconds > 0;
          expect(isPromised ? take("a") : 0).toBe(0);
          taken++;
        }
        expect(taken).toBeLessThanOrEqual(perMinute + (clock.monotonic() * perMinute) / 60_000 + 1e-6);
      }),
      // Fractions of tokens once added up to 0.9999999 of one here.
      { numRuns: 50, examples: [[10, [1862, 3319, 819, 0]]] },
    );
  });
});
