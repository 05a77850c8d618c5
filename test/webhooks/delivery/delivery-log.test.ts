import { describe, expect, it } from "vitest";
import { PostbellError } from "../../../src/core/errors.js";
import type { EventInput } from "../../../src/index.js";
import { parseEventTime } from "../../../src/webhooks/call-arguments.js";
import {
  DAY,
  forever,
  type Harness,
  HOUR,
  holdingEndpoint,
  MINUTE,
  openHarness,
  SECOND,
  START,
  startHarness,
  unreachable,
} from "../../support/webhook-harness.js";

const PUNCTUAL = { retry: { jitter: 0 } };
const since = new Date(START);

const observation: Partial<EventInput> = {
  type: "observation.created",
  resource: { resourceType: "Observation", id: "o1" },
};

/** One delivery that failed for good, three days later. */
async function failed(): Promise<Harness & { webhookId: string; deliveryId: string }> {
  const harness = await startHarness({ answer: () => unreachable, options: PUNCTUAL });
  const { id } = await harness.register();
  const eventId = await harness.emit();
  await harness.runUntil(START + 72 * HOUR - MINUTE);
  return { ...harness, webhookId: id, deliveryId: `${id}.${eventId}` };
}

describe("the log of deliveries", () => {
  it("shows what was sent when, and what came back", async () => {
    const { register, emit, run, respond, webhooks } = await startHarness({
      answer: () => unreachable,
      options: PUNCTUAL,
    });
    const { id } = await register();
    const eventId = await emit();
    await run(MINUTE);
    respond(() => 204);
    await run(HOUR);
    const expected = {
      id: `${id}.${eventId}`,
      webhookId: id,
      eventId,
      type: "patient.updated",
      subject: "Patient/1",
      tags: [],
      state: "delivered",
      reason: null,
      createdAt: new Date(START),
      startedAt: new Date(START),
      nextAttemptAt: null,
      endedAt: new Date(START + 15 * MINUTE),
      attempts: [
        {
          at: new Date(START),
          durationMs: 0,
          step: 0,
          isExtra: false,
          kind: "connect",
          status: null,
          code: "ECONNREFUSED",
          excerpt: null,
        },
        {
          at: new Date(START + 15 * MINUTE),
          durationMs: 0,
          step: 1,
          isExtra: false,
          kind: "delivered",
          status: 204,
          code: "HTTP_204",
          excerpt: null,
        },
      ],
    };
    expect(await webhooks.deliveries.get(`${id}.${eventId}`)).toEqual(expected);
    expect(await webhooks.deliveries.list({ webhookId: id })).toEqual({ items: [expected], next: null });
  });

  it("shows a delivery that nobody has attempted yet as not started", async () => {
    const { register, emit, webhooks } = openHarness();
    const { id } = await register();
    const eventId = await emit();
    expect(await webhooks.deliveries.get(`${id}.${eventId}`)).toMatchObject({
      state: "pending",
      startedAt: null,
      nextAttemptAt: new Date(START),
      endedAt: null,
      attempts: [],
    });
  });

  it("comes newest first, page by page, by state and by type", async () => {
    const { register, emit, quiet, respond, webhooks } = await startHarness();
    const { id } = await register();
    const ids: string[] = [];
    for (let count = 0; count < 5; count++) ids.unshift(await emit());
    await quiet();
    respond(() => 500);
    const pending = await emit(observation);
    await quiet();
    const { deliveries } = webhooks;
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await deliveries.list({ webhookId: id, limit: 2, cursor });
      expect(page.items).toHaveLength(2);
      seen.push(...page.items.map(({ eventId }) => eventId));
      cursor = page.next ?? undefined;
    } while (cursor !== undefined);
    expect(seen).toEqual([pending, ...ids]);
    const of = async (filter: object): Promise<string[]> =>
      (await deliveries.list({ webhookId: id, ...filter })).items.map(({ eventId }) => eventId);
    expect(await of({ state: "pending" })).toEqual([pending]);
    expect(await of({ state: "delivered" })).toEqual(ids);
    expect(await of({ state: "delivered", type: "observation.created" })).toEqual([]);
    expect(await of({ type: "patient.updated", limit: 1 })).toEqual(ids.slice(0, 1));
  });

  it.each([
    ["an unknown state", { state: "lost" }, "invalid_argument", "state"],
    ["an unknown type", { type: "patient.update" }, "unknown_event_type", "type"],
    ["a pattern of types", { type: "patient.*" }, "unknown_event_type", "type"],
    ["a type that is no name", { type: 7 }, "invalid_request", "type"],
    ["an invalid since", { since: "yesterday" }, "invalid_argument", "since"],
    ["an invalid until", { until: Number.NaN }, "invalid_argument", "until"],
    ["a limit of 0", { limit: 0 }, "invalid_request", "limit"],
    ["a limit of 101", { limit: 101 }, "invalid_request", "limit"],
    ["a limit of 1.5", { limit: 1.5 }, "invalid_request", "limit"],
    ["an invalid cursor", { cursor: "x" }, "invalid_argument", "cursor"],
  ])("refuses %s", async (_, filter, code, field) => {
    const { register, webhooks } = openHarness();
    const { id } = await register();
    const request = { webhookId: id, ...filter } as Parameters<typeof webhooks.deliveries.list>[0];
    await expect(webhooks.deliveries.list(request)).rejects.toMatchObject({ code, field });
  });

  it("knows nothing of what does not exist", async () => {
    const { register, webhooks } = openHarness();
    const { id } = await register();
    const { deliveries } = webhooks;
    for (const unknown of ["", "x", id, `${id}.`, `${id}.${id}`, `${id}.${id}.1`]) {
      await expect(deliveries.get(unknown)).rejects.toMatchObject({ code: "not_found" });
      await expect(deliveries.resend({ id: unknown })).rejects.toMatchObject({ code: "not_found" });
    }
    await expect(deliveries.list({ webhookId: "x" })).rejects.toMatchObject({ code: "not_found" });
    await expect(deliveries.recover({ webhookId: "x", since })).rejects.toMatchObject({ code: "not_found" });
  });
});

describe("resend()", () => {
  it("makes an extra attempt of a pending delivery at once, and its schedule goes on as it was", async () => {
    const { register, emit, run, webhooks, times } = await startHarness({
      answer: () => 500,
      options: PUNCTUAL,
    });
    const { id } = await register();
    const eventId = await emit();
    await run(5 * MINUTE);
    expect(await webhooks.deliveries.resend({ id: `${id}.${eventId}` })).toEqual({ id: `${id}.${eventId}` });
    await run(HOUR);
    expect(times()).toEqual(["0:00", "0:05", "0:15", "0:45"]);
    const { attempts } = await webhooks.deliveries.get(`${id}.${eventId}`);
    expect(attempts.map(({ step, isExtra }) => [step, isExtra])).toEqual([
      [0, false],
      [1, true],
      [1, false],
      [2, false],
    ]);
  });

  it("ends a pending delivery where the extra attempt succeeds", async () => {
    const { register, emit, run, respond, webhooks, times } = await startHarness({ answer: () => 500 });
    const { id } = await register();
    const eventId = await emit();
    await run(5 * MINUTE);
    respond(() => 200);
    await webhooks.deliveries.resend({ id: `${id}.${eventId}` });
    await run(DAY);
    expect(times()).toEqual(["0:00", "0:05"]);
  });

  it("adds no attempt to a delivery that is due, and is refused while one is in flight", async () => {
    const { register, emit, quiet, webhooks, sent } = openHarness({ answer: () => forever() });
    const { id } = await register();
    const eventId = await emit();
    await webhooks.deliveries.resend({ id: `${id}.${eventId}` });
    await webhooks.start();
    await quiet();
    await expect(webhooks.deliveries.resend({ id: `${id}.${eventId}` })).rejects.toMatchObject({
      code: "attempt_in_flight",
    });
    await quiet();
    expect(sent).toHaveLength(1);
  });

  it("makes a new delivery while one is in flight only if it is forced", async () => {
    const { register, emit, quiet, webhooks, sent } = await startHarness({ answer: () => forever() });
    const { id } = await register();
    const eventId = await emit();
    await quiet();
    const resent = await webhooks.deliveries.resend({ id: `${id}.${eventId}`, force: true });
    expect(resent).toEqual({ id: `${id}.${eventId}.1` });
    await quiet();
    expect(sent.map((one) => one.eventId)).toEqual([eventId, eventId]);
    await expect(
      webhooks.deliveries.resend({ id: `${id}.${eventId}`, force: "yes" as unknown as boolean }),
    ).rejects.toMatchObject({ code: "invalid_request", field: "force" });
  });

  it("makes a new delivery of one that was delivered, with a schedule of its own", async () => {
    const { register, emit, run, respond, webhooks, times } = await startHarness({ options: PUNCTUAL });
    const { id } = await register();
    const eventId = await emit();
    await run(HOUR);
    respond(() => 500);
    const again = await webhooks.deliveries.resend({ id: `${id}.${eventId}` });
    expect(again).toEqual({ id: `${id}.${eventId}.1` });
    await run(HOUR);
    expect(times()).toEqual(["0:00", "1:00", "1:15", "1:45"]);
    expect(await webhooks.deliveries.get(`${id}.${eventId}`)).toMatchObject({ state: "delivered" });
    expect(await webhooks.deliveries.get(again.id)).toMatchObject({ state: "pending", eventId });
    // A new one is pending: that one is sent again.
    expect(await webhooks.deliveries.resend({ id: `${id}.${eventId}` })).toEqual(again);
    await run(MINUTE);
    expect(times().at(-1)).toBe("2:00");
  });

  it("makes a new delivery of one that has failed", async () => {
    const { webhooks, webhookId, deliveryId, respond, run, sent } = await failed();
    expect(await webhooks.deliveries.get(deliveryId)).toMatchObject({ state: "failed", reason: "exhausted" });
    respond(() => 200);
    const { id } = await webhooks.deliveries.resend({ id: deliveryId });
    await run(SECOND);
    expect(await webhooks.deliveries.get(id)).toMatchObject({ webhookId, state: "delivered" });
    expect(sent).toHaveLength(15);
    expect(Buffer.compare(sent[14]?.body ?? Buffer.of(1), sent[0]?.body ?? Buffer.of(2))).toBe(0);
  });

  it("is refused while the webhook is disabled, and sends nothing then", async () => {
    const { register, emit, run, webhooks, sent } = await startHarness({ answer: () => 500 });
    const { id } = await register();
    const eventId = await emit();
    await run(MINUTE);
    await webhooks.registrations.update({ id, status: "DISABLED" });
    await expect(webhooks.deliveries.resend({ id: `${id}.${eventId}` })).rejects.toMatchObject({
      code: "webhook_disabled",
    });
    await expect(webhooks.deliveries.recover({ webhookId: id, since })).rejects.toMatchObject({
      code: "webhook_disabled",
    });
    await run(DAY);
    expect(sent).toHaveLength(1);
  });

  it("says not_found where the delivery went in the meantime", async () => {
    const { register, emit, webhooks } = await startHarness({
      change: () => ({ resend: async () => undefined, recover: async () => undefined }),
    });
    const { id } = await register();
    const eventId = await emit();
    await expect(webhooks.deliveries.resend({ id: `${id}.${eventId}` })).rejects.toMatchObject({
      code: "not_found",
    });
    await expect(webhooks.deliveries.recover({ webhookId: id, since })).rejects.toMatchObject({
      code: "not_found",
    });
  });

  it.each([
    ["before its next step: the extra attempt comes then", 6 * SECOND, ["0:05:05", "0:15"]],
    ["after its next step: that one stands for it", 14 * MINUTE, ["0:25:40"]],
  ])("keeps the schedule where canRead gives no answer until %s", async (_, silence, expected) => {
    let isSilent = false;
    const { register, emit, run, webhooks, times } = await startHarness({
      answer: () => 500,
      options: {
        ...PUNCTUAL,
        access: {
          authenticate: () => null,
          canRead: () => {
            if (isSilent) throw new Error("no answer");
            return true;
          },
        },
      },
    });
    const { id } = await register();
    const eventId = await emit();
    await run(5 * MINUTE);
    isSilent = true;
    await webhooks.deliveries.resend({ id: `${id}.${eventId}` });
    await run(silence - 2 * SECOND);
    isSilent = false;
    await run(15 * MINUTE);
    expect(times()).toEqual(["0:00", ...expected]);
  });
});

describe("the log of a new webhook", () => {
  it("begins with its registration, so that what the account got before is not examined", async () => {
    const asked: unknown[] = [];
    const { register, run, webhooks } = await startHarness({
      change: (store) => ({
        listDeliveries: (request) => {
          asked.push(request.since);
          return store.listDeliveries(request);
        },
      }),
    });
    await run(DAY);
    const { id } = await register();
    for (const given of [undefined, since, new Date(START + 2 * DAY)])
      await webhooks.deliveries.list({ webhookId: id, since: given });
    const earliest = START + DAY - MINUTE;
    expect(asked).toEqual([earliest, earliest, START + 2 * DAY]);
  });
});

describe("recover()", () => {
  it("makes deliveries of what failed and of what came while the webhook was disabled, and of nothing else", async () => {
    const { emit, run, runUntil, respond, webhooks, sent } = await startHarness({ options: PUNCTUAL });
    const { webhook } = await webhooks.registrations.create({
      subscriber: { id: "key-1", account: "clinic" },
      url: "https://hooks.example.com/a",
      eventTypes: ["patient.*"],
    });
    const { id } = webhook;
    const delivered = await emit();
    await run(SECOND);
    respond(() => 500);
    const failedId = await emit();
    await runUntil(START + 71 * HOUR);
    await webhooks.registrations.update({ id, status: "DISABLED" });
    const missed = await emit();
    const other = await emit(observation);
    await run(HOUR);
    await webhooks.registrations.update({ id, status: "ENABLED" });
    const pending = await emit();
    await run(SECOND);
    respond(() => 200);
    const before = sent.length;
    expect(
      await webhooks.deliveries.recover({ webhookId: id, since: new Date(START).toISOString() }),
    ).toEqual({ count: 2 });
    await run(SECOND);
    const recovered = sent.slice(before).map(({ eventId }) => eventId);
    expect(recovered.toSorted()).toEqual([failedId, missed].toSorted());
    expect(recovered).not.toContain(delivered);
    expect(recovered).not.toContain(other);
    expect(recovered).not.toContain(pending);
    expect(await webhooks.deliveries.recover({ webhookId: id, since })).toEqual({ count: 0 });
  });

  it("looks only at events stored at or after the time", async () => {
    const { register, emit, clock, webhooks } = await startHarness();
    const { id } = await register();
    await webhooks.registrations.update({ id, status: "DISABLED" });
    await emit();
    await clock.advance(HOUR);
    const second = await emit();
    await webhooks.registrations.update({ id, status: "ENABLED" });
    expect(await webhooks.deliveries.recover({ webhookId: id, since: "2026-01-01T02:00:00+01:00" })).toEqual({
      count: 1,
    });
    const { items: deliveries } = await webhooks.deliveries.list({ webhookId: id });
    expect(deliveries.map(({ eventId }) => eventId)).toEqual([second]);
  });

  it("makes nothing of what came before the webhook was registered", async () => {
    const { register, emit, clock, webhooks } = await startHarness();
    await register();
    await emit();
    await clock.advance(HOUR);
    const { id } = await register();
    await webhooks.registrations.update({ id, status: "DISABLED" });
    const missed = await emit();
    await webhooks.registrations.update({ id, status: "ENABLED" });
    expect(await webhooks.deliveries.recover({ webhookId: id, since })).toEqual({ count: 1 });
    const { items: deliveries } = await webhooks.deliveries.list({ webhookId: id });
    expect(deliveries.map(({ eventId }) => eventId)).toEqual([missed]);
  });

  it("goes through any number of events, one every 50 ms, each delivered once, and new ones first", async () => {
    const { register, emit, run, webhooks, sent } = await startHarness();
    const { id } = await register();
    await webhooks.registrations.update({ id, status: "DISABLED" });
    for (let count = 0; count < 250; count++) await emit();
    await webhooks.registrations.update({ id, status: "ENABLED" });
    expect(await webhooks.deliveries.recover({ webhookId: id, since })).toEqual({ count: 250 });
    await run(SECOND);
    expect(sent).toHaveLength(20);
    const fresh = await emit();
    await run(0);
    expect(sent.at(-1)?.eventId).toBe(fresh);
    await run(250 * 50 - SECOND - 1);
    expect(sent).toHaveLength(250);
    await run(1);
    expect(new Set(sent.map(({ eventId }) => eventId)).size).toBe(251);
    expect(sent).toHaveLength(251);
  });

  it("examines a bounded number of events of an account in a minute, and leaves none out", async () => {
    const { register, emit, run, webhooks } = await startHarness({
      options: { limits: { recoveredEventsPerMinute: 600, repairsPerMinute: 0 } },
    });
    const [first, second] = [await register(), await register()];
    const other = await register(undefined, "hospital");
    for (const { id } of [first, second]) await webhooks.registrations.update({ id, status: "DISABLED" });
    for (let count = 0; count < 1_200; count++) await emit();
    for (const { id } of [first, second]) await webhooks.registrations.update({ id, status: "ENABLED" });
    const recover = ({ id }: { readonly id: string }) =>
      webhooks.deliveries.recover({ webhookId: id, since });
    const refused = { code: "rate_limited", retryAfterMs: 61_000 };
    const asked = [recover(first), recover(second)];
    expect(await asked[0]).toEqual({ count: 1_200 });
    await expect(asked[1]).rejects.toMatchObject(refused);
    expect(await recover(other)).toEqual({ count: 0 });
    await run(60 * SECOND);
    await expect(recover(second)).rejects.toMatchObject({ ...refused, retryAfterMs: 1_000 });
    await run(SECOND);
    expect(await recover(second)).toEqual({ count: 1_200 });
  });

  it("that the budget of the account refuses takes no turn of the webhook", async () => {
    const { register, emit, run, webhooks } = await startHarness({
      options: { limits: { recoveredEventsPerMinute: 60, repairsPerMinute: 1 } },
    });
    const [first, second] = [await register(), await register()];
    for (let count = 0; count < 62; count++) await emit();
    const recover = ({ id }: { readonly id: string }) =>
      webhooks.deliveries.recover({ webhookId: id, since });
    expect(await recover(first)).toEqual({ count: 0 });
    for (let count = 0; count < 3; count++)
      await expect(recover(second)).rejects.toMatchObject({
        message: expect.stringContaining("this account"),
      });
    await run(5 * SECOND);
    expect(await recover(second)).toEqual({ count: 0 });
  });

  it("counts an examination that the storage broke off like a full one", async () => {
    const { register, webhooks } = await startHarness({
      options: { limits: { recoveredEventsPerMinute: 600, repairsPerMinute: 0 } },
      change: () => ({ recover: () => Promise.reject(new PostbellError("storage_full", "no room")) }),
    });
    const { id } = await register();
    const codes: unknown[] = [];
    for (let count = 0; count < 3; count++)
      await webhooks.deliveries
        .recover({ webhookId: id, since })
        .catch(({ code }: { code: string }) => codes.push(code));
    expect(codes).toEqual(["storage_full", "storage_full", "rate_limited"]);
  });

  it("gives a slow endpoint new events before thousands that wait to be recovered", async () => {
    const endpoint = holdingEndpoint();
    const { register, emit, run, webhooks, sent } = await startHarness({ answer: endpoint.answer });
    const { id } = await register();
    await webhooks.registrations.update({ id, status: "DISABLED" });
    for (let count = 0; count < 100; count++) await emit();
    await webhooks.registrations.update({ id, status: "ENABLED" });
    await webhooks.deliveries.recover({ webhookId: id, since });
    await run(10 * SECOND);
    expect(sent).toHaveLength(5);
    const fresh = await emit();
    endpoint.release();
    await run(SECOND);
    expect(sent.slice(5, 10).map(({ eventId }) => eventId)).toContain(fresh);
  });

  it.each([
    "yesterday",
    "2026-01-01",
    "2026-01-01T00:00:00",
    "2026-13-01T00:00:00Z",
    "+012026-01-01T00:00:00Z",
    "",
    new Date(Number.NaN),
    new Date(8e15),
    new Date(-8e15),
    START as unknown as Date,
    null as unknown as Date,
  ])("refuses an invalid time: %s", (value) => {
    expect(() => parseEventTime("since", value)).toThrow(
      expect.objectContaining({ code: "invalid_argument", field: "since" }),
    );
  });

  it.each([
    ["2026-01-01T00:00:00Z", START],
    ["2026-01-01T01:30:00.5+01:30", START + 500],
    ["2025-12-31T19:00:00-05:00", START],
    [new Date(START), START],
  ])("takes a Date or ISO 8601 with its offset: %s", (value, time) => {
    expect(parseEventTime("since", value)).toBe(time);
  });
});
