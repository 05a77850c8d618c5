import { describe, expect, it } from "vitest";
import {
  chooseDeliveries,
  getStopTime,
  labelTimes,
  placeOf,
  planAttempts,
  selectRange,
} from "../../../src/portal/app/webhooks/plan.js";
import { failedAttempt, HOUR, healthyStats, pendingDelivery, toIso } from "./support.js";

const SCHEDULE = [0, 1 * HOUR, 3 * HOUR, 7 * HOUR];

describe("the attempts that are planned", () => {
  it("are the next one, however late chance made it, and the rest of the schedule", () => {
    const next = 1 * HOUR + 300_000;
    const delivery = pendingDelivery({ nextAttemptAt: toIso(next) });
    expect(planAttempts(delivery, SCHEDULE)).toEqual([next, 3 * HOUR, 7 * HOUR]);
  });

  it("count from the first attempt if none was made", () => {
    const fresh = pendingDelivery({ startedAt: null, nextAttemptAt: toIso(10) });
    expect(planAttempts(fresh, SCHEDULE)).toEqual([10, 10 + 1 * HOUR, 10 + 3 * HOUR, 10 + 7 * HOUR]);
  });

  it("do not exist for a completed delivery, and are one for a test", () => {
    expect(planAttempts(pendingDelivery({ state: "failed", nextAttemptAt: null }), SCHEDULE)).toEqual([]);
    const test = pendingDelivery({ type: "webhook.test", startedAt: null });
    expect(planAttempts(test, SCHEDULE)).toEqual([1 * HOUR]);
  });
});

describe("the timeline", () => {
  it("shows deliveries in trouble on top, each once, then the newest", () => {
    const fine = [1, 2, 3].map((n) =>
      pendingDelivery({ id: `fine-${n}`, state: "delivered", createdAt: toIso(n) }),
    );
    const bad = pendingDelivery({ id: "bad", attemptCount: 1, lastAttempt: failedAttempt });
    const chosen = chooseDeliveries([bad, ...fine, bad], 3);
    expect(chosen.map(({ id }) => id)).toEqual(["bad", "fine-3", "fine-2"]);
  });

  it("goes from 2 hours ago to 24 hours ahead, or over everything", () => {
    const now = 100 * HOUR;
    expect(selectRange("day", now, [0])).toEqual({ from: 98 * HOUR, to: 124 * HOUR });
    expect(selectRange("all", now, [90 * HOUR, 190 * HOUR])).toEqual({ from: 88 * HOUR, to: 192 * HOUR });
  });

  it("places times in per cent of its width", () => {
    const range = { from: 0, to: 48 * HOUR };
    expect([0, 24 * HOUR, 36 * HOUR].map((at) => placeOf(at, range))).toEqual([0, 50, 75]);
  });

  it("labels round times, and midnight by its day", () => {
    const range = { from: 6 * HOUR, to: 54 * HOUR };
    expect(labelTimes(range, "UTC").map(({ text }) => text)).toEqual(["12:00", "2 Jan", "12:00", "3 Jan"]);
  });

  it("stops planning when the webhook is disabled", () => {
    const disableAt = toIso(5 * HOUR);
    const health = { status: "failing", failingSince: toIso(0), warnAt: null, disableAt } as const;
    expect(getStopTime(healthyStats())).toBeNull();
    expect(getStopTime(healthyStats({ health }))).toBe(5 * HOUR);
    expect(getStopTime(healthyStats({ health: { ...health, status: "disabled" } }))).toBeLessThan(0);
  });
});
