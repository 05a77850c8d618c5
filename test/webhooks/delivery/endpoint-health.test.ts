import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  endpointHealth,
  healthStep,
  warningGivenUpAt,
} from "../../../src/webhooks/delivery/endpoint-health.js";
import { failing } from "../../support/failing-endpoint.js";
import {
  clockTime,
  DAY,
  forever,
  HOUR,
  MINUTE,
  SECOND,
  START,
  unreachable,
} from "../../support/webhook-harness.js";

describe("the health decision", () => {
  const policy = { warnAfterMs: 3 * DAY, disableAfterMs: 4 * DAY };
  const ENABLED = "ENABLED" as const;
  const DISABLED = "DISABLED" as const;

  it.each([
    ["well", { status: ENABLED, failingSince: null, warnedAt: null }, DAY, { kind: "none" }],
    [
      "failing",
      { status: ENABLED, failingSince: 0, warnedAt: null },
      3 * DAY - 1,
      { kind: "wait", failingSince: 0, at: 3 * DAY },
    ],
    [
      "failing for three days",
      { status: ENABLED, failingSince: 0, warnedAt: null },
      3 * DAY,
      { kind: "warn", failingSince: 0, disableAt: 4 * DAY },
    ],
    [
      "failing for nine days while nobody looked",
      { status: ENABLED, failingSince: 0, warnedAt: null },
      9 * DAY,
      { kind: "warn", failingSince: 0, disableAt: 10 * DAY },
    ],
    [
      "warned",
      { status: ENABLED, failingSince: 0, warnedAt: 3 * DAY },
      4 * DAY - 1,
      { kind: "wait", failingSince: 0, at: 4 * DAY },
    ],
    [
      "warned a day ago",
      { status: ENABLED, failingSince: 0, warnedAt: 3 * DAY },
      4 * DAY,
      { kind: "disable", failingSince: 0 },
    ],
    [
      "warned late",
      { status: ENABLED, failingSince: 0, warnedAt: 9 * DAY },
      10 * DAY - 1,
      { kind: "wait", failingSince: 0, at: 10 * DAY },
    ],
    [
      "disabled by the service",
      { status: DISABLED, failingSince: 0, warnedAt: 3 * DAY },
      4 * DAY,
      { kind: "announce", failingSince: 0 },
    ],
    [
      "disabled by a user",
      { status: DISABLED, failingSince: null, warnedAt: null },
      9 * DAY,
      { kind: "none" },
    ],
  ])("of an endpoint that is %s", (_, record, now, step) => {
    expect(healthStep(record, policy, now)).toEqual(step);
  });

  it("tries a warning that the host does not take until the endpoint would have been disabled", () => {
    expect(warningGivenUpAt(DAY, policy)).toBe(5 * DAY);
  });
});

describe("the health that is shown of an endpoint", () => {
  const policy = { warnAfterMs: 3 * DAY, disableAfterMs: 4 * DAY };
  const ENABLED = "ENABLED" as const;
  const DISABLED = "DISABLED" as const;

  it.each([
    [{ status: ENABLED, failingSince: null, warnedAt: null }, ["ok", null, null, null]],
    [{ status: ENABLED, failingSince: DAY, warnedAt: null }, ["failing", DAY, 4 * DAY, 5 * DAY]],
    [{ status: ENABLED, failingSince: DAY, warnedAt: 4 * DAY }, ["warned", DAY, 4 * DAY, 5 * DAY]],
    [{ status: ENABLED, failingSince: DAY, warnedAt: 9 * DAY }, ["warned", DAY, 9 * DAY, 10 * DAY]],
    [{ status: DISABLED, failingSince: DAY, warnedAt: 4 * DAY }, ["disabled", DAY, null, null]],
    [{ status: DISABLED, failingSince: null, warnedAt: null }, ["disabled", null, null, null]],
  ] as const)("of %o is %j", (record, [status, failingSince, warnAt, disableAt]) => {
    expect(endpointHealth(record, policy)).toEqual({ status, failingSince, warnAt, disableAt });
  });

  it("names the times at which the steps are taken, under any policy", () => {
    const cases = fc.record({
      warnAfterMs: fc.integer({ min: 1, max: 9 * DAY }),
      betweenMs: fc.nat(9 * DAY),
      lateMs: fc.option(fc.nat(30 * DAY)),
      failingSince: fc.nat(30 * DAY),
    });
    fc.assert(
      fc.property(cases, ({ warnAfterMs, betweenMs, lateMs, failingSince }) => {
        const any = { warnAfterMs, disableAfterMs: warnAfterMs + betweenMs };
        const warnedAt = lateMs === null ? null : failingSince + warnAfterMs + lateMs;
        const record = { status: ENABLED, failingSince, warnedAt };
        const { warnAt, disableAt } = endpointHealth(record, any);
        const at = (warnedAt === null ? warnAt : disableAt) ?? 0;
        expect(healthStep(record, any, at - 1)).toEqual({ kind: "wait", failingSince, at });
        expect(healthStep(record, any, at)).toEqual(
          warnedAt === null ? { kind: "warn", failingSince, disableAt } : { kind: "disable", failingSince },
        );
      }),
    );
  });
});

describe("an endpoint that fails for days", () => {
  it("is warned of 72 h after its first failure and disabled 24 h later, once each, with no attempt at either time", async () => {
    const { emit, run, told, sent, webhooks, id, runUntil } = await failing();
    await run(7 * MINUTE);
    await emit();
    await run(30 * DAY);
    expect(told).toEqual([
      ["warning", "72:07", "0:07"],
      ["disabled", "96:07", "0:07"],
    ]);
    const times = sent.map(({ at }) => clockTime(at - START));
    expect(times).not.toContain("72:07");
    expect(times).not.toContain("96:07");
    expect(await webhooks.registrations.get(id)).toMatchObject({
      status: "DISABLED",
      updatedAt: new Date(START + 96 * HOUR + 7 * MINUTE),
      failingSince: new Date(START + 7 * MINUTE),
    });
    await runUntil(START + 60 * DAY);
    expect(told).toHaveLength(2);
  });

  it("is warned of and disabled on time when that is sooner than the next look for due steps", async () => {
    const { emit, run, told } = await failing({
      options: { endpoints: { warnAfterMs: 5 * MINUTE, disableAfterMs: 12 * MINUTE } },
    });
    await run(7 * MINUTE);
    await emit();
    await run(HOUR);
    expect(told).toEqual([
      ["warning", "0:12", "0:07"],
      ["disabled", "0:19", "0:07"],
    ]);
  });

  it("is told of with its id and when it will be disabled, and without its secret", async () => {
    const events: object[] = [];
    const { emit, run, id } = await failing({
      options: {
        notify: {
          warning: (event) => {
            events.push(event);
          },
        },
      },
    });
    await emit();
    await run(4 * DAY);
    expect(events).toEqual([
      {
        webhook: expect.objectContaining({
          id,
          status: "ENABLED",
          url: "https://hooks.example.com/a",
        }) as unknown,
        failingSince: new Date(START),
        lastFailure: {
          at: expect.any(Date) as unknown,
          kind: "http",
          status: 500,
          code: "HTTP_500",
        },
        // The only delivery had its last attempt a quarter of an hour before.
        pending: 0,
        disableAt: new Date(START + 4 * DAY),
        retriedUntil: new Date(START + 4 * DAY),
      },
    ]);
    expect(JSON.stringify(events)).not.toContain("whsec_");
  });

  it("is disabled also where the host wants to hear of nothing", async () => {
    const { emit, run, webhooks, id } = await failing({ options: { notify: {} }, answer: () => unreachable });
    await emit();
    await run(4 * DAY);
    expect((await webhooks.registrations.get(id)).status).toBe("DISABLED");
  });

  it("counts from the failure, not from when it was first asked", async () => {
    const { emit, run, told, respond } = await failing({ answer: () => 200 });
    await emit();
    await run(DAY);
    respond(() => 500);
    await emit();
    await run(5 * DAY);
    expect(told).toEqual([
      ["warning", "96:00", "24:00"],
      ["disabled", "120:00", "24:00"],
    ]);
  });

  it.each([72, 95])(
    "is cleared by a 2xx after %i h, and then counts from its next failure",
    async (hours) => {
      const { emit, runUntil, told, respond, record, id } = await failing();
      await emit();
      await runUntil(START + hours * HOUR - SECOND);
      const before = told.length;
      respond(() => 204);
      await emit();
      await runUntil(START + 10 * DAY);
      expect(told).toHaveLength(before);
      expect(await record(id)).toMatchObject({
        status: "ENABLED",
        failingSince: null,
        warnedAt: null,
        noticeAt: null,
      });
      respond(() => 500);
      await emit();
      await runUntil(START + 20 * DAY);
      expect(told.slice(before)).toEqual([
        ["warning", "312:00", "240:00"],
        ["disabled", "336:00", "240:00"],
      ]);
    },
  );

  it.each([
    ["a new url", { url: "https://hooks.example.com/b" }],
    ["disabling and enabling", { status: "ENABLED" as const }],
  ])("gets a clean record by %s after the warning", async (_, change) => {
    const { emit, runUntil, told, webhooks, record, id } = await failing();
    await emit();
    await runUntil(START + 73 * HOUR);
    expect(told).toHaveLength(1);
    if ("status" in change) await webhooks.registrations.update({ id, status: "DISABLED" });
    await webhooks.registrations.update({ id, ...change });
    expect(await record(id)).toMatchObject({ failingSince: null, warnedAt: null, noticeAt: null });
    await runUntil(START + 10 * DAY);
    expect(told).toHaveLength(1);
    await emit();
    await runUntil(START + 20 * DAY);
    expect(told.slice(1)).toEqual([
      ["warning", "312:00", "240:00"],
      ["disabled", "336:00", "240:00"],
    ]);
  });

  it("is not heard of any more once a user has disabled or deleted it", async () => {
    const { emit, runUntil, told, webhooks, id, register } = await failing();
    const other = await register("https://hooks.example.com/other");
    await emit();
    await runUntil(START + 71 * HOUR);
    await webhooks.registrations.update({ id, status: "DISABLED" });
    await webhooks.registrations.remove(other.id);
    await runUntil(START + 10 * DAY);
    expect(told).toEqual([]);
  });

  it("can be re-enabled after the service disabled it, and starts afresh", async () => {
    const { emit, runUntil, told, webhooks, id } = await failing();
    await emit();
    await runUntil(START + 5 * DAY);
    await webhooks.registrations.update({ id, status: "ENABLED" });
    await emit();
    await runUntil(START + 7 * DAY);
    expect(told).toHaveLength(2);
    await runUntil(START + 10 * DAY);
    expect(told.slice(2)).toEqual([
      ["warning", "192:00", "120:00"],
      ["disabled", "216:00", "120:00"],
    ]);
  });

  it("is warned of late, and still gets its 24 h, where no process ran for days", async () => {
    const { emit, clock, runUntil, told, webhooks } = await failing();
    await emit();
    await runUntil(START + HOUR);
    await webhooks.stop();
    await clock.advance(9 * DAY - HOUR);
    await webhooks.start();
    await runUntil(START + 20 * DAY);
    expect(told).toEqual([
      ["warning", "216:00", "0:00"],
      ["disabled", "240:00", "0:00"],
    ]);
  });

  it("is warned of on time while the notifier of another one hangs", async () => {
    const { emit, runUntil, told, register } = await failing({}, (count) =>
      count === 1 ? forever() : undefined,
    );
    await emit();
    await register("https://hooks.example.com/b", "hospital");
    await runUntil(START + 72 * HOUR + 2 * SECOND);
    expect(told).toHaveLength(1);
    await emit({ account: "hospital" });
    await runUntil(START + 72 * HOUR + 10 * MINUTE);
    await runUntil(START + 200 * HOUR);
    expect(told.filter(([, , since]) => since !== "0:00")).toEqual([
      ["warning", "144:00:02", "72:00:02"],
      ["disabled", "168:00:02", "72:00:02"],
    ]);
  });

  it("is one of a hundred that are all warned of at once", async () => {
    const many = await failing();
    for (let count = 0; count < 99; count++)
      await many.register(`https://hooks.example.com/${count}`, `clinic-${count}`);
    for (let count = 0; count < 99; count++) await many.emit({ account: `clinic-${count}` });
    await many.emit();
    await many.runUntil(START + 5 * DAY);
    expect(many.told).toHaveLength(200);
    expect(new Set(many.told.slice(0, 100).map(String))).toEqual(new Set(["warning,72:00,0:00"]));
  });
});
