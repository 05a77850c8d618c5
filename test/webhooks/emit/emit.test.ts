import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isPostbellError, PostbellError } from "../../../src/core/errors.js";
import type { OutboundRequest, OutboundResult } from "../../../src/outbound/types.js";
import { verifySignature } from "../../../src/signature/signature.js";
import type { WebhooksOptions } from "../../../src/webhooks/config/webhooks-options.js";
import type { Emitted, EventInput } from "../../../src/webhooks/service.js";
import type { EventRecord, StoreStats, WebhookStore } from "../../../src/webhooks/store.js";
import { memoryStorage } from "../../../storage/memory/index.js";
import { issue, makeAuthority } from "../../support/certificates.js";
import { startEndpoint, until } from "../../support/https-endpoint.js";
import {
  type Api,
  registrationApi,
  START,
  storageWith,
  URL_1,
  URL_2,
} from "../../support/registration-api.js";

const ACME = { id: "first", account: "acme" };
const ID = "0f8fad5b-d9cb-469f-a165-70867728950e";
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const DAY = 86_400_000;

const patient = { resourceType: "Patient", id: "p1", managingOrganization: { reference: "Organization/o1" } };
const organization = { resourceType: "Organization", id: "o1", name: "Clinic" };
const event: EventInput<"patient.updated"> = { type: "patient.updated", account: "acme", resource: patient };

interface Stage extends Api {
  readonly emit: (...changes: object[]) => Promise<Emitted>;
  readonly stats: () => Promise<StoreStats>;
  readonly appended: readonly EventRecord[];
}

/** A service whose store can be looked into. */
function stage(options: Partial<WebhooksOptions> = {}, change: Partial<WebhookStore> = {}): Stage {
  const appended: EventRecord[] = [];
  let stats: Stage["stats"] | undefined;
  const storage = storageWith((store) => {
    stats = () => store.stats();
    return {
      append: (request) => {
        appended.push(...request.events);
        return store.append(request);
      },
      ...change,
    };
  });
  const api = registrationApi({ storage, ...options });
  return {
    ...api,
    appended,
    emit: (...changes) => api.webhooks.emit(Object.assign({}, event, ...changes) as EventInput),
    stats: async () => {
      if (!stats) throw new Error("There is no store yet.");
      return stats();
    },
  };
}

/** A list of three with a hole in the middle. */
const holed = <T>(item: T): T[] => Object.assign(Array<T>(3), { 0: item, 2: item });

const invalid = (field?: string): object => ({ code: "invalid_argument", field });

describe("emitting an event", () => {
  it("makes a delivery for each ENABLED webhook of the account that subscribes to the type", async () => {
    const { emit, webhooks } = stage();
    const { registrations } = webhooks;
    const all = await registrations.create({ subscriber: ACME, url: URL_1 });
    const some = await registrations.create({ subscriber: ACME, url: URL_2, eventTypes: ["patient.*"] });
    await registrations.create({ subscriber: ACME, url: URL_2, eventTypes: ["patient.created"] });
    const { webhook: disabled } = await registrations.create({ subscriber: ACME, url: URL_1 });
    await registrations.update({ id: disabled.id, status: "DISABLED" });
    await registrations.create({ subscriber: { id: "first", account: "bolt" }, url: URL_1 });

    const emitted = await emit();
    expect(emitted).toEqual({
      id: expect.stringMatching(UUID),
      duplicate: false,
      deliveries: [all, some].map(({ webhook }) => ({
        id: expect.stringMatching(new RegExp(`^${webhook.id}\\.`)),
        webhookId: webhook.id,
      })),
      webhooks: 4,
    });
    for (const { id } of emitted.deliveries) {
      expect(await webhooks.deliveries.get(id)).toMatchObject({ id, state: "pending", type: event.type });
    }
  });

  it("is no error for an account without webhooks, and keeps nothing for it", async () => {
    const { emit, stats } = stage();
    expect(await emit({ account: "nobody" })).toMatchObject({ duplicate: false, deliveries: [] });
    expect(await stats()).toMatchObject({ events: 0, bytes: 0 });
  });

  it("works before start: what is stored then is delivered after it", async () => {
    const sent: OutboundRequest[] = [];
    const send = async (request: OutboundRequest): Promise<OutboundResult> => {
      sent.push(request);
      return { kind: "response", status: 204, headers: {}, body: new Uint8Array(0), complete: true };
    };
    const { emit, webhooks } = stage({ delivery: { send } });
    await webhooks.registrations.create({ subscriber: ACME, url: URL_1 });
    await emit({ id: ID });
    expect(sent).toEqual([]);
    await webhooks.start();
    await webhooks.idle();
    await webhooks.stop();
    expect(sent).toHaveLength(1);
    expect(JSON.parse(Buffer.from(sent[0]?.body ?? []).toString())).toMatchObject({
      id: ID,
      timestamp: new Date(START).toISOString(),
    });
  });

  it("leads to a signed POST over TLS where the host has no way of sending of its own", async () => {
    const authority = await makeAuthority();
    const certificate = await issue({ authority, names: ["127.0.0.1"] });
    const endpoint = await startEndpoint({ certificate });
    const url = `https://127.0.0.1:${endpoint.port}/hook`;
    for (const ca of [authority.cert, Buffer.from(authority.cert), undefined]) {
      const { emit, webhooks, clock } = stage({ destinations: { allowPrivateNetworks: true, ca } });
      const { webhook, secret } = await webhooks.registrations.create({ subscriber: ACME, url });
      const [delivery] = (await emit()).deliveries;
      await webhooks.start();
      await webhooks.idle();
      const { state, attempts } = await webhooks.deliveries.get(delivery?.id ?? "");
      await webhooks.stop();
      await until(() => endpoint.openConnections() === 0);
      expect([state, attempts[0]?.kind]).toEqual(ca ? ["delivered", "delivered"] : ["pending", "tls"]);
      if (!ca) continue;
      const { head, body } = endpoint.requests.at(-1) ?? { head: "", body: "" };
      const header = /^x-service-signature: (.*)$/im.exec(head)?.[1];
      expect(verifySignature({ body, header, secrets: secret, now: clock.now() })).toMatchObject({
        ok: true,
      });
      expect(JSON.parse(String(body))).toMatchObject({ event: { "hub.topic": webhook.id } });
    }
    expect(endpoint.requests).toHaveLength(2);
    await endpoint.close();
  });

  it("takes the record as it is at the call, whatever the host does to it afterwards", async () => {
    const { emit, appended } = stage();
    const resource = { ...patient, active: true };
    const emitting = emit({ resource });
    resource.active = false;
    await emitting;
    expect(appended[0]?.payload).toContain('"active":true');
  });

  it("says whether the storage has confirmed it, where that says so", async () => {
    const stored = { result: "stored" as const, deliveries: [], webhooks: 0, confirmed: false };
    const append = async () => ({ results: [stored] });
    expect(await stage({}, { append }).emit()).toMatchObject({ confirmed: false });
    expect(await stage().emit()).not.toHaveProperty("confirmed");
  });
});

describe("an event that cannot be used", () => {
  it.each<[string, object, string]>([
    ["no account", { account: undefined }, "account"],
    ["an empty account", { account: "" }, "account"],
    ["an account that is no string", { account: 7 }, "account"],
    ["an account with a NUL", { account: "a\u0000b" }, "account"],
    ["an account of 257 characters", { account: "a".repeat(257) }, "account"],
    ["a type that is no string", { type: 7 }, "type"],
    ["no type", { type: undefined }, "type"],
    ["a type without a name of its own", { type: Object.create(null) }, "type"],
    ["no UUID", { id: "1" }, "id"],
    ["null for an id", { id: null }, "id"],
    ["a list with a UUID for an id", { id: [ID] }, "id"],
    ["the nil UUID", { id: "00000000-0000-0000-0000-000000000000" }, "id"],
    ["a UUID in braces", { id: `{${ID}}` }, "id"],
    ["no resource", { resource: undefined }, "resource"],
    ["a list for a resource", { resource: [patient] }, "resource"],
    ["text for a resource", { resource: JSON.stringify(patient) }, "resource"],
    ["a resource without a type", { resource: { id: "p1" } }, "resource.resourceType"],
    ["a resource of another type", { resource: organization }, "resource.resourceType"],
    ["an id that is no string", { resource: { ...patient, id: 1 } }, "resource.id"],
    ["no list of related ones", { related: organization }, "related"],
    ["null for the related ones", { related: null }, "related"],
    ["something else among them", { related: [organization, "Patient/1"] }, "related[1]"],
    ["a hole among them", { related: holed(organization) }, "related[1]"],
    ["one without a type among them", { related: [{ id: "1" }] }, "related[0].resourceType"],
  ])("is refused with %s, by its path, and nothing is stored", async (_, change, field) => {
    const { emit, webhooks, appended } = stage();
    await webhooks.registrations.create({ subscriber: ACME, url: URL_1 });
    await expect(emit(change)).rejects.toMatchObject(invalid(field));
    await expect(webhooks.emit([event, { ...event, ...change } as EventInput])).rejects.toMatchObject(
      invalid(`[1].${field}`),
    );
    expect(appended).toEqual([]);
  });

  it.each([undefined, null, 7, "patient.updated", true, Symbol("event"), () => event])(
    "is refused where it is no event at all: %s",
    async (input) => {
      const { webhooks, appended } = stage();
      await expect(webhooks.emit(input as unknown as EventInput)).rejects.toMatchObject(invalid(undefined));
      await expect(webhooks.emit([input] as unknown as EventInput[])).rejects.toMatchObject(invalid("[0]"));
      expect(appended).toEqual([]);
    },
  );

  it("is refused with a field that there is not, so that no slip of the pen goes unnoticed", async () => {
    const { emit } = stage();
    for (const field of ["Id", "occuredAt", "constructor", "eventId"]) {
      await expect(emit({ [field]: 1 })).rejects.toMatchObject({
        ...invalid(field),
        message: expect.stringContaining(`'${field}'`),
      });
    }
    const polluting = JSON.parse('{"__proto__":{}}') as object;
    await expect(emit({}, { related: [] })).resolves.toBeDefined();
    const { webhooks } = stage();
    const input = Object.defineProperty({ ...event }, "__proto__", { value: polluting, enumerable: true });
    await expect(webhooks.emit(input)).rejects.toMatchObject(invalid("__proto__"));
  });

  it("is refused with a misspelt field or option, and the nearest is named", async () => {
    const { webhooks } = stage();
    await expect(webhooks.emit({ ...event, occuredAt: new Date(0) } as EventInput)).rejects.toMatchObject({
      ...invalid("occuredAt"),
      message: "An event has no field 'occuredAt'; did you mean 'occurredAt'?",
    });
    await expect(webhooks.emit({ ...event, payload: {} } as EventInput)).rejects.toMatchObject({
      message:
        "An event has no field 'payload'; it takes 'type', 'account', 'resource', 'related', 'data', 'id', 'idempotencyKey', 'occurredAt', 'subject', 'tags', 'keepMs'.",
    });
    await expect(webhooks.emit(event, { transactoin: {} } as never)).rejects.toMatchObject({
      ...invalid("transactoin"),
      message: "emit() has no option 'transactoin'; did you mean 'transaction'?",
    });
  });

  it("is refused with a type that the catalogue does not have, and the nearest is named", async () => {
    const { emit, webhooks } = stage();
    await expect(emit({ type: "patient.upated" })).rejects.toMatchObject({
      code: "unknown_event_type",
      field: "type",
      message: expect.stringContaining("'patient.updated'"),
    });
    await expect(emit({ type: "order.created" })).rejects.toMatchObject({
      message: "unknown event type 'order.created'; it is not in the catalogue",
    });
    await expect(
      webhooks.emit([event, { ...event, type: "encounter.deleted" } as EventInput]),
    ).rejects.toMatchObject({ code: "unknown_event_type", field: "[1].type" });
    for (const type of ["__proto__", "constructor", "toString", "PATIENT.UPDATED", "patient.*", "*", ""]) {
      await expect(emit({ type })).rejects.toMatchObject({ code: "unknown_event_type" });
    }
  });
});

/** When a stored event says it occurred. */
const timestampOf = (event: EventRecord | undefined): number =>
  Date.parse((JSON.parse(event?.payload.split("\n")[0] ?? "{}") as { timestamp: string }).timestamp);

describe("occurredAt", () => {
  it.each<[string | Date, string]>([
    ["2026-02-28T23:59:59.999Z", "2026-02-28T23:59:59.999Z"],
    ["2026-02-28T23:59Z", "2026-02-28T23:59:00.000Z"],
    ["2026-03-01T01:30:00+02:00", "2026-02-28T23:30:00.000Z"],
    ["2024-02-29T12:00:00.123456-00:30", "2024-02-29T12:30:00.123Z"],
    ["0000-01-01T00:00:00Z", "0000-01-01T00:00:00.000Z"],
    ["9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"],
    [new Date(0), "1970-01-01T00:00:00.000Z"],
    [new Date(8.64e14 / 100), "2243-10-17T00:00:00.000Z"],
  ])("may be %s", async (occurredAt, timestamp) => {
    const { emit, appended } = stage();
    await emit({ occurredAt });
    expect(timestampOf(appended[0])).toBe(Date.parse(timestamp));
    expect(appended[0]?.payload).toContain(`"timestamp":"${timestamp}"`);
  });

  it.each<[string, unknown]>([
    ["a date alone", "2026-03-01"],
    ["a time without an offset", "2026-03-01T12:00:00"],
    ["a blank for the T", "2026-03-01 12:00:00Z"],
    ["words", "tomorrow"],
    ["another order", "03/01/2026 12:00:00Z"],
    ["the 30th of February", "2026-02-30T00:00:00Z"],
    ["the 29th of February of another year", "2025-02-29T00:00:00Z"],
    ["the 31st of April", "2026-04-31T23:00:00-05:00"],
    ["a thirteenth month", "2026-13-01T00:00:00Z"],
    ["a day 0", "2026-01-00T00:00:00Z"],
    ["a leap second", "2016-12-31T23:59:60Z"],
    ["an offset of 99 hours", "2026-01-01T00:00:00+99:99"],
    ["a year of six digits", "+012026-01-01T00:00:00Z"],
    ["a time that an offset moves out of range", "0000-01-01T00:00:00+01:00"],
    ["an empty string", ""],
    ["a number", START],
    ["null", null],
    ["a list with a time", ["2026-03-01T12:00:00Z"]],
    ["an object that reads like a time", { toString: () => "2026-03-01T12:00:00Z" }],
    ["an invalid Date", new Date(Number.NaN)],
    ["a Date before the year 0", new Date(-8.64e15)],
    ["a Date after the year 9999", new Date(8.64e15)],
    ["what only claims to be a Date", Object.create(Date.prototype)],
  ])("may not be %s", async (_, occurredAt) => {
    const { emit, appended } = stage();
    await expect(emit({ occurredAt })).rejects.toMatchObject(invalid("occurredAt"));
    expect(appended).toEqual([]);
  });

  it("is the present where it is left out", async () => {
    const { emit, appended, clock } = stage();
    await clock.advance(5);
    await emit();
    expect(timestampOf(appended[0])).toBe(START + 5);
  });
});

describe("emitting the same id again", () => {
  it("adds nothing, and gives the first result, in whatever case the id is written", async () => {
    const { emit, webhooks, stats, clock } = stage();
    await webhooks.registrations.create({ subscriber: ACME, url: URL_1 });
    const first = await emit({ id: ID.toUpperCase() });
    expect(first).toMatchObject({ id: ID, duplicate: false });
    await webhooks.registrations.create({ subscriber: ACME, url: URL_2 });
    await clock.advance(DAY - 1);
    expect(await emit({ id: ID })).toEqual({ ...first, duplicate: true, webhooks: 2 });
    expect(await stats()).toMatchObject({ events: 1, pending: 1 });
  });

  it("makes one event of concurrent calls", async () => {
    const { emit, webhooks, stats } = stage();
    await webhooks.registrations.create({ subscriber: ACME, url: URL_1 });
    const results = await Promise.all(Array.from({ length: 20 }, () => emit({ id: ID })));
    expect(results.filter(({ duplicate }) => !duplicate)).toHaveLength(1);
    expect(await stats()).toMatchObject({ events: 1, pending: 1 });
  });

  it.each<[string, object]>([
    ["another record", { resource: { ...patient, active: false } }],
    ["another type", { type: "patient.created" }],
    ["another time", { occurredAt: "2026-01-01T00:00:00Z" }],
    ["other related records", { related: [organization] }],
  ])("is a conflict with %s, and the first event stays as it is", async (_, change) => {
    const { emit, webhooks, stats } = stage();
    await webhooks.registrations.create({ subscriber: ACME, url: URL_1 });
    await emit({ id: ID });
    await expect(emit({ id: ID }, change)).rejects.toMatchObject({ code: "event_conflict", field: "id" });
    expect(await emit({ id: ID })).toMatchObject({ duplicate: true });
    expect(await stats()).toMatchObject({ events: 1, pending: 1 });
  });

  it("is no conflict where only what was looked up has changed, or the time of the call", async () => {
    let name = "old";
    const { emit, clock } = stage({ resolveReference: () => ({ ...organization, name }) });
    await emit({ id: ID });
    name = "new";
    await clock.advance(1000);
    expect(await emit({ id: ID })).toMatchObject({ duplicate: true });
  });

  it("means another event in another account", async () => {
    const { emit } = stage();
    await emit({ id: ID });
    expect(await emit({ id: ID, account: "bolt" })).toMatchObject({ id: ID, duplicate: false });
  });
});

describe("emitting a list", () => {
  const three = (change: object = {}): EventInput[] => [
    { ...event, id: "11111111-1111-4111-8111-111111111111" },
    { ...event, id: "22222222-2222-4222-8222-222222222222", ...change },
    { ...event, id: "33333333-3333-4333-8333-333333333333" },
  ];

  it("gives a list of results in the same order, and of nothing nothing", async () => {
    const { webhooks } = stage();
    const results = await webhooks.emit(three());
    expect(results.map(({ id }) => id.slice(0, 4))).toEqual(["1111", "2222", "3333"]);
    expect(await webhooks.emit([])).toEqual([]);
  });

  it("stores nothing where one of them is refused", async () => {
    const { webhooks, appended } = stage({ limits: { notificationBytes: 1024 } });
    const large = { resource: { ...patient, text: "x".repeat(1024) } };
    await expect(webhooks.emit(three(large))).rejects.toMatchObject({ code: "event_too_large" });
    await expect(webhooks.emit(holed(event))).rejects.toMatchObject(invalid("[1]"));
    expect(appended).toEqual([]);
  });

  it("says at which one storing stopped and how many were stored; the same list may be emitted again", async () => {
    const { webhooks } = stage();
    await webhooks.emit({ ...event, id: "22222222-2222-4222-8222-222222222222", type: "patient.created" });
    const error = webhooks.emit(three());
    await expect(error).rejects.toMatchObject({ code: "event_conflict", field: "[1]" });
    await expect(error).rejects.toThrow(/\. 1 of 3 events were stored\.$/);
    const [first, , third] = three();
    expect(await webhooks.emit([first, third] as EventInput[])).toMatchObject([
      { duplicate: true },
      { duplicate: false },
    ]);
  });

  it("is stored fifty events at a time, and takes no slots from other deliveries meanwhile", async () => {
    const calls: { readonly events: number; readonly isClaiming: boolean }[] = [];
    const storage = storageWith((store) => ({
      append(request) {
        calls.push({ events: request.events.length, isClaiming: request.claim !== undefined });
        return store.append(request);
      },
    }));
    const { webhooks } = registrationApi({ storage });
    await webhooks.start();
    const many = Array.from({ length: 120 }, () => event);
    expect(await webhooks.emit(many)).toHaveLength(120);
    await webhooks.emit(event);
    expect(calls).toEqual([
      { events: 50, isClaiming: false },
      { events: 50, isClaiming: false },
      { events: 20, isClaiming: false },
      { events: 1, isClaiming: true },
    ]);
    await webhooks.stop();
  });

  it("says how many are known to be stored if one call of the storage gets no answer", async () => {
    let calls = 0;
    const storage = storageWith((store) => ({
      async append(request) {
        calls += 1;
        if (calls === 2) throw new PostbellError("storage_unavailable", "No answer.", { effect: "unknown" });
        return store.append(request);
      },
    }));
    const { webhooks } = registrationApi({ storage });
    const listed = webhooks.emit(Array.from({ length: 120 }, () => event));
    await expect(listed).rejects.toMatchObject({ code: "storage_unavailable", field: "[50]" });
    await expect(listed).rejects.toThrow(/At least 50 of 120 events were stored\.$/);
    expect(calls).toBe(2);
  });

  it("counts an id that comes twice in it once", async () => {
    const { webhooks } = stage();
    const [first] = three() as [EventInput];
    expect(await webhooks.emit([first, first])).toMatchObject([{ duplicate: false }, { duplicate: true }]);
  });
});

describe("a storage that refuses", () => {
  it("full: the emitter is told, nothing of the event is stored, and there is room again later", async () => {
    const storage = memoryStorage({ limits: { pendingPerAccount: 3 } });
    const { webhooks } = registrationApi({ storage });
    const { webhook } = await webhooks.registrations.create({ subscriber: ACME, url: URL_1 });
    await webhooks.registrations.create({ subscriber: ACME, url: URL_2 });
    await webhooks.emit(event);
    await expect(webhooks.emit({ ...event, id: ID })).rejects.toMatchObject({ code: "storage_full" });
    expect((await webhooks.deliveries.list({ webhookId: webhook.id })).items).toHaveLength(1);
    const listed = webhooks.emit([event, event]);
    await expect(listed).rejects.toMatchObject({ code: "storage_full", field: "[0]" });
    await expect(listed).rejects.toThrow(/\. 0 of 2 events were stored\.$/);
    await webhooks.registrations.remove(webhook.id);
    expect(await webhooks.emit({ ...event, id: ID })).toMatchObject({ duplicate: false });
  });

  it.each([
    new PostbellError("storage_unavailable", "no answer"),
    Object.assign(new Error("no answer"), {
      [Symbol.for("postbell.error")]: true,
      code: "storage_unavailable",
    }),
  ])(
    "away: the error reaches the emitter by its code, whichever copy of the package made it",
    async (thrown) => {
      const { emit, webhooks } = stage({}, { append: () => Promise.reject(thrown) });
      await expect(emit()).rejects.toMatchObject({ code: "storage_unavailable" });
      await expect(webhooks.emit([event])).rejects.toMatchObject({
        code: "storage_unavailable",
        field: "[0]",
        effect: "unknown",
        eventId: expect.stringMatching(/^[0-9a-f-]{36}$/),
        cause: thrown,
      });
    },
  );

  it.each(["none", "unknown"] as const)(
    "away: the error says if the event may be stored (%s), and names the id to emit it with again",
    async (effect) => {
      const thrown = new PostbellError("storage_unavailable", "no answer", { effect });
      let isAway = true;
      const storage = storageWith((store) => ({
        append: (request) => (isAway ? Promise.reject(thrown) : store.append(request)),
      }));
      const { webhooks } = registrationApi({ storage });
      const error = await webhooks.emit(event).catch((caught: unknown) => caught);
      expect(error).toMatchObject({ effect, eventId: expect.stringMatching(/^[0-9a-f-]{36}$/) });
      isAway = false;
      const { eventId } = error as PostbellError;
      expect(await webhooks.emit({ ...event, id: eventId })).toMatchObject({ id: eventId });
    },
  );

  it("with an error of its own: that error reaches the emitter as it is", async () => {
    const thrown = new TypeError("defect");
    const { emit, webhooks } = stage({}, { append: () => Promise.reject(thrown) });
    await expect(emit()).rejects.toBe(thrown);
    await expect(webhooks.emit([event])).rejects.toBe(thrown);
  });
});

describe("a defect of the storage's clock", () => {
  it("reaches the emitter as it is, of a list too", async () => {
    const thrown = new TypeError("defect");
    const now = (): never => {
      throw thrown;
    };
    const { emit, webhooks, appended } = stage({}, { now });
    await expect(emit()).rejects.toBe(thrown);
    await expect(webhooks.emit([event])).rejects.toBe(thrown);
    expect(appended).toEqual([]);
  });
});

describe("resolveReference", () => {
  it("is asked for what related does not hold, with account and type", async () => {
    const asked: unknown[] = [];
    const { emit, appended } = stage({
      resolveReference: (reference, context) => {
        asked.push([reference, context]);
        return organization;
      },
    });
    await emit({ related: [organization] });
    expect(asked).toEqual([]);
    await emit();
    expect(asked).toEqual([["Organization/o1", { account: "acme", eventType: "patient.updated" }]]);
    expect(appended[1]?.payload).toContain('"name":"Clinic"');
  });

  it.each<[string, () => unknown]>([
    [
      "throws",
      () => {
        throw new Error("no Zoë in the database");
      },
    ],
    ["rejects", () => Promise.reject(new Error("no Zoë in the database"))],
    ["rejects with text", () => Promise.reject("no Zoë in the database")],
  ])("that %s costs the event an entry, and is logged without its words", async (_, resolveReference) => {
    const { emit, appended, log } = stage({ resolveReference: resolveReference as () => null });
    expect(await emit()).toMatchObject({ duplicate: false });
    expect(appended[0]?.payload).toContain('"reference":"Organization/o1"');
    expect(log).toMatchObject([{ level: "warn", fields: { account: "acme", eventType: "patient.updated" } }]);
    expect(JSON.stringify(log)).not.toMatch(/Zoë|database/);
  });

  it("that hangs costs the event an entry after five seconds", async () => {
    const { emit, appended, log, clock } = stage({ resolveReference: () => new Promise(() => {}) });
    const emitting = emit();
    await clock.advance(4_999);
    expect(appended).toEqual([]);
    await clock.advance(1);
    expect(await emitting).toMatchObject({ duplicate: false });
    expect(log).toHaveLength(1);
    expect(clock.nextTimerAt()).toBeUndefined();
  });

  it("that hangs for every one of many references holds the event up for five seconds in all", async () => {
    const asked: string[] = [];
    const { emit, appended, clock } = stage({
      resolveReference: (reference) => {
        asked.push(reference);
        return new Promise(() => {});
      },
    });
    const link = Array.from({ length: 1_000 }, (_, index) => ({ other: { reference: `Patient/${index}` } }));
    const emitting = emit({ resource: { ...patient, link } });
    await clock.advance(5_000);
    await emitting;
    expect(appended).toHaveLength(1);
    expect(asked).toHaveLength(8);
    expect(clock.nextTimerAt()).toBeUndefined();
  });

  it.each([
    undefined,
    null,
    7,
    "Organization/o1",
    [],
    {},
    { resourceType: 7 },
    { resourceType: "Organization", id: "another" },
    { resourceType: "Practitioner", id: "o1" },
    { ...organization, loop: 1n },
  ])("that gives %s costs the event an entry, and no more", async (answer) => {
    const { emit, appended, log } = stage({ resolveReference: (() => answer) as () => null });
    await emit();
    expect(appended).toHaveLength(1);
    expect(appended[0]?.payload).not.toMatch(/"name":"Clinic"|another|Practitioner/);
    expect(log).toEqual([]);
  });
});

describe("an event that is too large", () => {
  it("by its bytes is refused, and nothing is stored", async () => {
    const { emit, appended } = stage({ limits: { notificationBytes: 2048 } });
    const tooLarge = { code: "event_too_large", field: "resource" };
    await expect(emit({ resource: { ...patient, text: "x".repeat(2048) } })).rejects.toMatchObject(tooLarge);
    await expect(emit({ resource: { ...patient, text: "文".repeat(700) } })).rejects.toMatchObject(tooLarge);
    const related = [{ ...organization, text: "x".repeat(2048) }];
    await expect(emit({ related })).rejects.toMatchObject(tooLarge);
    expect(appended).toEqual([]);
    await emit({ resource: { ...patient, text: "x".repeat(1024) } });
  });

  it("by its entries is refused, also where they were looked up", async () => {
    const resolveReference = (reference: string) => ({
      resourceType: "Organization",
      id: reference.slice("Organization/".length),
      partOf: { reference: `Organization/o${Number(reference.slice("Organization/o".length)) + 1}` },
    });
    const { emit, appended } = stage({ limits: { entries: 5 }, resolveReference });
    await expect(emit()).rejects.toMatchObject({ code: "event_too_large" });
    expect(appended).toEqual([]);
  });
});

describe("a record that cannot be serialised", () => {
  const cyclic = (): object => {
    const record: Record<string, unknown> = { ...patient };
    record["self"] = { deep: [record] };
    return record;
  };
  const nested = (depth: number): object => {
    let value: object = {};
    for (let level = 0; level < depth; level++) value = { a: value };
    return { ...patient, value };
  };
  const refuse = (): never => {
    throw new RangeError("a trap");
  };
  const TRAPS: readonly (readonly [string, () => unknown])[] = [
    ["a cycle", cyclic],
    ["a BigInt", () => ({ ...patient, big: 1n })],
    ["a toJSON that throws", () => ({ ...patient, toJSON: refuse })],
    ["a toJSON that gives nothing", () => ({ ...patient, toJSON: () => undefined })],
    ["a depth of 100 000", () => nested(100_000)],
    ["a depth of 201", () => nested(201)],
    [
      "a getter that throws",
      () => Object.defineProperty({ ...patient }, "name", { get: refuse, enumerable: true }),
    ],
    ["a proxy that refuses its names", () => new Proxy({ ...patient }, { ownKeys: refuse })],
    ["a proxy that refuses its values", () => new Proxy({ ...patient }, { get: refuse })],
    ["a function", () => refuse],
    ["a symbol", () => Symbol("x")],
  ];

  it.each(TRAPS)(
    "%s: refused in the caller, as the record, a related one, the list, or the event itself",
    async (_, make) => {
      const { emit, webhooks, appended } = stage();
      const refused = { name: "PostbellError", code: "invalid_argument" };
      await expect(emit({ resource: make() })).rejects.toMatchObject({ ...refused, field: "resource" });
      await expect(emit({ related: [make()] })).rejects.toMatchObject({ ...refused, field: "related[0]" });
      await expect(emit({ related: make() })).rejects.toMatchObject(refused);
      await expect(webhooks.emit(make() as EventInput)).rejects.toMatchObject(refused);
      await expect(webhooks.emit([event, make() as EventInput])).rejects.toMatchObject(refused);
      expect(appended).toEqual([]);
      await emit();
    },
  );

  it("a revoked proxy: refused in the caller", async () => {
    const { emit, webhooks, appended } = stage();
    const { proxy, revoke } = Proxy.revocable({ ...patient }, {});
    revoke();
    for (const change of [{ resource: proxy }, { related: [proxy] }, { related: proxy }]) {
      await expect(emit(change)).rejects.toMatchObject({ code: "invalid_argument" });
    }
    await expect(webhooks.emit(proxy as unknown as EventInput)).rejects.toThrow(TypeError);
    expect(appended).toEqual([]);
  });

  it("reads each field once, so that no getter can say something else the second time", async () => {
    const reads: string[] = [];
    const { webhooks, appended } = stage();
    const input = new Proxy(event, {
      get(target, key) {
        reads.push(String(key));
        return Reflect.get(target, key) as unknown;
      },
    });
    await webhooks.emit(input);
    expect(reads.sort()).toEqual([
      "account",
      "data",
      "id",
      "idempotencyKey",
      "keepMs",
      "occurredAt",
      "related",
      "resource",
      "subject",
      "tags",
      "type",
    ]);
    expect(appended).toHaveLength(1);
  });

  it("whatever is emitted is stored and readable, or refused with a code", async () => {
    const { webhooks, appended } = stage();
    const anything = fc.anything({
      withBigInt: true,
      withDate: true,
      withNullPrototype: true,
      withSparseArray: true,
    });
    /** Functions that make the values, since a trap goes off at any touch. */
    const value = fc.oneof(
      anything.map((given) => () => given),
      fc.constantFrom(...TRAPS.map(([, make]) => make)),
    );
    type Make = () => unknown;
    const mostly = (usual: fc.Arbitrary<unknown>): fc.Arbitrary<Make> =>
      fc.oneof(
        {
          weight: 9,
          arbitrary: usual.map(
            (given): Make =>
              () =>
                given,
          ),
        },
        value,
      );
    const built = (makers: Readonly<Record<string, Make>>): object =>
      Object.fromEntries(Object.entries(makers).map(([key, make]) => [key, make()]));
    const resource = fc.oneof(
      { weight: 1, arbitrary: value },
      {
        weight: 4,
        arbitrary: fc.dictionary(fc.string(), mostly(fc.jsonValue())).map(
          (more): Make =>
            () => ({ ...built(more), ...patient }),
        ),
      },
    );
    const related = fc.array(resource, { maxLength: 3 }).map(
      (makers): Make =>
        () =>
          makers.map((make) => make()),
    );
    const anyEvent = fc
      .record(
        {
          type: mostly(fc.constant(event.type)),
          account: mostly(fc.constant("acme")),
          resource,
          related: fc.oneof({ weight: 9, arbitrary: related }, value),
          id: mostly(fc.uuid({ version: [1, 4, 5, 7] })),
          occurredAt: mostly(
            fc.date({ min: new Date(0), max: new Date("9999-12-31T23:59:59.999Z"), noInvalidDate: true }),
          ),
        },
        { requiredKeys: ["type", "account", "resource"] },
      )
      .map((makers) => built(makers) as EventInput);
    const outcomes: unknown[] = [];
    await fc.assert(
      fc.asyncProperty(anyEvent, async (input) => {
        const before = appended.length;
        const outcome: unknown = await webhooks.emit(input).then(
          () => "stored",
          (error: unknown) => (isPostbellError(error) ? error.code : error),
        );
        expect(outcome).toBeTypeOf("string");
        // A generated id may come twice, which only the store can notice.
        const isOffered = outcome === "stored" || outcome === "event_conflict";
        expect(appended).toHaveLength(before + (isOffered ? 1 : 0));
        outcomes.push(outcome);
      }),
      { numRuns: 500 },
    );
    for (const outcome of ["stored", "invalid_argument"]) {
      expect(outcomes.filter((one) => one === outcome).length).toBeGreaterThan(20);
    }
  });
});
