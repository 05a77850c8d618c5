import { describe, expect, it } from "vitest";
import { createWebhooks } from "../../../src/index.js";
import { memoryStorage } from "../../../storage/memory/index.js";
import {
  DAY,
  type HarnessOptions,
  HOUR,
  isSignedBy,
  openHarness,
  SECOND,
  type Sent,
  START,
  startHarness,
  unreachable,
} from "../../support/webhook-harness.js";

const bodyOf = (sent: Sent | undefined) =>
  JSON.parse(Buffer.from(sent?.body ?? []).toString()) as {
    id: string;
    event: {
      "hub.event": string;
      context: { key: string; resource: { entry: { resource: Record<string, unknown> }[] } }[];
    };
  };

/** A webhook that wants patients, and another one of the account. */
async function withWebhook(options?: HarnessOptions) {
  const harness = await startHarness(options);
  const { webhook, secret } = await harness.webhooks.registrations.create(
    { id: "key-1", account: "clinic" },
    { url: "https://hooks.example.com/a", eventTypes: ["patient.*"] },
  );
  await harness.register("https://hooks.example.com/b");
  const test = (type?: string) => harness.webhooks.deliveries.test({ webhookId: webhook.id, type });
  return { ...harness, id: webhook.id, secret, test };
}

describe("a test event", () => {
  it("goes to this webhook alone, signed, and is in its log like any other", async () => {
    const { test, quiet, sent, id, secret, webhooks } = await withWebhook();
    const { id: deliveryId } = await test();
    await quiet();
    expect(sent).toHaveLength(1);
    expect(sent[0]?.webhookId).toBe(id);
    expect(sent[0] && isSignedBy(sent[0], secret)).toBe(true);
    expect(deliveryId).toBe(`${id}.${sent[0]?.eventId}`);
    const { deliveries } = await webhooks.deliveries.list({ webhookId: id, type: "webhook.test" });
    expect(deliveries).toMatchObject([
      { id: deliveryId, type: "webhook.test", state: "delivered", attempts: [{ status: 200 }] },
    ]);
  });

  it("is about no record, and says that it is a test", async () => {
    const { test, quiet, sent } = await withWebhook();
    await test();
    await quiet();
    const { event } = bodyOf(sent[0]);
    expect(event["hub.event"]).toBe("webhook.test");
    expect(event.context.map(({ key }) => key)).toEqual(["webhook"]);
    expect(event.context[0]?.resource.entry.map(({ resource }) => resource)).toEqual([
      {
        resourceType: "OperationOutcome",
        meta: { tag: [expect.objectContaining({ code: "HTEST" })] },
        issue: [expect.objectContaining({ severity: "information", code: "informational" })],
      },
    ]);
  });

  it("names the type it is given, about the same, and is a test in the log all the same", async () => {
    const { test, quiet, sent, id, webhooks } = await withWebhook();
    const { id: deliveryId } = await test("patient.created");
    await test("webhook.test");
    await quiet();
    const [named, plain] = sent.map((one) => bodyOf(one).event);
    expect(named?.["hub.event"]).toBe("patient.created");
    expect(named?.context[0]?.key).toBe("patient");
    expect(named?.context[0]?.resource.entry[0]?.resource).toEqual(
      plain?.context[0]?.resource.entry[0]?.resource,
    );
    expect(await webhooks.deliveries.get(deliveryId)).toMatchObject({ webhookId: id, type: "webhook.test" });
  });

  it.each([
    ["consent.created", "invalid_request"],
    ["patient.create", "unknown_event_type"],
    [1 as unknown as string, "invalid_request"],
    [null as unknown as string, "invalid_request"],
  ])("is refused with a type that the webhook cannot get: %s", async (type, code) => {
    const { test, quiet, sent } = await withWebhook();
    await expect(test(type)).rejects.toMatchObject({ code, field: "type" });
    await quiet();
    expect(sent).toEqual([]);
  });

  it("does not ask canRead, which is about records", async () => {
    const { test, quiet, sent } = await withWebhook({
      options: {
        access: {
          authenticate: () => null,
          canRead: () => {
            throw new Error("asked");
          },
        },
      },
    });
    await test();
    await quiet();
    expect(sent).toHaveLength(1);
  });

  it("that fails is not tried again, leaves the endpoint's health alone and can be sent again by hand", async () => {
    const { test, run, sent, id, webhooks, record } = await withWebhook({ answer: () => unreachable });
    const { id: deliveryId } = await test();
    await run(SECOND);
    expect(await webhooks.deliveries.get(deliveryId)).toMatchObject({
      state: "failed",
      reason: "test_failed",
      attempts: [{ kind: "connect", code: "ECONNREFUSED" }],
    });
    expect((await record(id)).failingSince).toBeNull();
    expect(await webhooks.deliveries.recover({ webhookId: id, since: new Date(START) })).toEqual({
      count: 0,
    });
    await run(5 * DAY - HOUR);
    expect(sent).toHaveLength(1);
    expect((await record(id)).status).toBe("ENABLED");
    const again = await test();
    await run(SECOND);
    expect(await webhooks.deliveries.resend(again.id)).toEqual({ id: `${again.id}.1` });
    await run(DAY);
    expect(sent).toHaveLength(3);
  });

  it("that succeeds is a 2xx like any other: the endpoint is well again", async () => {
    const { test, emit, run, respond, id, record } = await withWebhook({ answer: () => 500 });
    await emit();
    await run(SECOND);
    expect((await record(id)).failingSince).toBe(START);
    respond(() => 200);
    await test();
    await run(SECOND);
    expect((await record(id)).failingSince).toBeNull();
  });

  it("is refused for a webhook that is disabled, also where that comes between", async () => {
    const { test, id, webhooks, sent, quiet } = await withWebhook({
      change: (store) => ({
        append: async (request) => {
          await store.updateWebhook({
            id: request.webhookId ?? "",
            account: "clinic",
            change: { status: "DISABLED" },
            enabledLimit: 15,
            now: store.now(),
          });
          return store.append(request);
        },
      }),
    });
    for (let count = 0; count < 2; count++)
      await expect(test()).rejects.toMatchObject({ code: "webhook_disabled" });
    await quiet();
    expect(sent).toEqual([]);
    expect((await webhooks.deliveries.list({ webhookId: id })).deliveries).toEqual([]);
  });

  it("ends where its webhook was disabled before it was sent", async () => {
    const { webhooks, register, quiet } = openHarness();
    const { id } = await register();
    const { id: deliveryId } = await webhooks.deliveries.test({ webhookId: id });
    await webhooks.registrations.update(id, { status: "DISABLED" });
    await webhooks.start();
    await quiet();
    expect(await webhooks.deliveries.get(deliveryId)).toMatchObject({ state: "failed", reason: "disabled" });
  });

  it("has a name that no catalogue may hold and nobody can emit", async () => {
    const { emit } = openHarness();
    await expect(emit({ type: "webhook.test" })).rejects.toMatchObject({ code: "unknown_event_type" });
    const make = (events: Record<string, string>) =>
      createWebhooks({
        storage: memoryStorage(),
        access: { authenticate: () => null, canRead: () => true },
        events,
      });
    expect(() => make({ "webhook.test": "Patient" })).toThrow(
      expect.objectContaining({ code: "invalid_option", field: "events['webhook.test']" }),
    );
    expect(make({ "webhook.tested": "Patient" }).eventTypes()).toEqual(["webhook.tested"]);
  });
});
