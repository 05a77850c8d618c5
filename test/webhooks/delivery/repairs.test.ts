/** Sending what waits for a repaired endpoint, and sending a span of time again. */

import { describe, expect, it } from "vitest";
import type { Subscriber, WebhooksOptions } from "../../../src/index.js";
import type { AuditEntry } from "../../../src/webhooks/webhook.js";
import { HOUR, MINUTE, SECOND, START, SUBSCRIBER, startHarness } from "../../support/webhook-harness.js";

const STRANGER: Subscriber = { id: "key-1", account: "hospital" };
const COLLEAGUE: Subscriber = { id: "key-2", account: SUBSCRIBER.account };
const since = new Date(START);
const until = new Date(START + 24 * HOUR);

async function start(options: Partial<WebhooksOptions> = {}) {
  const entries: AuditEntry[] = [];
  const harness = await startHarness({
    options: {
      retry: { jitter: 0 },
      audit: (entry) => void entries.push(entry),
      ...options,
    },
  });
  const { id: webhookId } = await harness.register();
  const { webhooks } = harness;
  const post = async (path: string, json: unknown, subscriber = SUBSCRIBER) => {
    const answer = await webhooks.as(subscriber).handle({
      method: "POST",
      path: `/v1${path}`,
      query: "",
      headers: { "content-type": "application/json" },
      body: Buffer.from(JSON.stringify(json)),
      baseUrl: "https://a.example",
    });
    return { status: answer?.status, json: JSON.parse(answer?.body as string) as Record<string, unknown> };
  };
  return { ...harness, webhookId, entries, post, deliveries: webhooks.deliveries };
}

/** An endpoint that was down for an hour while events came, and is repaired. */
async function startRepaired(count: number) {
  const harness = await start();
  harness.respond(() => 500);
  for (let index = 0; index < count; index++) await harness.emit();
  await harness.run(HOUR);
  harness.respond(() => 200);
  return { ...harness, before: harness.sent.length };
}

const numbers = (count: number): number[] => Array.from({ length: count }, (_, index) => index);

describe("sending all that is undelivered", () => {
  it("creates what failed or was missed and moves what waits, in one call and one audit entry", async () => {
    const { webhooks, deliveries, webhookId, entries, emit, respond, run, sent } = await start({
      retry: { intervalsMs: [MINUTE], everyMs: HOUR, windowMs: 2 * MINUTE, jitter: 0 },
    });
    respond(() => 500);
    const failed = await emit();
    await run(2 * HOUR);
    await webhooks.registrations.update({ id: webhookId, status: "DISABLED" });
    const missed = await emit();
    await webhooks.registrations.update({ id: webhookId, status: "ENABLED" });
    const waiting = await emit();
    await run(SECOND);
    respond(() => 200);
    const { length } = sent;
    const { count } = await deliveries.recover({ webhookId, since, state: "undelivered" });
    expect(count).toBe(3);
    await run(10 * SECOND);
    expect(sent.slice(length).map(({ eventId }) => eventId)).toEqual([failed, missed, waiting]);
    expect(entries.filter(({ action }) => action === "webhook.recovered")).toMatchObject([{ count: 3 }]);
    expect(await deliveries.recover({ webhookId, since, state: "undelivered" })).toEqual({ count: 0 });
  });
});

describe("recover() of pending deliveries", () => {
  it("sends all that waits for a repaired endpoint, one every 50 ms, and new events first", async () => {
    const { deliveries, webhookId, run, emit, sent, before } = await startRepaired(300);
    expect(await deliveries.recover({ webhookId, state: "pending" })).toEqual({ count: 300 });
    expect(await deliveries.recover({ webhookId, state: "pending" })).toEqual({ count: 0 });
    await run(SECOND);
    expect(sent.length - before).toBe(20);
    const fresh = await emit();
    await run(0);
    expect(sent.at(-1)?.eventId).toBe(fresh);
    await run(300 * 50);
    expect(sent.length - before).toBe(301);
    expect((await deliveries.stats(webhookId)).delivered).toBe(301);
  });

  it("leaves the planned retry in place if the endpoint still fails", async () => {
    const { deliveries, webhookId, run, respond, sent, before } = await startRepaired(1);
    const [waiting] = (await deliveries.list({ webhookId })).items;
    respond(() => 500);
    expect(await deliveries.recover({ webhookId, state: "pending" })).toEqual({ count: 1 });
    await run(SECOND);
    expect(sent.length - before).toBe(1);
    const [failedAgain] = (await deliveries.list({ webhookId })).items;
    expect(failedAgain?.nextAttemptAt).toEqual(waiting?.nextAttemptAt);
    expect(failedAgain?.attempts.at(-1)).toMatchObject({ isExtra: true, code: "HTTP_500" });
  });

  it("of an account does so for each ENABLED webhook, and reports each call once", async () => {
    const { deliveries, webhooks, webhookId, entries, register } = await startRepaired(3);
    const { id: disabled } = await register("https://hooks.example.com/b");
    await webhooks.registrations.update({ id: disabled, status: "DISABLED" });
    entries.length = 0;
    const account = SUBSCRIBER.account;
    expect(await deliveries.recover({ account, state: "pending" })).toEqual({
      count: 3,
      webhooks: [{ webhookId, count: 3 }],
      skipped: [{ webhookId: disabled, reason: "webhook_disabled" }],
    });
    expect(entries).toMatchObject([{ action: "webhook.recovered", webhookId, count: 3 }]);
  });

  it("is refused to strangers, to keys that may not manage the webhook, and while it is DISABLED", async () => {
    const { deliveries, webhooks, webhookId, post } = await startRepaired(1);
    const state = "pending" as const;
    await expect(webhooks.as(STRANGER).deliveries.recover({ webhookId, state })).rejects.toMatchObject({
      code: "not_found",
    });
    await expect(webhooks.as(COLLEAGUE).deliveries.recover({ webhookId, state })).rejects.toMatchObject({
      code: "webhook_owned_by_another_key",
    });
    expect((await post(`/webhooks/${webhookId}/recover`, { state }, STRANGER)).status).toBe(404);
    await webhooks.registrations.update({ id: webhookId, status: "DISABLED" });
    await expect(deliveries.recover({ webhookId, state })).rejects.toMatchObject({
      code: "webhook_disabled",
    });
    expect((await post(`/webhooks/${webhookId}/recover`, { state })).status).toBe(409);
  });

  it("is offered over REST, where only this state needs no time", async () => {
    const { webhookId, post } = await startRepaired(2);
    expect(await post(`/webhooks/${webhookId}/recover`, { state: "pending" })).toEqual({
      status: 202,
      json: { count: 2 },
    });
    expect((await post("/deliveries/recover", { state: "pending" })).status).toBe(202);
    expect((await post(`/webhooks/${webhookId}/recover`, { state: "failed" })).json).toMatchObject({
      error: { code: "invalid_request", field: "since" },
    });
    for (const state of ["delivered", "waiting", "__proto__", ["pending"], {}])
      expect((await post(`/webhooks/${webhookId}/recover`, { state, since })).status).toBe(400);
  });
});

describe("replay()", () => {
  /** Ten deliveries, a minute apart, all delivered. */
  async function startDelivered(options: Partial<WebhooksOptions> = {}) {
    const harness = await start(options);
    const ids: string[] = [];
    for (const _ of numbers(10)) {
      ids.push(await harness.emit());
      await harness.run(MINUTE);
    }
    harness.entries.length = 0;
    return { ...harness, ids, before: harness.sent.length };
  }

  it("sends the delivered events of a span of time again, in order, paced and with the same ids", async () => {
    const { deliveries, webhookId, run, sent, ids, before, entries } = await startDelivered();
    const span = { since: new Date(START + 2 * MINUTE), until: new Date(START + 5 * MINUTE) };
    expect(await deliveries.replay({ webhookId, ...span, dryRun: true })).toEqual({ count: 3 });
    await run(SECOND);
    expect([sent.length, entries]).toEqual([before, []]);
    expect(await deliveries.replay({ webhookId, ...span })).toEqual({ count: 3 });
    // Their deliveries are pending now.
    expect(await deliveries.replay({ webhookId, ...span })).toEqual({ count: 0 });
    await run(SECOND);
    expect(sent.slice(before).map(({ eventId }) => eventId)).toEqual(ids.slice(2, 5));
    expect(entries).toMatchObject([{ action: "webhook.replayed", webhookId, count: 3 }]);
    const again = await deliveries.list({ webhookId, eventId: ids[2] });
    expect(again.items.map(({ id }) => id)).toEqual([`${webhookId}.${ids[2]}.1`, `${webhookId}.${ids[2]}`]);
  });

  it("selects by type and state", async () => {
    const { deliveries, webhookId, emit, run, respond } = await startDelivered();
    const count = async (filter: object) =>
      (await deliveries.replay({ webhookId, since, until, dryRun: true, ...filter })).count;
    expect(await count({ types: ["patient.created"] })).toBe(0);
    expect(await count({ types: ["patient.created", "patient.updated"] })).toBe(10);
    respond(() => 500);
    await emit();
    await run(SECOND);
    // It is pending.
    expect(await count({})).toBe(10);
    expect(await count({ states: ["failed", "missed", "withheld"] })).toBe(0);
    expect(await count({ states: ["delivered"] })).toBe(10);
  });

  it("refuses wrong arguments and says what they are", async () => {
    const { deliveries, webhookId } = await startDelivered();
    const refuse = async (fields: object, expected: object) => {
      const request = { webhookId, since, until, ...fields } as Parameters<typeof deliveries.replay>[0];
      await expect(deliveries.replay(request)).rejects.toMatchObject(expected);
    };
    await refuse({ until: since }, { field: "until", message: "until must be later than since." });
    await refuse({ until: undefined }, { field: "until" });
    await refuse({ types: [] }, { field: "types" });
    await refuse({ types: numbers(101).map(() => "patient.updated") }, { field: "types" });
    await refuse({ types: ["patient.updated", "patient.gone"] }, { code: "unknown_event_type" });
    await refuse({ states: ["pending"] }, { field: "states[0]" });
    await refuse({ states: ["__proto__"] }, { field: "states[0]" });
    await refuse({ subject: "" }, { field: "subject" });
    await refuse({ subject: "x".repeat(257) }, { field: "subject" });
    await refuse({ dryRun: "yes" }, { field: "dryRun" });
    await refuse({ state: "failed" }, { code: "invalid_argument" });
  });

  it("tells a subscriber nothing about a subject that it was not sent", async () => {
    const { webhooks, webhookId, emit, run } = await startDelivered({
      access: { authenticate: () => null, canRead: (_, resource) => resource.id !== "secret" },
    });
    await emit({ resource: { resourceType: "Patient", id: "secret" } });
    await run(SECOND);
    const count = async (subject: string, subscriber?: Subscriber) => {
      const { deliveries } = subscriber === undefined ? webhooks : webhooks.as(subscriber);
      return (await deliveries.replay({ webhookId, since, until, subject, dryRun: true })).count;
    };
    expect(await count("Patient/secret")).toBe(1);
    expect(await count("Patient/secret", SUBSCRIBER)).toBe(0);
    expect(await count("Patient/1", SUBSCRIBER)).toBe(10);
    await expect(
      webhooks
        .as(SUBSCRIBER)
        .deliveries.replay({ webhookId, since, until, subject: "Patient/1", states: ["withheld"] }),
    ).rejects.toMatchObject({ field: "states[0]" });
  });

  it("counts against the limits of recover", async () => {
    const { deliveries, webhookId, post } = await startDelivered({
      limits: { repairsPerMinute: 2, recoveredEventsPerMinute: 100 },
    });
    await deliveries.recover({ webhookId, since });
    await deliveries.replay({ webhookId, since, until, dryRun: true });
    await expect(deliveries.replay({ webhookId, since, until })).rejects.toMatchObject({
      code: "rate_limited",
    });
    expect((await post(`/webhooks/${webhookId}/replay`, { since, until })).status).toBe(429);
  });

  it("is offered over REST to keys that may manage the webhook", async () => {
    const { webhookId, post } = await startDelivered({ limits: { repairsPerMinute: 0 } });
    const path = `/webhooks/${webhookId}/replay`;
    expect(await post(path, { since, until, dry_run: true })).toEqual({ status: 202, json: { count: 10 } });
    expect((await post(path, { since, until, types: ["consent.*"] })).status).toBe(400);
    expect((await post(path, { since, until, dry_run: 1 })).json).toMatchObject({
      error: { field: "dry_run" },
    });
    expect((await post(path, { since, until }, STRANGER)).status).toBe(404);
    expect((await post(path, { since, until }, COLLEAGUE)).status).toBe(403);
    expect((await post(path, { since })).status).toBe(400);
    expect((await post(path, { since, until, webhookId: "x" })).status).toBe(400);
    expect(await post(path, { since, until })).toEqual({ status: 202, json: { count: 10 } });
  });

  it("examines ten thousand events in bounded calls of the storage", async () => {
    const limits: number[] = [];
    const harness = await startHarness({
      options: { limits: { repairsPerMinute: 0 } },
      change: (store) => ({
        recover: async (request) => {
          limits.push(request.limit);
          return store.recover(request);
        },
      }),
    });
    const { id: webhookId } = await harness.register();
    await harness.webhooks.registrations.update({ id: webhookId, status: "DISABLED" });
    for (let count = 0; count < 10_000; count++) await harness.emit();
    await harness.webhooks.registrations.update({ id: webhookId, status: "ENABLED" });
    const span = { webhookId, since, until, dryRun: true };
    expect(await harness.webhooks.deliveries.replay(span)).toEqual({ count: 10_000 });
    expect(limits.length).toBe(20);
    expect(Math.max(...limits)).toBe(500);
  });
});
