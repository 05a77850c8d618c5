/** Schemas of zod, valibot, arktype and of hostile libraries: what they check, and what is sent. */

import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { type } from "arktype";
import * as v from "valibot";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import { isPostbellError } from "../../../src/core/errors.js";
import { manualClock } from "../../../src/testing/manual-clock.js";
import type { WebhooksOptions } from "../../../src/webhooks/config/webhooks-options.js";
import type { PlainEventType } from "../../../src/webhooks/event-types/plain-event-type.js";
import { createWebhooks } from "../../../src/webhooks/service.js";
import { memoryStorage } from "../../../storage/memory/index.js";
import { memorySource, outbox } from "../../../storage/outbox/index.js";

const AT = Date.parse("2026-03-01T12:00:00Z");
const account = "shop-7";

/** A service with one event type, whose bodies are collected. */
async function open(entry: PlainEventType, options: Partial<WebhooksOptions> = {}) {
  const clock = manualClock(AT);
  const bodies: unknown[] = [];
  const webhooks = createWebhooks({
    ...(options as object),
    storage: memoryStorage(),
    clock,
    logger: false,
    events: { "order.paid": entry },
    access: { authenticate: () => null, canRead: () => true },
    delivery: {
      send: async ({ body }) => {
        bodies.push(JSON.parse(Buffer.from(body ?? []).toString()));
        return { kind: "response", status: 204, headers: {}, body: new Uint8Array(), complete: true };
      },
    },
  });
  await webhooks.registrations.create({
    subscriber: { id: "key-1", account },
    url: "https://hooks.example.com/in",
  });
  const emit = (data: unknown) => webhooks.emit({ type: "order.paid", account, data });
  const sent = async (): Promise<unknown[]> => {
    await webhooks.start();
    await webhooks.idle();
    await webhooks.stop();
    return bodies.map((body) => (body as { data: unknown }).data);
  };
  return { webhooks, emit, sent, clock };
}

/** A schema of a library that the test plays. */
const library = (validate: (value: unknown) => unknown): object => ({
  "~standard": { version: 1, vendor: "test", validate },
});

const refusal = async (call: () => unknown): Promise<{ code: string; field?: string; message: string }> => {
  try {
    await call();
  } catch (error) {
    if (isPostbellError(error)) return error as never;
    throw error;
  }
  throw new Error("It was not refused.");
};

describe("a schema of a library", () => {
  it.each<[string, object, string]>([
    ["zod", z.object({ order: z.string() }), "data.order: Invalid input: expected string, received number"],
    ["valibot", v.object({ order: v.string() }), "data.order: Invalid type: Expected string but received 1"],
    ["arktype", type({ order: "string" }), "data.order: order must be a string (was a number)"],
  ])("of %s refuses other data with its own words, and accepts what fits", async (_, schema, words) => {
    const { emit, sent } = await open({ schema });
    expect(await refusal(() => emit({ order: 1 }))).toMatchObject({
      code: "invalid_argument",
      field: "data.order",
      message: `data does not match the schema of 'order.paid': ${words}`,
    });
    await emit({ order: "A-1" });
    expect(await sent()).toEqual([{ order: "A-1" }]);
  });

  it("names a place within lists, and the item of a list of events", async () => {
    const schema = z.object({ lines: z.array(z.object({ total: z.int().min(0) })) });
    const { webhooks, emit } = await open({ schema });
    const data = { lines: [{ total: 1 }, { total: -1 }] };
    expect((await refusal(() => emit(data))).field).toBe("data.lines.1.total");
    const event = { type: "order.paid", account, data } as const;
    expect((await refusal(() => webhooks.emit([event]))).field).toBe("[0].data.lines.1.total");
  });

  it("changes nothing of what is sent: no default, no transform, no key that it would remove", async () => {
    const schema = z.object({
      order: z.string().transform((text) => text.length),
      currency: z.string().default("EUR"),
    });
    const { emit, sent } = await open({ schema });
    const data = { order: "A-1", note: "kept" };
    await emit(data);
    expect(await sent()).toEqual([data]);
    expect(data).toEqual({ order: "A-1", note: "kept" });
  });

  it("that changes its argument changes nothing of what is sent", async () => {
    const schema = library((value) => {
      (value as { order: string }).order = "changed";
      return { value };
    });
    const { emit, sent } = await open({ schema });
    const data = { order: "A-1" };
    await emit(data);
    expect(await sent()).toEqual([{ order: "A-1" }]);
    expect(data).toEqual({ order: "A-1" });
  });

  it("is asked about the JSON that is sent, in which a date is a text", async () => {
    const { emit, sent } = await open({ schema: z.object({ at: z.iso.datetime() }) });
    await emit({ at: new Date(AT) });
    expect(await sent()).toEqual([{ at: "2026-03-01T12:00:00.000Z" }]);
  });

  it("is not asked with checkData: false", async () => {
    let calls = 0;
    const schema = library(() => {
      calls += 1;
      return { issues: [{ message: "no" }] };
    });
    const { emit } = await open({ schema }, { checkData: false });
    await emit(1);
    expect(calls).toBe(0);
  });

  it("may be asynchronous, in a list too", async () => {
    const isSold = async (order: string) => order === "A-1";
    const schema = z.object({ order: z.string().refine(isSold, "is not sold") });
    const { webhooks, emit, sent } = await open({ schema });
    expect(await refusal(() => emit({ order: "A-2" }))).toMatchObject({
      code: "invalid_argument",
      field: "data.order",
      message: expect.stringContaining("data.order: is not sold"),
    });
    const events = ["A-1", "A-2"].map((order) => ({ type: "order.paid", account, data: { order } }) as const);
    expect((await refusal(() => webhooks.emit(events))).field).toBe("[1].data.order");
    await emit({ order: "A-1" });
    expect(await sent()).toEqual([{ order: "A-1" }]);
  });

  it("keeps the names of prototypes as ordinary keys", async () => {
    const { emit, sent } = await open({ schema: z.looseObject({ order: z.string() }) });
    const text = '{"order":"A-1","__proto__":{"isAdmin":true},"constructor":{"prototype":{"isAdmin":true}}}';
    await emit(JSON.parse(text));
    expect(JSON.stringify(await sent())).toBe(`[${text}]`);
    expect(({} as { isAdmin?: boolean }).isAdmin).toBeUndefined();
  });

  it("is not asked about data with a getter that throws", async () => {
    const { emit } = await open({ schema: z.object({ order: z.string() }) });
    const data = {
      get order(): string {
        throw new Error("secret");
      },
    };
    const { code, field, message } = await refusal(() => emit(data));
    expect([code, field]).toEqual(["invalid_argument", "data"]);
    expect(message).not.toContain("secret");
  });
});

describe("a library that fails", () => {
  const bad = new Proxy(
    {},
    {
      get: () => {
        throw new Error("trap");
      },
      has: () => true,
    },
  );

  it.each<[string, (value: unknown) => unknown, string]>([
    [
      "throws",
      () => {
        throw new Error("no connection");
      },
      "no connection",
    ],
    [
      "throws no error",
      () => {
        // oxlint-disable-next-line typescript/only-throw-error
        throw "text";
      },
      "it threw",
    ],
    [
      "rejects",
      async () => {
        throw new Error("no connection");
      },
      "no connection",
    ],
    ["returns nothing", () => undefined, "did not return a result"],
    ["returns a text as issues", () => ({ issues: "no" }), "no list"],
    ["returns null as an issue", () => ({ issues: [null] }), "no object"],
    ["returns a result that throws", () => bad, "trap"],
    ["returns an issue that throws", () => ({ issues: [bad] }), "trap"],
    ["resolves with an issue that throws", async () => ({ issues: [bad] }), "trap"],
    [
      "returns a thenable that throws",
      () => ({
        // biome-ignore lint/suspicious/noThenProperty: a thenable is what the test is about.
        then: () => {
          throw new Error("then");
        },
      }),
      "then",
    ],
  ])("stores nothing, and says so: it %s", async (_, validate, words) => {
    const { webhooks, emit } = await open({ schema: library(validate) });
    expect(await refusal(() => emit(1))).toMatchObject({
      code: "schema_unavailable",
      field: "data",
      effect: "none",
      message: expect.stringContaining(words),
    });
    expect((await webhooks.deliveries.list({ account })).items).toEqual([]);
  });

  it("has limits.hookMs, when its promise never settles", async () => {
    const { webhooks, emit, clock } = await open(
      { schema: library(() => new Promise(() => {})) },
      { limits: { hookMs: 2_000 } },
    );
    const call = refusal(() => emit(1));
    await clock.advance(1_999);
    let isSettled = false;
    void call.then(() => {
      isSettled = true;
    });
    await clock.advance(0);
    expect(isSettled).toBe(false);
    await clock.advance(1);
    expect(await call).toMatchObject({ code: "schema_unavailable", effect: "none" });
    expect((await webhooks.deliveries.list({ account })).items).toEqual([]);
    expect(clock.nextTimerAt()).toBeUndefined();
  });

  it("makes the outbox try an event again, also after a day", async () => {
    let isBroken = true;
    const { webhooks, sent, clock } = await open({
      schema: library((value) => {
        if (isBroken) throw new Error("no connection");
        return { value };
      }),
    });
    const source = memorySource({ clock });
    const box = outbox({ webhooks, source, clock, logger: false });
    await source.add({ type: "order.paid", account, data: { order: "A-1" } });
    await box.start();
    await clock.advance(24 * 3_600_000);
    expect(await box.stats()).toMatchObject({ waiting: 1, parked: 0, emitted: 0 });
    isBroken = false;
    await clock.advance(600_000);
    expect(await box.stats()).toMatchObject({ waiting: 0, parked: 0, emitted: 1 });
    await box.stop();
    expect(await sent()).toEqual([{ order: "A-1" }]);
  });

  it("makes an error of bounded length, with the first issues", async () => {
    const issue = {
      message: `line\nbreak ${"m".repeat(1_000_000)}`,
      path: Array(10_000).fill("p".repeat(10_000)),
    };
    const { emit } = await open({ schema: library(() => ({ issues: Array(1_000_000).fill(issue) })) });
    const { message, field } = await refusal(() => emit(1));
    expect(message.length).toBeLessThan(1_200);
    expect(message).toContain("line break");
    expect(message).toContain("and 999997 more");
    expect(field?.length).toBeLessThan(150);
  });

  it("may return issues without path or words, and is still understood", async () => {
    const issues = [{}, { path: [{ key: "a" }, Symbol("b"), 0, {}] }];
    const { emit } = await open({ schema: library(() => ({ issues })) });
    expect(await refusal(() => emit(1))).toMatchObject({
      code: "invalid_argument",
      field: "data",
      message: "data does not match the schema of 'order.paid': data: is refused; data.a.b.0.*: is refused",
    });
  });
});

describe("the JSON Schema that subscribers see", () => {
  const shown = async (entry: PlainEventType): Promise<unknown> => {
    const document = (await open(entry)).webhooks.openApi() as {
      webhooks: Record<string, { post: { requestBody: { content: Record<string, { schema: object }> } } }>;
    };
    const { schema } = document.webhooks["order.paid"]?.post.requestBody.content["application/json"] ?? {};
    return (schema as { properties: { data: unknown } }).properties.data;
  };
  const order = { type: "object", properties: { order: { type: "string" } }, required: ["order"] };

  it.each<[string, PlainEventType, object]>([
    ["the one that zod writes", { schema: z.object({ order: z.string() }) }, order],
    ["the one that arktype writes", { schema: type({ order: "string" }) }, order],
    [
      "the one that valibot's converter writes",
      { schema: toStandardJsonSchema(v.object({ order: v.string() })) },
      order,
    ],
    ["the one that the host adds", { schema: v.object({ order: v.string() }), jsonSchema: order }, order],
    ["left out, if the library writes nothing", { schema: v.object({ order: v.string() }) }, {}],
    [
      "that of the input, for a transform",
      { schema: z.object({ order: z.string().transform((text) => text.length) }) },
      order,
    ],
  ])("is %s", async (_, entry, expected) => {
    expect(await shown(entry)).toMatchObject(expected);
  });

  it("has references that lead to the same place in the document", async () => {
    const Tree = z.object({
      name: z.string(),
      get children() {
        return z.array(Tree);
      },
    });
    const { webhooks } = await open({ schema: z.object({ tree: Tree, again: Tree }) });
    const document: unknown = webhooks.openApi();
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"#([^"]*)"/g)].map(
      ([, path = ""]) => path,
    );
    const resolve = (path: string): unknown =>
      path
        .split("/")
        .slice(1)
        .reduce<unknown>(
          (value, key) => (value as Record<string, unknown>)[key.replaceAll("~1", "/")],
          document,
        );
    expect(references.filter((path) => path.startsWith("/webhooks/")).length).toBeGreaterThan(1);
    for (const path of references) expect(resolve(path)).toBeTypeOf("object");
    expect(resolve(references.find((path) => path.startsWith("/webhooks/")) ?? "")).toMatchObject({
      properties: { name: { type: "string" } },
    });
  });

  it("may be the schema itself, as z.toJSONSchema wrote it: it then checks the data", async () => {
    const schema = z.toJSONSchema(
      z.object({ order: z.string(), lines: z.array(z.object({ total: z.int().min(0) })) }),
    );
    const { emit, sent } = await open({ schema });
    const wrong = { order: "A-1", lines: [{ total: -1 }] };
    expect((await refusal(() => emit(wrong))).field).toBe("data.lines.0.total");
    await emit({ order: "A-1", lines: [] });
    expect(await sent()).toEqual([{ order: "A-1", lines: [] }]);
    expect(await shown({ schema })).toEqual(schema);
  });
});

describe("createWebhooks", () => {
  const throwing = new Proxy(
    {},
    {
      has: () => {
        throw new Error("trap");
      },
    },
  );
  const standard = z.string()["~standard"];

  it.each<[string, PlainEventType, string, string]>([
    ["another version", { schema: { "~standard": { ...standard, version: 2 } } }, "schema", "version 1"],
    ["no validate", { schema: { "~standard": { version: 1, vendor: "x" } } }, "schema", "validate()"],
    ["a proxy that throws", { schema: throwing }, "schema", "one of its fields throws"],
    ["a date", { schema: z.object({ at: z.date() }) }, "schema", "Date cannot be represented in JSON Schema"],
    [
      "a converter that returns a text",
      { schema: { "~standard": { ...standard, jsonSchema: { input: () => "x" } } } },
      "schema",
      "must be a JSON Schema, an object",
    ],
    [
      "a JSON Schema beside one",
      { schema: { type: "object" }, jsonSchema: { type: "object" } },
      "jsonSchema",
      "write a JSON Schema as schema",
    ],
    ["a function", { schema: z.object }, "schema", "got a function"],
    [
      "a jsonSchema that is larger than 65536 characters",
      { schema: z.string(), jsonSchema: { title: "x".repeat(70_000) } },
      "jsonSchema",
      "at most 65536 characters",
    ],
    [
      "one within a JSON Schema",
      { schema: { properties: { a: z.string() } } },
      "schema.properties.a",
      "~standard",
    ],
  ])("refuses a schema with %s", async (_, entry, field, words) => {
    expect(await refusal(async () => open(entry))).toMatchObject({
      code: "invalid_option",
      field: `events['order.paid'].${field}`,
      message: expect.stringContaining(words),
    });
  });

  it("takes a date where the host describes it", async () => {
    const { emit } = await open({ schema: z.object({ at: z.coerce.date() }), jsonSchema: {} });
    await emit({ at: new Date(AT) });
    expect(await refusal(() => emit({ at: "never" }))).toMatchObject({ field: "data.at" });
  });

  it("takes a schema behind a proxy", async () => {
    const { emit } = await open({ schema: new Proxy(z.object({ order: z.string() }), {}) });
    expect(await refusal(() => emit({}))).toMatchObject({ code: "invalid_argument", field: "data.order" });
  });
});
