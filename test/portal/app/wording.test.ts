import { describe, expect, it } from "vitest";
import { estimatePercentile, fillHours, summariseHours } from "../../../src/portal/app/times.js";
import {
  describeAction,
  describeAttempt,
  describeCause,
  describeHealth,
  describeReason,
  formatSuccessRate,
  getNextAttempt,
  labelHealth,
  labelState,
  nameWebhook,
  needsAttention,
  quoteAnswer,
  sortByUrgency,
  splitUrl,
  summariseWebhooks,
} from "../../../src/portal/app/webhooks/wording.js";
import { failedAttempt, HOUR, healthyStats, pendingDelivery, toIso } from "./support.js";

const failing = healthyStats({
  health: {
    status: "failing",
    failingSince: toIso(0),
    warnAt: toIso(72 * HOUR),
    disableAt: toIso(96 * HOUR),
  },
  lastAttempt: failedAttempt,
});
const disabled = healthyStats({
  health: { status: "disabled", failingSince: toIso(0), warnAt: null, disableAt: null },
});
const untried = healthyStats({ lastAttempt: null });
const moved = healthyStats({ lastAttempt: failedAttempt });

describe("the health of a webhook in words", () => {
  it("is unstable below 95 % of the attempts of a day, although the last one succeeded", () => {
    const label = (succeeded: number, attempts: number) =>
      labelHealth(healthyStats({ lastDay: { attempts, succeeded, averageMs: 1 } }));
    expect([label(0, 0), label(95, 100), label(94, 100), label(736, 1_000)]).toEqual([
      "Healthy",
      "Healthy",
      "Unstable",
      "Unstable",
    ]);
    const unstable = healthyStats({ lastDay: { attempts: 1_000, succeeded: 736, averageMs: 1 } });
    expect(describeHealth(unstable, "UTC")).toContain("73.6% of the attempts");
    expect(summariseWebhooks([{ status: "ENABLED", stats: unstable }])).toBe("1 unstable, 1 of 1 enabled");
  });

  it("needs nobody's attention if somebody disabled it on purpose", () => {
    const onPurpose = { ...disabled, health: { ...disabled.health, failingSince: null } };
    expect([healthyStats(), untried, failing, disabled, moved, onPurpose].map(needsAttention)).toEqual([
      false,
      false,
      true,
      true,
      true,
      false,
    ]);
  });

  it("has a word for each state", () => {
    expect([healthyStats(), failing, disabled, untried, moved].map(labelHealth)).toEqual([
      "Healthy",
      "Failing",
      "Disabled",
      "Not tried yet",
      "Needs a test",
    ]);
  });

  it("says since when it fails, and what happens when", () => {
    expect(describeHealth(failing, "UTC")).toBe(
      "Failing since 1 Jan, 00:00. Operator e-mail on 4 Jan, 00:00. Disabled on 5 Jan, 00:00 unless it recovers.",
    );
    const warned = { ...failing, health: { ...failing.health, status: "warned" } } as const;
    expect(describeHealth(warned, "UTC")).toContain("Operator e-mail was sent on 4 Jan, 00:00.");
    expect(describeHealth(disabled, "UTC")).toBe("Nothing is sent. Failing since 1 Jan, 00:00.");
  });

  it("puts problems first in the list and in its summary", () => {
    const webhooks = [healthyStats(), untried, disabled, failing].map((stats, id) => ({
      id,
      status: stats === disabled ? ("DISABLED" as const) : ("ENABLED" as const),
      stats,
    }));
    expect(sortByUrgency(webhooks).map(({ id }) => id)).toEqual([3, 2, 0, 1]);
    expect(summariseWebhooks(webhooks)).toBe("1 failing, 1 disabled, 3 of 4 enabled");
    expect(summariseWebhooks(webhooks.slice(0, 1))).toBe("1 of 1 enabled");
  });

  it("never rounds a success rate up to 100 %", () => {
    const rate = (attempts: number, succeeded: number) => formatSuccessRate({ attempts, succeeded });
    expect([rate(0, 0), rate(2, 2), rate(10_000, 9_999), rate(3, 2)]).toEqual([
      "–",
      "100%",
      "99.9%",
      "66.6%",
    ]);
  });
});

describe("the next attempt of a webhook", () => {
  it("is that of its deliveries, and does not exist while it is disabled", () => {
    expect(getNextAttempt({ status: "ENABLED" }, toIso(HOUR))).toBe(toIso(HOUR));
    expect(getNextAttempt({ status: "ENABLED" }, null)).toBeNull();
    expect(getNextAttempt({ status: "DISABLED" }, toIso(HOUR))).toBeNull();
  });
});

describe("deliveries and attempts in words", () => {
  it("say what an attempt came to", () => {
    expect(describeAttempt({ ...failedAttempt, kind: "delivered", status: 204, durationMs: 38 })).toBe(
      "Delivered: HTTP 204 in 38 ms",
    );
    expect(describeAttempt(failedAttempt)).toBe("Failed: HTTP 500 in 812 ms");
    const refused = { ...failedAttempt, kind: "connect", status: null, code: "ECONNREFUSED" } as const;
    expect(describeAttempt(refused)).toBe("Failed: no connection (ECONNREFUSED)");
    const late = { ...failedAttempt, kind: "timeout", status: null, code: "ETIMEDOUT", durationMs: 15_000 };
    expect(describeAttempt(late as typeof refused)).toBe("Failed: no answer in time after 15 s (ETIMEDOUT)");
  });

  it("call a test a test, and never speak of its schedule", () => {
    const test = pendingDelivery({ type: "webhook.test", state: "failed" });
    expect(labelState(test).label).toBe("Test failed");
    expect(labelState({ ...test, state: "delivered" }).label).toBe("Test delivered");
    expect(describeReason("test_failed")).not.toMatch(/schedule/);
  });

  it("tell a retried delivery from one that waits for its first attempt", () => {
    expect(labelState(pendingDelivery()).label).toBe("Pending");
    expect(labelState(pendingDelivery({ attemptCount: 2 })).label).toBe("Retrying");
  });

  it("leave the query of an address out, which may hold a secret", () => {
    expect(splitUrl("https://hooks.example.com/in?token=abc")).toEqual({
      host: "hooks.example.com",
      path: "/in?…",
    });
    expect(splitUrl("https://hooks.example.com/")).toEqual({ host: "hooks.example.com", path: "" });
  });
});

describe("the name of a webhook", () => {
  const url = "https://hooks.example.com/in?token=s3cret";

  it("is its description, or its address without the query", () => {
    expect(nameWebhook({ description: " Ward 3 ", url })).toEqual({ name: "Ward 3", isNamed: true });
    for (const description of [null, "", " \u00a0 "])
      expect(nameWebhook({ description, url })).toEqual({ name: "hooks.example.com/in?…", isNamed: false });
  });
});

describe("an entry of the audit log in words", () => {
  const entry = (fields: object) =>
    describeAction({
      ...{ at: toIso(0), action: "webhook.created", actor: { type: "host" }, webhookId: "w" },
      ...fields,
    } as Parameters<typeof describeAction>[0]).join("W");

  it("says what was done, with the names, the reason or the number", () => {
    expect(entry({})).toBe("The application registered W.");
    const actor = { type: "key", id: "ada" };
    expect(entry({ action: "webhook.changed", actor, fields: ["url", "eventTypes", "other"] })).toBe(
      "Key ada changed the settings of W: URL, event types, other.",
    );
    expect(entry({ action: "webhook.recovered", count: 0 })).toBe(
      "The application recovered missed events of W: 0.",
    );
    expect(entry({ action: "webhook.rotation_finished" })).toBe(
      "The application let the new secret of W sign.",
    );
    expect(entry({ action: "delivery.failed", actor: { type: "service" }, reason: "exhausted" })).toBe(
      "Postbell gave up a delivery to W: all attempts of the schedule failed.",
    );
    expect(entry({ action: "delivery.withheld", actor: { type: "service" }, reason: "new_reason" })).toBe(
      "Postbell withheld a delivery to W: new_reason.",
    );
    expect(entry({ action: "webhook.painted" })).toBe("The application: webhook.painted, W.");
  });
});

describe("what an endpoint answered", () => {
  it("is quoted in its own words, from JSON or from plain text", () => {
    const quote = (value: unknown) => quoteAnswer(JSON.stringify(value));
    expect(quote({ error: { code: "E_DISK_FULL", message: "The database is full." } })).toBe(
      "The database is full.",
    );
    expect(quote({ type: "about:blank", title: "Gone", detail: "Moved to /archive" })).toBe(
      "Moved to /archive",
    );
    expect(quoteAnswer("<h1>Bad\n  gateway</h1>")).toBe("Bad gateway");
    expect(quoteAnswer('{"error":{"message":"The data')).toBe('{"error":{"message":"The data');
    expect([quoteAnswer(null), quoteAnswer(" \n")]).toEqual([undefined, undefined]);
    expect(quote({ message: "x".repeat(10_000) })).toHaveLength(160);
    expect(describeCause({ ...failedAttempt, excerpt: "The disk is full" })).toBe(
      "HTTP 500 “The disk is full”",
    );
    expect(describeCause(failedAttempt)).toBe("HTTP 500");
  });

  it("may be any JSON, however deep or strange", () => {
    for (const text of [
      "null",
      "[]",
      "12",
      "[".repeat(5_000),
      `${'{"error":'.repeat(500)}1${"}".repeat(500)}`,
    ])
      expect(quoteAnswer(text)).toMatch(/./);
  });
});

describe("the hours of a webhook", () => {
  const hour = (at: number, delivered: number, failed: number, p95: number | null) => ({
    ...{ at: toIso(at * HOUR), delivered, failed, p50: p95, p95 },
  });
  const hours = [hour(1, 90, 10, 100), hour(3, 10, 0, 1_200)];

  it("are filled up to now, with nothing for an hour without attempts", () => {
    const filled = fillHours(hours, 3.5 * HOUR, 3);
    expect(filled.map(({ from, delivered }) => [from / HOUR, delivered])).toEqual([
      [1, 90],
      [2, 0],
      [3, 10],
    ]);
    expect(fillHours(hours, 4 * HOUR, 2).map(({ delivered }) => delivered)).toEqual([10, 0]);
  });

  it("have an estimated percentile, weighted by their attempts", () => {
    const filled = fillHours(hours, 3.5 * HOUR, 3);
    expect(estimatePercentile(filled, "p95")).toBe((100 * 100 + 1_200 * 10) / 110);
    expect(estimatePercentile(fillHours([hour(1, 5, 0, null)], HOUR, 1), "p95")).toBeNull();
    expect(estimatePercentile([], "p50")).toBeNull();
  });

  it("are summed up in a sentence", () => {
    const filled = fillHours(hours, 3.5 * HOUR, 24);
    expect(summariseHours(filled, "UTC")).toBe(
      "In 24 hours 100 delivered, 10 failed attempts, the most at 1 Jan, 01:00.",
    );
    expect(summariseHours([], "UTC")).toBe("In 0 hours 0 delivered, 0 failed attempts.");
  });
});
