import { describe, expect, it } from "vitest";
import { findDeliveries } from "../../portal/app/webhooks/log.js";
import { plannedAttempts, plotted, ticks, toDomain } from "../../portal/app/webhooks/plan.js";
import type { DeliveryJson, DeliveryPage } from "../../portal/shapes.js";

const HOUR = 3_600_000;
const at = (ms: number): string => new Date(ms).toISOString();
const SCHEDULE = [0, 1 * HOUR, 3 * HOUR, 7 * HOUR];

const delivery = (changes: Partial<DeliveryJson>): DeliveryJson => ({
  id: "d",
  eventId: "e",
  type: "patient.updated",
  state: "pending",
  reason: null,
  createdAt: at(0),
  startedAt: at(0),
  nextAttemptAt: at(1 * HOUR),
  endedAt: null,
  attempts: [],
  ...changes,
});
const failed = {
  at: at(0),
  durationMs: 1,
  step: 0,
  isExtra: false,
  kind: "http",
  status: 500,
  code: "HTTP_500",
  excerpt: null,
};

describe("the attempts that are planned", () => {
  it("are the next one, however late chance made it, and the rest of the schedule", () => {
    const next = 1 * HOUR + 300_000;
    expect(plannedAttempts(delivery({ nextAttemptAt: at(next) }), SCHEDULE)).toEqual([
      next,
      3 * HOUR,
      7 * HOUR,
    ]);
  });

  it("count from the first attempt where none was made", () => {
    const fresh = delivery({ startedAt: null, nextAttemptAt: at(10) });
    expect(plannedAttempts(fresh, SCHEDULE)).toEqual([10, 10 + 1 * HOUR, 10 + 3 * HOUR, 10 + 7 * HOUR]);
  });

  it("are zero for a completed delivery, and one for a test", () => {
    expect(plannedAttempts(delivery({ state: "failed", nextAttemptAt: null }), SCHEDULE)).toEqual([]);
    expect(plannedAttempts(delivery({ type: "webhook.test", startedAt: null }), SCHEDULE)).toEqual([
      1 * HOUR,
    ]);
  });
});

describe("the plot", () => {
  it("has room for those in trouble first, shows each once, and the newest on top", () => {
    const fine = [1, 2, 3].map((n) => delivery({ id: `fine-${n}`, state: "delivered", createdAt: at(n) }));
    const bad = delivery({ id: "bad", createdAt: at(0), attempts: [failed] });
    expect(plotted([bad, ...fine, bad], 3).map(({ id }) => id)).toEqual(["fine-3", "fine-2", "bad"]);
  });

  it("marks round times of the visitor's clock", () => {
    const { step, at: times } = ticks(0, 24 * HOUR, 5, 2 * HOUR);
    expect(step).toBe(6 * HOUR);
    expect(times).toEqual([4, 10, 16, 22].map((hours) => hours * HOUR));
  });

  it("goes over all there is, or around now", () => {
    const now = 100 * HOUR;
    expect(toDomain("day", now, [0])).toEqual([88 * HOUR, 112 * HOUR]);
    const [from, to] = toDomain("all", now, [90 * HOUR, 190 * HOUR]);
    expect([from, to]).toEqual([88 * HOUR, 192 * HOUR]);
  });
});

describe("deliveries that a filter finds", () => {
  const pages: readonly DeliveryPage[] = [
    { deliveries: [], next: "1" },
    { deliveries: [delivery({ id: "a" })], next: "2" },
    { deliveries: [delivery({ id: "b" })], next: "3" },
    { deliveries: [delivery({ id: "c" })], next: null },
  ];
  const find = async (most: number, given = pages) => {
    const asked: unknown[] = [];
    const get = async (_path: string, query: Readonly<Record<string, unknown>> = {}) => {
      asked.push(query);
      return given[Number(query["cursor"] ?? 0) % given.length] as never;
    };
    const { deliveries, next } = await findDeliveries(
      { get },
      "webhooks/w",
      { state: "failed" },
      { limit: most },
    );
    return { ids: deliveries.map(({ id }) => id), next, asked };
  };

  it("are looked for beyond pages that come back short", async () => {
    expect(await find(2)).toEqual({
      ids: ["a", "b"],
      next: "3",
      asked: [
        { state: "failed", cursor: undefined, limit: 2 },
        { state: "failed", cursor: "1", limit: 2 },
        { state: "failed", cursor: "2", limit: 1 },
      ],
    });
    expect(await find(20)).toMatchObject({ ids: ["a", "b", "c"], next: null });
  });

  it("are not looked for without end", async () => {
    const { asked, next } = await find(20, [{ deliveries: [], next: "0" }]);
    expect([asked.length, next]).toEqual([20, "0"]);
  });
});
