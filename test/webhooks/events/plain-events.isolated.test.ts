/** Events without a FHIR resource: what is sent, who is asked, and what is refused. */

import { Webhook as StandardWebhook } from "standardwebhooks";
import { Webhook as SvixWebhook } from "svix";
import { afterEach, describe, expect, it, vi } from "vitest";
import { isPostbellError } from "../../../src/core/errors.js";
import type { OutboundRequest } from "../../../src/outbound/types.js";
import { manualClock } from "../../../src/testing/manual-clock.js";
import type { WebhooksOptions } from "../../../src/webhooks/config/webhooks-options.js";
import type { EventCatalogue } from "../../../src/webhooks/event-types/catalogue.js";
import { createWebhooks, type Webhooks } from "../../../src/webhooks/service.js";
import { memoryStorage } from "../../../storage/memory/index.js";

afterEach(() => {
  vi.useRealTimers();
});

const AT = Date.parse("2026-03-01T12:00:00Z");
const ID = "0b9d3a0e-2f4c-4f57-8d0c-6a1f5e7f3c21";
const KEY = { id: "key-1", account: "shop-7" };
const ORDER = { order: "A-1", total: 4200 };

const EVENTS = {
  "order.paid": {
    description: "An order was paid in full.",
    example: ORDER,
    schema: {
      type: "object",
      properties: { order: { type: "string" }, total: { type: "integer", minimum: 0 } },
      required: ["order", "total"],
    },
  },
  order_paid: {},
  "invoice.payment.failed": {},
} as const;

/** A service of a shop, whose deliveries are collected. */
function open<const C extends EventCatalogue>(
  events: C,
  options: Partial<Omit<WebhooksOptions<C>, "events" | "storage">> = {},
) {
  const sent: OutboundRequest[] = [];
  const asked: unknown[] = [];
  const access: unknown = {
    authenticate: () => null,
    canRead: (_: unknown, event: unknown) => {
      asked.push(event);
      return true;
    },
  };
  const create = createWebhooks as (options: WebhooksOptions<C>) => Webhooks<C>;
  const webhooks = create({
    storage: memoryStorage(),
    clock: manualClock(AT),
    logger: false,
    events,
    access: access as WebhooksOptions<C>["access"],
    delivery: {
      send: async (request) => {
        sent.push(request);
        return { kind: "response", status: 204, headers: {}, body: new Uint8Array(), complete: true };
      },
    },
    ...options,
  });
  const register = (eventTypes?: readonly string[]) =>
    webhooks.registrations.create({ subscriber: KEY, url: "https://hooks.example.com/in", eventTypes });
  const deliver = async (): Promise<readonly string[]> => {
    await webhooks.start();
    await webhooks.idle();
    return sent.map(({ body }) => Buffer.from(body ?? []).toString());
  };
  return { webhooks, register, deliver, sent, asked };
}

const refusal = async (call: () => unknown): Promise<readonly unknown[]> => {
  try {
    await call();
  } catch (error) {
    if (isPostbellError(error)) return [error.code, error.field, error.message];
    throw error;
  }
  throw new Error("It was not refused.");
};

describe("a plain event", () => {
  it("is sent as id, type, timestamp and data, and nothing else", async () => {
    const { webhooks, register, deliver } = open(EVENTS);
    await register();
    await webhooks.emit({ type: "order.paid", account: "shop-7", id: ID, data: ORDER });
    expect(await deliver()).toEqual([
      `{"id":"${ID}","type":"order.paid","timestamp":"2026-03-01T12:00:00.000Z","data":{"order":"A-1","total":4200}}`,
    ]);
  });

  it("is signed as the libraries of Standard Webhooks and Svix expect it", async () => {
    const { webhooks, register, deliver, sent } = open(EVENTS, { signature: { standardWebhooks: true } });
    const { secret } = await register();
    const { id } = await webhooks.emit({ type: "order_paid", account: "shop-7", data: ["é", null] });
    const [body = ""] = await deliver();
    expect(sent[0]?.headers).toMatchObject({
      "webhook-id": id,
      "webhook-timestamp": String(AT / 1000),
      "webhook-signature": new StandardWebhook(secret).sign(id, new Date(AT), body),
    });
    // The libraries compare with the system's time.
    vi.useFakeTimers({ now: AT, toFake: ["Date"] });
    for (const Library of [StandardWebhook, SvixWebhook]) {
      const headers = sent[0]?.headers as Record<string, string>;
      expect(new Library(secret).verify(body, headers)).toMatchObject({
        id,
        type: "order_paid",
        data: ["é", null],
      });
      expect(() => new Library(secret).verify(`${body} `, headers)).toThrow("No matching signature found");
    }
  });

  it("is shown whole to canRead, and is not sent if that says no", async () => {
    let isAllowed = true;
    const asked: unknown[] = [];
    const access = {
      authenticate: () => null,
      canRead: (_: unknown, event: unknown) => {
        asked.push(event);
        return isAllowed;
      },
    };
    const { webhooks, register, deliver } = open(EVENTS, { access });
    await register();
    const emit = () => webhooks.emit({ type: "order.paid", account: "shop-7", data: ORDER });
    const first = await emit();
    expect(await deliver()).toHaveLength(1);
    expect(asked).toEqual([
      { id: first.id, type: "order.paid", timestamp: "2026-03-01T12:00:00.000Z", data: ORDER },
    ]);
    isAllowed = false;
    const [delivery] = (await emit()).deliveries;
    expect(await deliver()).toHaveLength(1);
    expect(await webhooks.deliveries.get(delivery?.id ?? "")).toMatchObject({ state: "withheld" });
  });

  it("asks for no references", async () => {
    const resolveReference = () => {
      throw new Error("It was asked.");
    };
    const { webhooks, register, deliver } = open(EVENTS, { resolveReference });
    await register();
    await webhooks.emit({ type: "order_paid", account: "shop-7", data: { reference: "Patient/1" } });
    expect(await deliver()).toEqual([expect.stringContaining(`"data":{"reference":"Patient/1"}}`)]);
  });

  it("is one event for one id, and a conflict with other data", async () => {
    const { webhooks, register } = open(EVENTS);
    await register();
    const emit = (total: number) =>
      webhooks.emit({ type: "order.paid", account: "shop-7", id: ID, data: { ...ORDER, total } });
    expect(await emit(1)).toMatchObject({ duplicate: false });
    expect(await emit(1)).toMatchObject({ duplicate: true });
    expect(await refusal(() => emit(2))).toEqual(["event_conflict", "id", expect.any(String)]);
  });

  it.each<[string, object, string]>([
    ["no data", {}, "data"],
    ["data that JSON cannot hold", { data: () => 1 }, "data"],
    ["data with a BigInt", { data: { total: 1n } }, "data"],
    ["data that nests too deep", { data: JSON.parse(`${"[".repeat(201)}${"]".repeat(201)}`) }, "data"],
    ["a resource", { data: 1, resource: { resourceType: "Patient" } }, "resource"],
    ["related resources", { data: 1, related: [] }, "related"],
    ["a field that does not exist", { data: 1, payload: 1 }, "payload"],
  ])("is refused with %s, and nothing is stored", async (_, fields, field) => {
    const { webhooks, register } = open(EVENTS);
    const { webhook } = await register();
    const event = { type: "order_paid", account: "shop-7", ...fields } as never;
    expect(await refusal(() => webhooks.emit(event))).toEqual([
      "invalid_argument",
      field,
      expect.stringContaining(field),
    ]);
    expect((await webhooks.deliveries.list({ webhookId: webhook.id })).items).toEqual([]);
  });

  it("is refused if it is larger than a notification may be", async () => {
    const { webhooks } = open(EVENTS, { limits: { notificationBytes: 1024 } });
    const emit = (length: number) =>
      webhooks.emit({ type: "order_paid", account: "shop-7", id: ID, data: "x".repeat(length) });
    const around = `{"id":"${ID}","type":"order_paid","timestamp":"2026-03-01T12:00:00.000Z","data":""}`
      .length;
    await emit(1024 - around);
    expect(await refusal(() => emit(1025 - around))).toEqual(["event_too_large", "data", expect.any(String)]);
  });

  it("is received by those who subscribe to its type, to a part of it or to all", async () => {
    const { webhooks, register } = open(EVENTS);
    const [type, part, start, all] = [
      await register(["invoice.payment.failed"]),
      await register(["invoice.payment.*"]),
      await register(["invoice.*"]),
      await register(["*"]),
    ];
    await register(["order.*", "order_paid"]);
    const event = { type: "invoice.payment.failed", account: "shop-7", data: {} } as const;
    const { deliveries } = await webhooks.emit(event);
    expect(deliveries.map(({ webhookId }) => webhookId).sort()).toEqual(
      [type, part, start, all].map(({ webhook }) => webhook.id).sort(),
    );
  });
});

/** Schemas within schemas. */
function nest(levels: number): object {
  let schema = {};
  for (let level = 0; level < levels; level += 1) schema = { items: schema };
  return schema;
}

describe("the schema of a plain event", () => {
  const wrong = { type: "order.paid", account: "shop-7", data: { order: "A-1", total: -1 } } as const;

  it("refuses other data, and names the place and the rule", async () => {
    const { webhooks } = open(EVENTS);
    expect(await refusal(() => webhooks.emit(wrong))).toEqual([
      "invalid_argument",
      "data.total",
      "data.total does not match 'minimum' in the schema of 'order.paid'",
    ]);
    const event = { type: "order.paid", account: "shop-7", data: {} } as never;
    expect((await refusal(() => webhooks.emit(event))).slice(0, 2)).toEqual(["invalid_argument", "data"]);
    expect((await refusal(() => webhooks.emit([wrong])))[1]).toBe("[0].data.total");
  });

  it("checks what is sent, not what an object shows", async () => {
    const { webhooks } = open(EVENTS);
    const total = { toJSON: () => 5 } as unknown as number;
    const event = { type: "order.paid", account: "shop-7", data: { order: "A-1", total } } as const;
    expect(await webhooks.emit(event)).toMatchObject({ duplicate: false });
  });

  it.each<[string, unknown, string, string]>([
    ["an invalid pattern", { pattern: "(" }, ".pattern", 'flag u (got "(")'],
    ["a pattern with a lookahead", { pattern: "^(?=a)" }, ".pattern", "lookaround"],
    ["a reference to nowhere", { $ref: "#/nowhere" }, ".$ref", "such as '#/$defs/name'"],
    ["a reference to itself", { $ref: "#" }, ".$ref", "leads back to itself"],
    [
      "a text as a bound",
      { properties: { total: { minimum: "5" } } },
      ".properties.total.minimum",
      'got "5"',
    ],
    ["a list of properties", { properties: [] }, ".properties", "must be an object of schemas"],
    ["a Map", new Map(), "", "got a Map"],
    ["a Promise", Promise.resolve({}), "", "got a Promise"],
    ["a Date within", { properties: { a: { const: new Date(0) } } }, ".properties.a.const", "got a Date"],
    ["a schema of a library", { "~standard": { vendor: "zod" } }, "", "~standard"],
    ["one within", { properties: { a: { "~standard": {} } } }, ".properties.a", "~standard"],
    ["a function of a library", Object.assign(() => 1, { "~standard": {} }), "", "~standard"],
    ["a misspelt keyword", { propertys: {} }, ".propertys", "did you mean 'properties'?"],
    ["3000 levels", nest(3_000), `.${"items.".repeat(50)}`, "deeper than 64 levels"],
  ])("is refused when the service is created: %s", async (_, schema, path, message) => {
    expect(await refusal(() => open({ a: { schema: schema as never } }))).toEqual([
      "invalid_option",
      `events['a'].schema${path}`,
      expect.stringContaining(message),
    ]);
  });

  it("may contain itself through a property or an item", async () => {
    const tree = {
      type: "object",
      properties: { left: { $ref: "#" }, more: { type: "array", items: { $ref: "#" } } },
    };
    const { webhooks } = open({ a: { schema: tree as never } });
    const emit = (data: unknown) => webhooks.emit({ type: "a", account: "shop-7", data } as never);
    expect(await emit({ left: { left: {} }, more: [{ left: {} }] })).toMatchObject({ duplicate: false });
    expect((await refusal(() => emit({ more: [{ left: 1 }] })))[1]).toBe("data.more.0.left");
  });

  it("refuses data that costs too much to check, whatever it says", async () => {
    const schema = {
      type: "array",
      items: { oneOf: Array.from({ length: 100 }, (_, index) => ({ const: index })) },
    };
    const { webhooks } = open({ a: { schema: schema as never } });
    const data = Array.from({ length: 100_000 }, () => 1);
    expect(await refusal(() => webhooks.emit({ type: "a", account: "shop-7", data } as never))).toEqual([
      "invalid_argument",
      "data",
      expect.stringContaining("too complex"),
    ]);
  });

  it("is named in errors, and no name that came with the data is", async () => {
    const name = "secret".repeat(10_000);
    const schema = {
      additionalProperties: {
        type: "object",
        properties: { total: { type: "integer" } },
        additionalProperties: false,
      },
    };
    const { webhooks } = open({ a: { schema: schema as never } });
    const emit = (data: unknown) =>
      refusal(() => webhooks.emit({ type: "a", account: "shop-7", data } as never));
    const inSchema = (path: string, keyword: string) => [
      "invalid_argument",
      path,
      `${path} does not match '${keyword}' in the schema of 'a'`,
    ];
    expect(await emit({ [name]: { total: "1" } })).toEqual(inSchema("data.*.total", "type"));
    expect(await emit({ [name]: { [name]: 1 } })).toEqual(inSchema("data.*", "additionalProperties"));
  });

  it("is not checked with checkData: false", async () => {
    const { webhooks } = open(EVENTS, { checkData: false });
    expect(await webhooks.emit(wrong)).toMatchObject({ duplicate: false });
  });
});

describe("a test of a plain event", () => {
  it("has the form of the event, its example as data, and a mark", async () => {
    const { webhooks, register, deliver } = open(EVENTS);
    const { webhook } = await register();
    for (const type of ["order.paid", "order_paid", undefined] as const)
      await webhooks.deliveries.test({ webhookId: webhook.id, ...(type && { type }) });
    const bodies = (await deliver()).map((body) => JSON.parse(body) as object);
    const common = { id: expect.any(String), timestamp: "2026-03-01T12:00:00.000Z", test: true };
    const message = "This is a test of your webhook. It is about no record.";
    expect(bodies).toEqual([
      { ...common, type: "order.paid", data: ORDER },
      { ...common, type: "order_paid", data: { message } },
      { ...common, type: "webhook.test", data: { message } },
    ]);
  });
});

describe("a service with both kinds of events", () => {
  const both = { "patient.updated": "Patient", "order.paid": {} } as const;

  it("sends each in its form", async () => {
    const { webhooks, register, deliver, asked } = open(both);
    await register();
    const resource = { resourceType: "Patient", id: "p1" } as const;
    await webhooks.emit({ type: "patient.updated", account: "shop-7", resource });
    await webhooks.emit({ type: "order.paid", account: "shop-7", data: 1 });
    const bodies = (await deliver()).map((body) => Object.keys(JSON.parse(body) as object));
    expect(bodies).toEqual([
      ["id", "timestamp", "event"],
      ["id", "type", "timestamp", "data"],
    ]);
    expect(asked).toEqual([resource, expect.objectContaining({ type: "order.paid", data: 1 })]);
  });

  it("refuses data for an event with a resource", async () => {
    const { webhooks } = open(both);
    const event = { type: "patient.updated", account: "shop-7", data: 1 } as never;
    expect((await refusal(() => webhooks.emit(event))).slice(0, 2)).toEqual(["invalid_argument", "data"]);
  });

  it("cannot have plain as the form of all bodies", async () => {
    expect(await refusal(() => open(both, { body: "plain" }))).toEqual([
      "invalid_option",
      "body",
      expect.stringContaining("events['patient.updated'] has one"),
    ]);
  });
});

describe("the table of plain events", () => {
  it.each<[string, EventCatalogue, string]>([
    ["a name with a blank", { "order paid": {} }, "events['order paid']"],
    ["a name that ends with a dot", { "order.": {} }, "events['order.']"],
    ["a name of 129 characters", { ["x".repeat(129)]: {} }, `events['${"x".repeat(80)}…']`],
    ["the name of tests", { "webhook.test": {} }, "events['webhook.test']"],
    ["an option that does not exist", { a: { sample: 1 } as object }, "events['a']"],
    ["a description that is no text", { a: { description: 1 as never } }, "events['a']"],
    ["a schema that is a list", { a: { schema: [] as never } }, "events['a'].schema"],
    ["an example that JSON cannot hold", { a: { example: () => 1 } }, "events['a'].example"],
  ])("refuses %s", async (_, events, field) => {
    expect(await refusal(() => open(events))).toEqual(["invalid_option", field, expect.any(String)]);
  });

  it("is copied: a later change has no effect", async () => {
    const schema = { type: "object" as const };
    const { webhooks } = open({ a: { schema } });
    Object.assign(schema, { type: "string" });
    expect(await webhooks.emit({ type: "a", account: "shop-7", data: {} })).toMatchObject({
      duplicate: false,
    });
  });

  it("is in the OpenAPI document, a webhook for each type, and nothing of FHIR is", () => {
    const { webhooks } = open(EVENTS);
    const document = webhooks.openApi();
    expect(Object.keys(document["webhooks"] as object)).toEqual([
      "invoice.payment.failed",
      "order.paid",
      "order_paid",
    ]);
    expect(document).toHaveProperty(["webhooks", "order.paid", "post", "requestBody", "content"], {
      "application/json": {
        schema: expect.objectContaining({
          properties: expect.objectContaining({ data: EVENTS["order.paid"].schema }),
        }),
        example: expect.objectContaining({ type: "order.paid", data: ORDER }),
      },
    });
    expect(JSON.stringify(document)).not.toMatch(/Bundle|EventData|"hub\./);
  });
});
