import { describe, expect, it } from "vitest";
import { clinicalEvents, createWebhooks, type EventCatalogue } from "../../../src/index.js";
import { memoryStorage } from "../../../storage/memory/index.js";
import { byKey } from "../../support/registration-api.js";
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
  const { webhook, secret } = await harness.webhooks.registrations.create({
    subscriber: { id: "key-1", account: "clinic" },
    url: "https://hooks.example.com/a",
    eventTypes: ["patient.*"],
  });
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
    const { items: deliveries } = await webhooks.deliveries.list({ webhookId: id, type: "webhook.test" });
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

  it("names the type it is given, with a sample of it, and is a test in the log all the same", async () => {
    const { test, quiet, sent, id, webhooks } = await withWebhook();
    const { id: deliveryId } = await test("patient.created");
    await test("webhook.test");
    await quiet();
    const [named, unnamed] = sent.map((one) => bodyOf(one).event);
    expect(named?.["hub.event"]).toBe("patient.created");
    expect(named?.context[0]?.key).toBe("patient");
    expect(named?.context[0]?.resource.entry.map(({ resource }) => resource)).toEqual([
      { resourceType: "Patient", id: "sample", meta: { tag: [expect.objectContaining({ code: "HTEST" })] } },
    ]);
    expect(unnamed?.context[0]?.resource.entry[0]?.resource["resourceType"]).toBe("OperationOutcome");
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
    expect(await webhooks.deliveries.resend({ id: again.id })).toEqual({ id: `${again.id}.1` });
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
    expect((await webhooks.deliveries.list({ webhookId: id })).items).toEqual([]);
  });

  it("ends where its webhook was disabled before it was sent", async () => {
    const { webhooks, register, quiet } = openHarness();
    const { id } = await register();
    const { id: deliveryId } = await webhooks.deliveries.test({ webhookId: id });
    await webhooks.registrations.update({ id, status: "DISABLED" });
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

const readText = (body: unknown): string => (typeof body === "string" ? body : "");

/** Required elements (min 1) and invariants of FHIR R4, from the definitions of the resources. */
const REQUIRED: Readonly<Record<string, readonly string[]>> = {
  AllergyIntolerance: ["patient", "clinicalStatus"],
  Condition: ["subject"],
  Consent: ["status", "scope", "category", "policyRule", "patient"],
  DiagnosticReport: ["status", "code"],
  DocumentReference: ["status", "content"],
  Encounter: ["status", "class"],
  EpisodeOfCare: ["status", "patient"],
  Immunization: ["status", "vaccineCode", "patient", "occurrenceDateTime"],
  MedicationAdministration: ["status", "medicationCodeableConcept", "subject", "effectiveDateTime"],
  MedicationRequest: ["status", "intent", "medicationCodeableConcept", "subject"],
  Observation: ["status", "code"],
  Patient: [],
  ServiceRequest: ["status", "intent", "subject"],
};

describe("a sample", () => {
  const create = (options: { readonly events?: EventCatalogue } = {}) =>
    createWebhooks({
      storage: memoryStorage(),
      access: { authenticate: byKey(() => ({ id: "key-1", account: "clinic" })), canRead: () => true },
      ...options,
    });

  it.each(Object.keys(clinicalEvents))(
    "of %s is a resource with what R4 requires, marked as a test",
    async (type) => {
      const body = (await create().deliveries.sample({ type })) as ReturnType<typeof bodyOf>;
      expect(body.event["hub.event"]).toBe(type);
      const [entry, ...others] = body.event.context[0]?.resource.entry ?? [];
      const resourceType = clinicalEvents[type as keyof typeof clinicalEvents];
      expect([others, entry?.resource["resourceType"]]).toEqual([[], resourceType]);
      expect(entry?.resource["meta"]).toMatchObject({ tag: [{ code: "HTEST" }] });
      expect(Object.keys(entry?.resource ?? {})).toEqual(
        expect.arrayContaining([...(REQUIRED[resourceType] ?? ["none"])]),
      );
    },
  );

  it.each(["patient.created", "webhook.test"])(
    "of %s is what the test sends, except ids and times",
    async (type) => {
      const { test, quiet, sent, webhooks, id } = await withWebhook();
      await test(type);
      await quiet();
      const body = Buffer.from(sent[0]?.body ?? []).toString();
      const sample = JSON.stringify(
        await webhooks.deliveries.sample(type === "webhook.test" ? {} : { type }),
      );
      const neutral = (text: string, topic: string) =>
        text.replaceAll(topic, "topic").replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}|20[0-9T:.-]+Z/g, "…");
      expect(neutral(sample, "5e0f4f6e-7f0b-4a8e-9d5e-3d3f0c1f2a10")).toBe(neutral(body, id));
      expect(JSON.stringify(await webhooks.deliveries.sample({ type }))).toBe(sample);
    },
  );

  it("of a plain type is its example, and of another resource type the bare resource", async () => {
    const example = { order: 7, note: "{}" };
    const { deliveries } = create({
      events: {
        "order.paid": { example },
        "order.sent": {},
        "task.done": ["Task", "Appointment"],
        "x.y": "constructor",
      },
    });
    const read = (type?: string): Promise<unknown> => deliveries.sample({ type });
    const common = { id: expect.any(String) as string, timestamp: "2026-03-01T12:00:00.000Z", test: true };
    expect(await read("order.paid")).toEqual({ ...common, type: "order.paid", data: example });
    expect(await read("order.sent")).toMatchObject({
      test: true,
      data: { message: expect.any(String) as string },
    });
    for (const [type, resourceType] of [
      ["task.done", "Task"],
      ["x.y", "constructor"],
    ] as const) {
      const resource = { resourceType, id: "sample", meta: { tag: [{ code: "HTEST" }] } };
      expect(await read(type)).toMatchObject({
        event: { context: [{ resource: { entry: [{ resource }] } }] },
      });
    }
  });

  it.each([
    ["__proto__", 404],
    ["constructor", 404],
    ["a".repeat(10_000), 404],
    ["patient%2Fcreated", 404],
    ["..%2F..%2Fv1%2Fwebhooks", 404],
    ["%E0%A4%A", 404],
    ["%00", 404],
    ["patient.*", 404],
    ["Patient.Created", 404],
    ["patient%2Ecreated", 200],
    ["patient.created", 200],
    ["webhook.test", 200],
  ])("over REST: %s", async (type, status) => {
    const webhooks = create();
    const ask = async (headers: Record<string, string>) =>
      webhooks.handle({
        ...{ method: "GET", path: `/v1/event-types/${type}/sample`, query: "", headers, body: null },
        baseUrl: "https://api.example.com",
      });
    const answer = await ask({ authorization: "Bearer key" });
    const text = readText(answer?.body);
    const { error } = JSON.parse(text) as { error?: { code: string } };
    expect([answer?.status, error?.code, text.length < 2_000]).toEqual([
      status,
      status === 200 ? undefined : "not_found",
      true,
    ]);
    const known = ["patient.created", "webhook.test"];
    const samples = await Promise.all(known.map((own) => webhooks.deliveries.sample({ type: own })));
    expect(samples.map((sample) => JSON.stringify(sample)).includes(text)).toBe(status === 200);
    expect((await ask({}))?.status).toBe(401);
  });

  it.each([
    ["no.type", "unknown_event_type"],
    [1, "invalid_request"],
    [null, "invalid_request"],
  ])("is refused in-process for %s", async (type, code) => {
    await expect(create().deliveries.sample({ type: type as string })).rejects.toMatchObject({
      code,
      field: "type",
    });
  });
});

describe("the event types over REST", () => {
  it("have descriptions and schemas on request, and are otherwise as they were", async () => {
    const schema = { type: "object" } as const;
    const webhooks = createWebhooks({
      storage: memoryStorage(),
      access: { authenticate: byKey(() => ({ id: "key-1", account: "clinic" })), canRead: () => true },
      events: { "order.paid": { description: "Paid.", schema }, "patient.created": "Patient" },
    });
    const ask = async (query: string) => {
      const headers = { authorization: "Bearer key" };
      const call = { method: "GET", path: "/v1/event-types", query, headers, body: null };
      const answer = await webhooks.handle({ ...call, baseUrl: "https://api.example.com" });
      return [answer?.status, JSON.parse(readText(answer?.body)) as unknown] as const;
    };
    const eventTypes = ["order.paid", "patient.created"];
    expect(await ask("")).toEqual([200, { eventTypes }]);
    expect(await ask("include=details")).toEqual([
      200,
      {
        eventTypes,
        details: [
          { type: "order.paid", description: "Paid.", resourceTypes: null, schema },
          { type: "patient.created", description: null, resourceTypes: ["Patient"], schema: null },
        ],
      },
    ]);
    expect((await ask("include=secrets"))[0]).toBe(400);
  });
});
