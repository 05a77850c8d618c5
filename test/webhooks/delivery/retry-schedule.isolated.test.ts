import fc from "fast-check";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import {
  buildSchedule,
  crashDelayMs,
  nextStep,
  parseRetryAfter,
  postponeDelayMs,
  type RetryPolicy,
} from "../../../src/webhooks/delivery/retry-schedule.js";
import { ATTEMPT_TIMES, clockTime, DAY, HOUR, MINUTE, SECOND, START } from "../../support/webhook-harness.js";

const policy: RetryPolicy = {
  intervalsMs: [15 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 4 * HOUR, 8 * HOUR],
  everyMs: 8 * HOUR,
  windowMs: 72 * HOUR,
  jitter: 0.1,
  maxJitterMs: 15 * MINUTE,
};
const schedule = buildSchedule(policy);

/**
 * The step after `step`, at `now` after the first attempt, with no jitter and no wish of the
 * endpoint unless given.
 */
const next = (
  step: number,
  now: number,
  { random = 0, retryAfterMs = null }: { random?: number; retryAfterMs?: number | null } = {},
): { step: number; at: string } | null => {
  const found = nextStep({
    policy,
    schedule,
    startedAt: START,
    step,
    now: START + now,
    random: () => random,
    retryAfterMs,
  });
  return found && { step: found.step, at: clockTime(found.dueAt - START) };
};

/** Any policy, with its schedule. */
const policies = fc
  .record({
    intervalsMs: fc.array(fc.integer({ min: 1, max: HOUR }), { maxLength: 10 }),
    everyMs: fc.integer({ min: MINUTE, max: 8 * HOUR }),
    windowMs: fc.integer({ min: 1, max: 3 * DAY }),
    jitter: fc.double({ min: 0, max: 1, noNaN: true }),
    maxJitterMs: fc.integer({ min: 0, max: HOUR }),
  })
  .map((other) => ({ policy: other, schedule: buildSchedule(other) }));

describe("the schedule", () => {
  it("has the fourteen times that the guides promise", () => {
    expect(schedule.map(clockTime)).toEqual(ATTEMPT_TIMES);
  });

  it("goes on at the last interval, and ends before the window does, for any policy", () => {
    fc.assert(
      fc.property(policies, ({ policy: other, schedule: offsets }) => {
        const intervals = offsets.slice(1).map((offset, index) => offset - (offsets[index] ?? 0));
        expect(offsets[0]).toBe(0);
        expect(intervals).toEqual(intervals.map((_, index) => other.intervalsMs[index] ?? other.everyMs));
        const last = offsets.at(-1) ?? 0;
        const following = other.intervalsMs[intervals.length] ?? other.everyMs;
        expect(offsets.length === 1 || last < other.windowMs).toBe(true);
        expect(last + following).toBeGreaterThanOrEqual(other.windowMs);
      }),
    );
  });

  it("has no attempt at the very end of the window", () => {
    expect(buildSchedule({ ...policy, intervalsMs: [], everyMs: HOUR, windowMs: 3 * HOUR })).toEqual([
      0,
      HOUR,
      2 * HOUR,
    ]);
  });
});

describe("the next attempt", () => {
  it("is due at the next time of the schedule, and `null` after the last", () => {
    const times = schedule.map((offset, step) => next(step, offset + SECOND)?.at);
    expect(times).toEqual([...ATTEMPT_TIMES.slice(1), undefined]);
  });

  it.each([
    ["a first attempt", 0, 0, 1, "0:16:30"],
    ["an hour's interval", 2, 45 * MINUTE, 3, "1:51"],
    ["two hours", 3, 105 * MINUTE, 4, "3:57"],
    ["eight hours: a tenth would be 48 minutes", 6, 945 * MINUTE, 7, "24:00"],
    ["the last, up to the end of the window", 12, 3825 * MINUTE, 13, "72:00"],
  ])(
    "is delayed by chance for up to a tenth of the interval, at most 15 minutes: %s",
    (_, step, now, to, at) => {
      expect(next(step, now, { random: 1 })).toEqual({ step: to, at });
    },
  );

  it("is never due after the window, however much chance may add", () => {
    const short = { ...policy, intervalsMs: [], everyMs: HOUR, windowMs: 2 * HOUR + MINUTE, jitter: 1 };
    const found = nextStep({
      policy: short,
      schedule: buildSchedule(short),
      startedAt: START,
      step: 1,
      now: START + HOUR,
      random: () => 0.5,
      retryAfterMs: null,
    });
    expect(found).toEqual({ step: 2, dueAt: START + 2 * HOUR + MINUTE });
  });

  it("does not carry the chance of one step over to the next", () => {
    expect(next(1, 16.5 * MINUTE)).toEqual({ step: 2, at: "0:45" });
  });

  it("counts the steps that fell due meanwhile as one", () => {
    expect(next(0, 5 * HOUR)).toEqual({ step: 5, at: "7:45" });
    expect(next(0, 7 * HOUR + 45 * MINUTE)).toEqual({ step: 6, at: "15:45" });
    expect(next(2, 80 * HOUR)).toBeNull();
  });

  it("repeats no step after the clock of the storage was set back", () => {
    const steps = schedule.map((_, step) => next(step, -HOUR)?.step);
    expect(steps).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, undefined]);
  });

  it.each([
    ["earlier than the step: the step stays", 5 * MINUTE, "0:15"],
    ["later than the step", 20 * MINUTE, "0:20"],
    ["later than the following step: capped there", 10 * HOUR, "0:45"],
  ])("heeds Retry-After, %s", (_, retryAfterMs, at) => {
    expect(next(0, 0, { retryAfterMs })).toEqual({ step: 1, at });
  });

  it("heeds Retry-After up to the end of the window at the last step", () => {
    expect(next(12, 64 * HOUR, { retryAfterMs: 100 * HOUR })).toEqual({ step: 13, at: "72:00" });
  });

  it("is never early, never late by more than chance or Retry-After allow, and never outside the window", () => {
    const cases = fc.record({
      any: fc.oneof(fc.constant({ policy, schedule }), policies),
      place: fc.nat(),
      late: fc.oneof(fc.integer({ min: 0, max: HOUR }), fc.integer({ min: 0, max: 100 * HOUR })),
      random: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      retryAfterMs: fc.option(fc.integer({ min: 0, max: 200 * HOUR })),
    });
    fc.assert(
      fc.property(cases, ({ any, place, late, random, retryAfterMs }) => {
        const { windowMs, jitter, maxJitterMs } = any.policy;
        const offsetOf = (step: number): number => any.schedule[step] ?? windowMs;
        const step = place % any.schedule.length;
        const now = START + offsetOf(step) + late;
        const found = nextStep({
          ...any,
          startedAt: START,
          step,
          now,
          random: () => random,
          retryAfterMs,
        });
        expect(found === null).toBe(now >= START + (any.schedule.at(-1) ?? 0));
        if (found === null) return;
        const due = START + offsetOf(found.step);
        const interval = offsetOf(found.step) - offsetOf(found.step - 1);
        const asked = Math.min(now + (retryAfterMs ?? 0), START + offsetOf(found.step + 1));
        expect(found.step).toBeGreaterThan(step);
        expect(due).toBeGreaterThan(now);
        expect(START + offsetOf(found.step - 1)).toBeLessThanOrEqual(now);
        expect(found.dueAt).toBeGreaterThanOrEqual(Math.max(due, asked));
        const latest = due + Math.min(interval * jitter, maxJitterMs);
        expect(found.dueAt).toBeLessThanOrEqual(Math.max(latest, asked));
        expect(found.dueAt).toBeLessThanOrEqual(START + windowMs);
      }),
      { numRuns: 1_000 },
    );
  });

  it("comes thirteen times at most after the first, however an endpoint answers", () => {
    const wishes = fc.array(fc.option(fc.integer({ min: 0, max: 30 * HOUR })), {
      minLength: 20,
      maxLength: 20,
    });
    fc.assert(
      fc.property(
        wishes,
        fc.infiniteStream(fc.double({ min: 0, max: 0.999, noNaN: true })),
        (asked, chance) => {
          const times = [START];
          let step = 0;
          for (const retryAfterMs of asked) {
            const random = (): number => chance.next().value ?? 0;
            const now = times.at(-1) ?? START;
            const found = nextStep({ policy, schedule, startedAt: START, step, now, random, retryAfterMs });
            if (!found) break;
            times.push(found.dueAt);
            step = found.step;
          }
          expect(times.length).toBeLessThanOrEqual(14);
          const last = (times.at(-1) ?? 0) - START;
          // A wish at the last but one step can reach the last one's time, and then stands for it.
          expect(last).toBeGreaterThanOrEqual(71.75 * HOUR);
          expect(last).toBeLessThanOrEqual(72 * HOUR);
        },
      ),
    );
  });
});

describe("Retry-After", () => {
  it.each([
    ["0", 0],
    ["120", 120_000],
    ["9999999999", 9_999_999_999_000],
    ["Thu, 01 Jan 2026 00:02:00 GMT", 120_000],
    ["Thursday, 01-Jan-26 00:02:00 GMT", 120_000],
    ["Thu Jan  1 00:02:00 2026", 120_000],
  ])(
    "is read as seconds or as one of the three forms of a date, wherever the host stands: %s",
    (value, ms) => {
      vi.stubEnv("TZ", "America/New_York");
      onTestFinished(() => {
        vi.unstubAllEnvs();
      });
      expect(new Date(START).getTimezoneOffset()).toBe(300);
      expect(parseRetryAfter(value, START)).toBe(ms);
    },
  );

  it.each([
    undefined,
    "",
    " ",
    "-1",
    "1.5",
    "1e3",
    "99999999999",
    "soon",
    "2026-01-01T00:02:00Z",
    "Thu, 01 Jan 2026 00:00:00 GMT",
    "Wed, 31 Dec 2025 00:00:00 GMT",
    "Thu, 99 Foo 2026 00:02:00 GMT",
    "Thu, 01 Jan 2026 00:02:00 Nowhere",
    "after Thu, 01 Jan 2026 00:02:00 GMT",
    "Thu, 01 Jan 2026 00:02:00 GMT (or so)",
    "1, 2",
  ])("asks for nothing where it is malformed or past: %s", (value) => {
    expect(parseRetryAfter(value, START)).toBeNull();
  });

  it("is a time to come or nothing, whatever an endpoint sends", () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom(..."0123456789 ,:-MonJaGT".split("")) })),
        (value) => {
          const ms = parseRetryAfter(value, START);
          expect(ms === null || (Number.isSafeInteger(ms) && ms >= 0)).toBe(true);
        },
      ),
    );
  });
});

describe("other delays", () => {
  it("doubles the wait for canRead from 5 s up to 15 min", () => {
    const delays = [0, 1, 2, 3, 7, 8, 100, 1e9].map((count) => postponeDelayMs(count) / SECOND);
    expect(delays).toEqual([5, 10, 20, 40, 640, 900, 900, 900]);
  });

  it("holds a delivery back by a step of the schedule from the fifth crash on, longer each time", () => {
    const delays = [1, 2, 3, 4, 5, 6, 7, 10, 11, 500].map(
      (crashes) => crashDelayMs(crashes, policy) / MINUTE,
    );
    expect(delays).toEqual([0, 0, 0, 0, 15, 30, 60, 480, 480, 480]);
  });
});
