/** Subjects and tags of events: emitting them, finding deliveries by them, and who sees them. */

import { describe, expect, it } from "vitest";
import type { Subscriber, WebhooksOptions } from "../../../src/index.js";
import { SECOND, START, SUBSCRIBER, startHarness } from "../../support/webhook-harness.js";

const ACCOUNT = SUBSCRIBER.account;
const STRANGER: Subscriber = { id: "key-1", account: "hospital" };
const COLLEAGUE: Subscriber = { id: "key-2", account: ACCOUNT };

const events = {
  "order.paid": {
    schema: {
      type: "object",
      properties: { order: { type: "string" } },
      required: ["order"],
    },
    subject: (data: { order: string }) => `order/${data.order}`,
  },
  "order.sent": {},
  "order.lost": {
    subject: (data: { fail?: string }) => {
      if (data.fail === "throw") throw new Error("no such order");
      return data.fail === "number" ? (7 as unknown as string) : "x".repeat(257);
    },
  },
  "patient.updated": "Patient",
} as const;

async function start(options: Partial<WebhooksOptions> = {}) {
  const harness = await startHarness({
    options: {
      events: events as never,
      access: { authenticate: () => null, canRead: () => true },
      ...options,
    },
  });
  const { webhooks } = harness;
  const { id: webhookId } = await harness.register();
  const emit = async (type: string, fields: object, account = ACCOUNT) =>
    (await webhooks.emit({ type, account, ...fields } as Parameters<typeof webhooks.emit>[0])) as {
      id: string;
      duplicate: boolean;
    };
  const find = async (query: object, subscriber?: Subscriber) => {
    const request = { account: ACCOUNT, ...query } as Parameters<typeof webhooks.deliveries.list>[0];
    const { deliveries } = subscriber === undefined ? webhooks : webhooks.as(subscriber);
    return (await deliveries.list(request)).items.map(({ eventId }) => eventId);
  };
  const get = async (path: string, query: string, subscriber = SUBSCRIBER) => {
    const request = {
      method: "GET",
      path: `/v1${path}`,
      query,
      headers: {},
      body: null,
      baseUrl: "https://a.example",
    };
    const answer = await webhooks.as(subscriber).handle(request);
    return { status: answer?.status, json: JSON.parse(answer?.body as string) as Record<string, unknown> };
  };
  return { ...harness, webhookId, emit, find, get, deliveries: webhooks.deliveries };
}

describe("emitting subjects and tags", () => {
  it("finds the deliveries of an event by its subject, its type's subject and its tags", async () => {
    const { emit, find, run, deliveries, webhookId } = await start();
    const paid = await emit("order.paid", { data: { order: "A-1" }, tags: ["invoice", "eu", "invoice"] });
    const sent = await emit("order.sent", { data: {}, subject: "order/A-1" });
    const other = await emit("order.paid", { data: { order: "A-1" }, subject: "other" });
    const patient = await emit("patient.updated", {
      resource: { resourceType: "Patient", id: "1" },
      tags: ["eu"],
    });
    await run(SECOND);
    expect(await find({ subject: "order/A-1" })).toEqual([sent.id, paid.id]);
    expect(await find({ subject: "other" })).toEqual([other.id]);
    expect(await find({ subject: "Patient/1" })).toEqual([patient.id]);
    expect(await find({ tag: "eu" })).toEqual([patient.id, paid.id]);
    expect(await find({ account: undefined, webhookId, tag: "eu" })).toEqual([patient.id, paid.id]);
    expect(await find({ tag: "eu", type: "order.paid" })).toEqual([paid.id]);
    expect(await find({ tag: "eu", state: "failed" })).toEqual([]);
    expect(await find({ tag: "eu", until: new Date(START) })).toEqual([]);
    const delivery = await deliveries.get(`${webhookId}.${paid.id}`);
    expect([delivery.subject, delivery.tags]).toEqual(["order/A-1", ["invoice", "eu"]]);
  });

  it("sends neither of them", async () => {
    const { emit, run, sent } = await start();
    await emit("order.sent", { data: { a: 1 }, subject: "order/secret", tags: ["hidden"] });
    await emit("order.sent", { data: { a: 1 } });
    await run(SECOND);
    const [keyed, plain] = sent.map(({ body }) => JSON.parse(body.toString()) as Record<string, unknown>);
    expect(Object.keys(keyed ?? {})).toEqual(Object.keys(plain ?? {}));
    expect(JSON.stringify(keyed)).not.toMatch(/secret|hidden/);
  });

  it.each([
    [{ subject: "" }, "subject", /1 to 256 characters/],
    [{ subject: "x".repeat(257) }, "subject", /257 characters/],
    [{ subject: 7 }, "subject", /type number/],
    [{ subject: "a\u0000" }, "subject", /NUL/],
    [{ subject: "\ud800" }, "subject", /surrogate/],
    [{ tags: "invoice" }, "tags", /got string/],
    [{ tags: Array.from({ length: 21 }, (_, index) => `t${index}`) }, "tags", /list of 21/],
    [{ tags: ["a", ""] }, "tags[1]", /empty/],
    [{ tags: ["x".repeat(65)] }, "tags[0]", /64 characters \(got 65\)/],
    [{ tags: [null] }, "tags[0]", /null/],
    // oxlint-disable-next-line no-sparse-arrays
    [{ tags: new Array(3) }, "tags[0]", /undefined/],
    [{ tags: { length: 1e9 } }, "tags", /got object/],
    [{ subjects: "x" }, "subjects", /subject/],
  ])("refuses %o and stores nothing", async (fields, field, message) => {
    const { emit, store } = await start();
    await expect(emit("order.sent", { data: {}, ...fields })).rejects.toMatchObject({
      code: "invalid_argument",
      field,
      message: expect.stringMatching(message) as string,
    });
    expect((await store.stats()).events).toBe(0);
  });

  it("says what is wrong with the subject that a type gives, and stores nothing", async () => {
    const { emit, store } = await start();
    const refuse = async (fail: string, message: RegExp) =>
      expect(emit("order.lost", { data: { fail } })).rejects.toMatchObject({
        code: "invalid_argument",
        field: "subject",
        message: expect.stringMatching(message) as string,
      });
    await refuse("throw", /'order.lost' in the events option threw: no such order\. Nothing was stored/);
    await refuse("number", /returned no text.*type number/);
    await refuse("long", /257 characters/);
    // Data that the schema refuses never reaches the function.
    await expect(emit("order.paid", { data: {} })).rejects.toMatchObject({ field: "data" });
    expect((await store.stats()).events).toBe(0);
  });

  it("refuses a subject for an event with a resource, and a type whose subject is no function", async () => {
    const { emit } = await start();
    await expect(
      emit("patient.updated", { resource: { resourceType: "Patient", id: "1" }, subject: "x" }),
    ).rejects.toMatchObject({ field: "subject", message: /is about its record: leave out subject/ });
    await expect(
      startHarness({ options: { events: { "a.b": { subject: "x" } } as never } }),
    ).rejects.toMatchObject({ code: "invalid_option" });
  });

  it("takes the same id with another subject or other tags for a conflict", async () => {
    const { emit } = await start();
    const event = { data: {}, idempotencyKey: "order-1", subject: "order/A-1", tags: ["a"] };
    expect((await emit("order.sent", event)).duplicate).toBe(false);
    expect((await emit("order.sent", event)).duplicate).toBe(true);
    for (const change of [{ subject: "order/A-2" }, { tags: ["b"] }, { tags: undefined }])
      await expect(emit("order.sent", { ...event, ...change })).rejects.toMatchObject({
        code: "event_conflict",
      });
  });
});

describe("finding deliveries by subject and tag", () => {
  it("lists page by page, with those sent again, each once", async () => {
    const { emit, run, deliveries, webhookId } = await start();
    const ids: string[] = [];
    for (let index = 0; index < 120; index++) {
      ids.unshift((await emit("order.sent", { data: {}, subject: "order/A-1" })).id);
    }
    await run(SECOND);
    await deliveries.resend({ id: `${webhookId}.${ids[60]}` });
    await run(SECOND);
    for (const limit of [7, 50, 100]) {
      const found: string[] = [];
      let cursor: string | undefined;
      do {
        const page = await deliveries.list({ webhookId, subject: "order/A-1", limit, cursor });
        expect(page.items.length).toBeLessThanOrEqual(limit);
        found.push(...page.items.map(({ id }) => id));
        cursor = page.next ?? undefined;
      } while (cursor !== undefined);
      const expected = ids.map((id) => `${webhookId}.${id}`);
      expected.splice(60, 0, `${webhookId}.${ids[60]}.1`);
      expect(found).toEqual(expected);
    }
  });

  it("shows a subscriber only what it was sent, and never hints at more", async () => {
    const { emit, find, run, get, webhooks } = await start({
      access: {
        authenticate: () => null,
        canRead: (_, resource) =>
          !("data" in resource) || (resource["data"] as { secret?: boolean }).secret !== true,
      },
    });
    const subject = "order/A-1";
    const open = await emit("order.sent", { data: {}, subject, tags: ["t"] });
    for (let index = 0; index < 60; index++)
      await emit("order.sent", { data: { secret: true }, subject, tags: ["t"] });
    const secret = await emit("order.sent", { data: { secret: true }, subject: "order/secret", tags: ["s"] });
    expect(await find({ subject: "order/secret" })).toEqual([secret.id]);
    expect(await find({ subject: "order/secret" }, SUBSCRIBER)).toEqual([]);
    await run(SECOND);
    for (const key of [{ subject }, { tag: "t" }]) {
      expect(await find(key, SUBSCRIBER)).toEqual([open.id]);
      expect(await find(key, COLLEAGUE)).toEqual([]);
      for (const limit of [1, 50]) {
        const page = await webhooks.as(SUBSCRIBER).deliveries.list({ ...key, limit });
        expect([page.items.length, page.next]).toEqual([1, null]);
      }
    }
    const nothing = { status: 200, json: { deliveries: [], next: null } };
    for (const query of ["subject=order%2Fsecret", "subject=order%2Funknown", "tag=s", "tag=unknown"])
      expect(await get("/deliveries", query)).toEqual(nothing);
    await expect(webhooks.as(STRANGER).deliveries.list({ account: ACCOUNT, subject })).rejects.toMatchObject({
      code: "not_found",
    });
    expect((await get("/deliveries", `subject=${encodeURIComponent(subject)}`, STRANGER)).json).toEqual({
      deliveries: [],
      next: null,
    });
  });

  it("is offered over REST for an account and for a webhook", async () => {
    const { emit, run, get, webhookId } = await start();
    await emit("order.sent", { data: {}, subject: "order/A-1", tags: ["a b"] });
    await emit("order.sent", { data: {}, subject: "order/A-2" });
    await run(SECOND);
    for (const path of ["/deliveries", `/webhooks/${webhookId}/deliveries`]) {
      for (const query of ["subject=order%2FA-1", "tag=a+b"]) {
        const { status, json } = await get(path, query);
        expect([status, json["next"]]).toEqual([200, null]);
        expect(json["deliveries"]).toMatchObject([{ subject: "order/A-1", tags: ["a b"] }]);
      }
    }
    const refuse = async (query: string, field: string) => {
      const { status, json } = await get("/deliveries", query);
      expect([status, (json["error"] as { field: string }).field]).toEqual([400, field]);
    };
    await refuse("subject=", "subject");
    await refuse(`subject=${"x".repeat(257)}`, "subject");
    await refuse("subject=a%00", "subject");
    await refuse(`tag=${"x".repeat(65)}`, "tag");
    await refuse("subject=a&tag=b", "tag");
    await refuse("subject=a&event_id=0b9d3a0e-2f4c-4f57-8d0c-6a1f5e7f3c21", "event_id");
    for (const cursor of ["x", "-1.", "1", "9999999.", "0.__proto__", "0.1 OR 1=1"])
      await refuse(`subject=a&cursor=${encodeURIComponent(cursor)}`, "cursor");
  });

  it.each([
    "order/%",
    "order/_-1",
    "*",
    "order/A",
    "ORDER/A-1",
    "' OR 1=1 --",
    "__proto__",
    "constructor",
    "{x}/s.y",
  ])("does not take %j for a pattern", async (subject) => {
    const { emit, find } = await start();
    await emit("order.sent", { data: {}, subject: "order/A-1", tags: ["order/A-1"] });
    expect(await find({ subject })).toEqual([]);
    expect(await find({ tag: subject })).toEqual([]);
  });

  it("reads a bounded part of ten thousand events with one tag for each page", async () => {
    let calls = 0;
    const harness = await startHarness({
      options: { events: events as never },
      change: (store) => ({
        findEvents: async (request) => {
          calls += 1;
          return store.findEvents(request);
        },
      }),
    });
    const { webhooks } = harness;
    await harness.register();
    for (let index = 0; index < 10_000; index++)
      await webhooks.emit({ type: "order.sent", account: ACCOUNT, data: {}, tags: ["all"] } as never);
    const page = await webhooks.deliveries.list({ account: ACCOUNT, tag: "all", limit: 100 });
    expect([page.items.length, calls]).toEqual([100, 3]);
    const none = await webhooks.deliveries.list({ account: ACCOUNT, tag: "all", state: "failed" });
    expect([none.items.length, calls]).toEqual([0, 23]);
    expect(none.next).not.toBeNull();
  });
});
