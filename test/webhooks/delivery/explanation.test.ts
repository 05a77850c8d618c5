/** Why an endpoint did or did not get an event. */

import { describe, expect, it, vi } from "vitest";
import type { Subscriber, WebhooksOptions } from "../../../src/index.js";
import type { OutboundResult } from "../../../src/outbound/types.js";
import { type ExplainedRecords, explainDelivery } from "../../../src/webhooks/delivery/explanation.js";
import type { DeliveryRecord, WebhookRecord } from "../../../src/webhooks/store.js";
import {
  HOUR,
  MINUTE,
  response,
  SECOND,
  START,
  SUBSCRIBER,
  startHarness,
} from "../../support/webhook-harness.js";

const COLLEAGUE: Subscriber = { id: "key-2", account: SUBSCRIBER.account };
const STRANGER: Subscriber = { id: "key-1", account: "hospital" };

const webhook = (fields: Partial<WebhookRecord> = {}): WebhookRecord => ({
  id: "w",
  account: "clinic",
  subscriberId: "key-1",
  url: "https://hooks.example.com/a",
  status: "ENABLED",
  eventTypes: null,
  createdAt: START,
  updatedAt: START,
  secret: "s",
  previousSecret: null,
  rotateAt: null,
  generation: 0,
  failingSince: null,
  warnedAt: null,
  noticeAt: null,
  ...fields,
});

const delivery = (fields: Partial<DeliveryRecord> = {}): DeliveryRecord => ({
  id: "w.e",
  webhookId: "w",
  eventId: "e",
  type: "order.paid",
  subject: null,
  tags: [],
  state: "pending",
  reason: null,
  createdAt: START,
  startedAt: START,
  step: 1,
  isInFlight: false,
  dueAt: null,
  endedAt: null,
  attempts: [],
  ...fields,
});

const failedAttempt = {
  at: START,
  durationMs: 1,
  step: 0,
  isExtra: false,
  kind: "http",
  status: 500,
  code: "HTTP_500",
  excerpt: null,
} as const;

const NOW = START + HOUR;
const event = { type: "order.paid", storedAt: START + MINUTE };
const pending = (dueAt: number) => delivery({ dueAt, attempts: [failedAttempt] });
const ended = (state: DeliveryRecord["state"], reason: string | null = null) =>
  delivery({ state, reason, endedAt: NOW, id: `w.e.${state}` });

const leased = () => delivery({ dueAt: NOW, isInFlight: true, id: "w.e.leased" });
const FREE = { inFlight: 3, slots: 4, openAt: NOW };
const FULL = { inFlight: 4, slots: 4, openAt: NOW + 500 };

type Case = [reason: string, name: string, records: Partial<ExplainedRecords>, text: RegExp];

const CASES: Case[] = [
  ["event_unknown", "an event that is not kept", { event: undefined }, /no such event/],
  ["delivered", "a delivery", { deliveries: [ended("delivered")] }, /delivered at 2026-01-01T01:00:00/],
  ["delivered", "an event that is gone", { event: undefined, deliveries: [ended("delivered")] }, /delivered/],
  ["delivered", "one of several", { deliveries: [ended("failed", "exhausted"), ended("delivered")] }, /./],
  [
    "waiting",
    "a planned retry",
    { deliveries: [pending(NOW + 1)] },
    /due at 2026-01-01T01:00:00.001Z.*HTTP_500/,
  ],
  ["waiting", "one that was sent again", { deliveries: [pending(NOW + 1), ended("failed")] }, /due at/],
  ["in_flight", "an attempt in flight", { deliveries: [leased()] }, /in flight: a process makes it now/],
  [
    "in_flight",
    "one of several in flight",
    { deliveries: [pending(NOW + 1), leased()], room: FULL },
    /in flight: a process/,
  ],
  [
    "endpoint_busy",
    "an endpoint whose slots are taken",
    { deliveries: [pending(NOW)], room: FULL, perSecond: 5 },
    /free slot of the endpoint: 4 of 4 are in flight\. Its last attempt/,
  ],
  [
    "endpoint_busy",
    "slots beyond the limit",
    { deliveries: [pending(NOW)], room: { ...FULL, slots: 1 } },
    /4 of 1/,
  ],
  [
    "rate",
    "a rate that is used up",
    { deliveries: [pending(NOW)], room: { ...FREE, openAt: NOW + 500 }, perSecond: 5 },
    /until 2026-01-01T01:00:00.500Z.*at most 5 deliveries/,
  ],
  [
    "due",
    "a rate that is not used up",
    { deliveries: [pending(NOW)], room: FREE, perSecond: 5 },
    /a process/,
  ],
  ["due", "free slots", { deliveries: [pending(NOW)], room: FREE }, /waits for a process with a free slot/],
  ["due", "a webhook that is gone", { deliveries: [pending(NOW)] }, /waits for a process/],
  ["waiting", "a planned retry under a rate", { deliveries: [pending(NOW + 1)], perSecond: 5 }, /due at/],
  [
    "disabled",
    "a retry to a DISABLED webhook",
    { deliveries: [pending(NOW + 1)], webhook: webhook({ status: "DISABLED" }) },
    /attempts are skipped/,
  ],
  ["disabled", "a delivery that ended so", { deliveries: [ended("failed", "disabled")] }, /was DISABLED/],
  ["failed", "a schedule that is used up", { deliveries: [ended("failed", "exhausted")] }, /exhausted/],
  [
    "not_permitted",
    "a withheld delivery",
    { deliveries: [ended("withheld", "access_denied")] },
    /may not read/,
  ],
  [
    "type_not_subscribed",
    "other types",
    { webhook: webhook({ eventTypes: ["order.sent"] }) },
    /'order.paid'/,
  ],
  ["filtered", "a filter", { isFiltered: true }, /filter/],
  ["registered_later", "an older event", { event: { ...event, storedAt: START - 1 } }, /before the webhook/],
  [
    "disabled",
    "a webhook that is DISABLED",
    { webhook: webhook({ status: "DISABLED" }) },
    /is DISABLED\. Enable/,
  ],
  ["missed", "an event that the webhook would get now", {}, /was DISABLED, or wanted other events/],
  [
    "postponed",
    "a delivery without an attempt",
    { deliveries: [delivery({ dueAt: NOW + 1 })] },
    /No attempt was made yet.*canRead/,
  ],
  ["other_test", "a test of another webhook", { event: { ...event, type: "webhook.test" } }, /test/],
];

describe("explainDelivery()", () => {
  it.each(CASES)("says %s for %s", (reason, _, records, text) => {
    const found = explainDelivery({
      now: NOW,
      webhook: webhook(),
      event,
      deliveries: [],
      isFiltered: false,
      perSecond: null,
      room: undefined,
      ...records,
    });
    expect(found.reason).toBe(reason);
    expect(found.text).toMatch(text);
    const [first] = records.deliveries ?? [];
    const decides =
      records.deliveries?.find(({ state, isInFlight }) => state === "delivered" || isInFlight) ?? first;
    expect(found.deliveryId).toBe(decides?.id ?? null);
    const at = reason === "rate" ? NOW + 500 : reason === "in_flight" ? null : (decides?.dueAt ?? null);
    expect(found.nextAttemptAt).toEqual(at === null ? null : new Date(at));
  });
});

describe("deliveries.explain()", () => {
  const start = async (options: Partial<WebhooksOptions> = {}) => {
    const harness = await startHarness({ options });
    const { id: webhookId } = await harness.register();
    const { webhooks } = harness;
    const explain = async (eventId: string, subscriber?: Subscriber) => {
      const { deliveries } = subscriber === undefined ? webhooks : webhooks.as(subscriber);
      return (await deliveries.explain({ eventId, webhookId })).reason;
    };
    const get = async (path: string, subscriber = SUBSCRIBER) => {
      const answer = await webhooks.as(subscriber).handle({
        method: "GET",
        path: `/v1${path}`,
        query: "",
        headers: {},
        body: null,
        baseUrl: "https://a.example",
      });
      return { status: answer?.status, json: JSON.parse(answer?.body as string) as Record<string, unknown> };
    };
    return { ...harness, webhookId, explain, get };
  };
  const UNKNOWN = "0b9d3a0e-2f4c-4f57-8d0c-6a1f5e7f3c21";

  it("follows an event from its first attempt to its delivery", async () => {
    const { emit, run, respond, explain } = await start();
    respond(() => 500);
    const id = await emit();
    await run(SECOND);
    expect(await explain(id)).toBe("waiting");
    respond(() => 200);
    await run(HOUR);
    expect(await explain(id)).toBe("delivered");
    expect(await explain(UNKNOWN)).toBe("event_unknown");
  });

  it("tells an attempt in flight from one that waits for it, for the rate or for a process", async () => {
    const delivery = { perEndpoint: 1 };
    const { emit, webhooks, webhookId, respond, run, explain } = await start({ delivery });
    const rates = await start({ delivery: { perSecond: 1 } });
    let finish = (): void => {};
    respond(() => new Promise<OutboundResult>((resolve) => (finish = () => resolve(response(200)))));
    const sent = await emit();
    const waits = await emit();
    await vi.waitFor(async () => expect(await explain(sent)).toBe("in_flight"));
    expect(await explain(waits)).toBe("endpoint_busy");
    expect((await webhooks.deliveries.explain({ eventId: waits, webhookId })).text).toMatch(
      /1 of 1 are in flight/,
    );
    respond(() => 200);
    finish();
    await run(SECOND);
    expect([await explain(sent), await explain(waits)]).toEqual(["delivered", "delivered"]);

    await rates.emit();
    const second = await rates.emit();
    expect(await rates.explain(second)).toBe("rate");
    await webhooks.stop();
    expect(await explain(await emit())).toBe("due");
  });

  it("explains what the webhook missed, and what it does not want", async () => {
    const { emit, webhooks, webhookId, explain } = await start();
    await webhooks.registrations.update({ id: webhookId, status: "DISABLED" });
    const missed = await emit();
    expect(await explain(missed)).toBe("disabled");
    await webhooks.registrations.update({
      id: webhookId,
      status: "ENABLED",
      eventTypes: ["consent.created"],
    });
    const other = await emit();
    expect(await explain(other)).toBe("type_not_subscribed");
  });

  it("says missed for a type that was added after the event, which recover then sends", async () => {
    const { emit, webhooks, webhookId, explain, run } = await start();
    await webhooks.registrations.update({ id: webhookId, eventTypes: ["consent.created"] });
    const id = await emit();
    await webhooks.registrations.update({ id: webhookId, eventTypes: ["patient.updated"] });
    expect(await explain(id)).toBe("missed");
    await webhooks.deliveries.recover({ webhookId, since: new Date(START) });
    await run(MINUTE);
    expect(await explain(id)).toBe("delivered");
  });

  it("claims no failed attempt while canRead throws", async () => {
    const canRead = (): boolean => {
      throw new Error("away");
    };
    const { emit, explain, run } = await start({ access: { authenticate: () => null, canRead } });
    const id = await emit();
    await run(SECOND);
    expect(await explain(id)).toBe("postponed");
  });

  it("tells a subscriber of no event that it may not read and has no delivery of", async () => {
    const { emit, webhooks, webhookId, explain, get } = await start({
      access: { authenticate: () => null, canRead: (_, resource) => resource["id"] !== "secret" },
    });
    await webhooks.registrations.update({ id: webhookId, eventTypes: ["consent.created"] });
    const secret = await emit({ resource: { resourceType: "Patient", id: "secret" } });
    const open = await emit();
    expect([await explain(secret), await explain(open)]).toEqual([
      "type_not_subscribed",
      "type_not_subscribed",
    ]);
    expect(await explain(secret, SUBSCRIBER)).toBe("event_unknown");
    expect(await explain(open, SUBSCRIBER)).toBe("type_not_subscribed");
    const path = (id: string) => `/webhooks/${webhookId}/events/${id}/explanation`;
    expect(await get(path(secret))).toEqual(await get(path(UNKNOWN)));
    await expect(explain(open, COLLEAGUE)).rejects.toMatchObject({ code: "webhook_owned_by_another_key" });
    await expect(explain(open, STRANGER)).rejects.toMatchObject({ code: "not_found" });
  });

  it("is offered over REST", async () => {
    const { emit, run, webhookId, get } = await start();
    const id = await emit();
    await run(SECOND);
    const path = `/webhooks/${webhookId}/events`;
    expect(await get(`${path}/${id}/explanation`)).toEqual({
      status: 200,
      json: {
        reason: "delivered",
        text: "It was delivered at 2026-01-01T00:00:00.000Z.",
        nextAttemptAt: null,
        deliveryId: `${webhookId}.${id}`,
      },
    });
    expect((await get(`${path}/${id}/explanation`, STRANGER)).status).toBe(404);
    expect((await get(`${path}/${id}/explanation`, COLLEAGUE)).status).toBe(403);
    for (const wrong of ["x", "__proto__", `${id}x`, "%00"])
      expect((await get(`${path}/${wrong}/explanation`)).status).toBe(400);
  });
});
