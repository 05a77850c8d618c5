import { describe, expect, it } from "vitest";
import { PostbellError } from "../../../src/core/errors.js";
import type { HttpRequest, ReadableBody } from "../../../src/http/types.js";
import { manualClock } from "../../../src/testing/manual-clock.js";
import { type Access, bearer, type Subscriber } from "../../../src/webhooks/access.js";
import type { WebhooksOptions } from "../../../src/webhooks/config/webhooks-options.js";
import type { WebhookStore } from "../../../src/webhooks/store.js";
import {
  type Answer,
  type Api,
  access,
  byKey,
  registrationApi,
  START,
  SUBSCRIBERS,
  storageWith,
  URL_1,
  URL_2,
} from "../../support/registration-api.js";
import { eventLoopTurn } from "../../support/webhook-harness.js";

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const COLLECTION = "/v1/webhooks";
const ANY_ID = "3d3f1c1e-6f5b-4b5a-9a52-0a4cf3f6a111";
const pathOf = (id: string): string => `${COLLECTION}/${id}`;

const PRIVATE = {
  "content-type": "application/json; charset=utf-8",
  "cache-control": "no-store",
  vary: "Authorization",
  "x-content-type-options": "nosniff",
};

const error = (status: number, code: string, field?: string): object => ({
  status,
  json: {
    error: { code, message: expect.stringMatching(/\S \S/), ...(field === undefined ? {} : { field }) },
  },
});

const iso = (ms: number): string => new Date(ms).toISOString();

describe("creating a webhook", () => {
  it("answers 201 with the record, the secret, where to find it, and nothing besides", async () => {
    const { call } = registrationApi();
    const { status, headers, json } = await call("POST", COLLECTION, {
      json: { url: URL_1, event_types: ["patient.created", "encounter.*"] },
      baseUrl: "https://api.example.com/hooks",
    });
    expect(status).toBe(201);
    expect(json).toEqual({
      webhook: {
        id: expect.stringMatching(UUID),
        url: URL_1,
        status: "ENABLED",
        createdDate: iso(START),
        updatedDate: iso(START),
      },
      secret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=$/),
    });
    const { id } = (json as { webhook: { id: string } }).webhook;
    expect(headers).toEqual({
      ...PRIVATE,
      location: `https://api.example.com/hooks/v1/webhooks/${id}`,
    });
  });

  it("makes another id and another secret each time", async () => {
    const { create } = registrationApi();
    const [one, two] = [await create(), await create()];
    expect(one.webhook.id).not.toBe(two.webhook.id);
    expect(one.secret).not.toBe(two.secret);
  });

  it("subscribes to every type where event_types is left out", async () => {
    const { create, webhooks } = registrationApi();
    const { webhook } = await create();
    expect((await webhooks.registrations.get(webhook.id)).eventTypes).toBeNull();
    const { webhook: other } = await create({ json: { url: URL_1, event_types: ["*"] } });
    expect((await webhooks.registrations.get(other.id)).eventTypes).toEqual(["*"]);
  });

  it.each<[string, unknown, string, string, RegExp]>([
    ["no url", {}, "invalid_request", "url", /url is missing/],
    ["a url that is no string", { url: 7 }, "invalid_request", "url", /string/],
    ["plain HTTP", { url: "http://example.com/h" }, "invalid_url", "url", /https/i],
    ["a private address", { url: "https://10.0.0.1/" }, "invalid_url", "url", /public/],
    ["a list of nothing", { url: URL_1, event_types: [] }, "invalid_request", "event_types", /at least one/],
    ["null for the list", { url: URL_1, event_types: null }, "invalid_request", "event_types", /list/],
    [
      "a misspelt type",
      { url: URL_1, event_types: ["patient.created", "patient.upated"] },
      "unknown_event_type",
      "event_types[1]",
      /'patient\.updated'/,
    ],
    [
      "a misspelt prefix",
      { url: URL_1, event_types: ["pateint.*"] },
      "unknown_event_type",
      "event_types[0]",
      /'patient\.\*'/,
    ],
    [
      "the same type twice",
      { url: URL_1, event_types: ["patient.created", "patient.created"] },
      "invalid_request",
      "event_types[1]",
      /repeats/,
    ],
    ["an unknown field", { url: URL_1, event_type: ["*"] }, "invalid_request", "event_type", /'event_types'/],
    [
      "a field that is near to none",
      { url: URL_1, colour: "red" },
      "invalid_request",
      "colour",
      /^The body has no field 'colour'; it takes 'url', 'event_types', 'description', 'metadata'\.$/,
    ],
    ["a status", { url: URL_1, status: "ENABLED" }, "invalid_request", "status", /no field/],
    ["a read-only field", { url: URL_1, id: "x" }, "invalid_request", "id", /no field/],
    [
      "a secret of the subscriber's own",
      { url: URL_1, secret: "s" },
      "invalid_request",
      "secret",
      /no field/,
    ],
  ])("refuses %s, and names the field", async (_, json, code, field, message) => {
    const { call, webhooks } = registrationApi();
    const answer = await call("POST", COLLECTION, { json });
    expect(answer).toMatchObject(error(400, code, field));
    expect(answer.json).toMatchObject({ error: { message: expect.stringMatching(message) } });
    expect(answer.headers).toEqual(PRIVATE);
    expect((await webhooks.registrations.list({ account: "acme" })).items).toEqual([]);
  });

  it("repeats of a long unknown name no more than shows which it is", async () => {
    const { call } = registrationApi();
    const { text } = await call("POST", COLLECTION, { json: { [`x${"y".repeat(30_000)}`]: 1 } });
    expect(text?.length).toBeLessThan(300);
  });
});

describe("reading, updating and deleting a webhook", () => {
  const KEYS = ["createdDate", "id", "status", "updatedDate", "url"];

  it("GET gives the record flat and without the secret, HEAD its head", async () => {
    const { call, create } = registrationApi();
    const { webhook, secret } = await create();
    const answer = await call("GET", pathOf(webhook.id));
    expect(answer).toMatchObject({ status: 200, headers: PRIVATE });
    expect(answer.json).toEqual(webhook);
    expect(Object.keys(answer.json as object).sort()).toEqual(KEYS);
    expect(answer.text).not.toContain(secret);
    const head = await call("HEAD", pathOf(webhook.id));
    expect(head).toMatchObject({ status: 200, text: null });
    expect(head.headers).toEqual({ ...PRIVATE, "content-length": String(answer.text?.length) });
  });

  it("PUT changes url and status, and answers the record flat", async () => {
    const { call, clock, create } = registrationApi();
    const { webhook } = await create();
    await clock.advance(1500);
    const answer = await call("PUT", pathOf(webhook.id), { json: { url: URL_2, status: "DISABLED" } });
    expect(answer).toMatchObject({ status: 200, headers: PRIVATE });
    expect(answer.json).toEqual({
      ...webhook,
      url: URL_2,
      status: "DISABLED",
      updatedDate: iso(START + 1500),
    });
    expect((await call("GET", pathOf(webhook.id))).json).toEqual(answer.json);
  });

  it("updatedDate grows with each update, also within one millisecond", async () => {
    const { call, create } = registrationApi();
    const { webhook } = await create();
    const dates = [webhook.updatedDate];
    for (const status of ["ENABLED", "DISABLED", "DISABLED", "ENABLED"]) {
      const { json } = await call("PUT", pathOf(webhook.id), { json: { url: URL_1, status } });
      dates.push((json as { updatedDate: string }).updatedDate);
    }
    expect(dates).toEqual([...new Set(dates)].sort());
    expect(dates).toHaveLength(5);
  });

  it("event_types stay where they are left out, and are replaced where they are given", async () => {
    const { call, create, webhooks } = registrationApi();
    const { webhook } = await create({ json: { url: URL_1, event_types: ["patient.created"] } });
    const put = async (event_types?: string[]): Promise<unknown> => {
      await call("PUT", pathOf(webhook.id), { json: { url: URL_1, status: "ENABLED", event_types } });
      return (await webhooks.registrations.get(webhook.id)).eventTypes;
    };
    expect(await put()).toEqual(["patient.created"]);
    expect(await put(["consent.*", "patient.deleted"])).toEqual(["consent.*", "patient.deleted"]);
    expect(await put()).toEqual(["consent.*", "patient.deleted"]);
  });

  it("PUT takes back what GET gave, and leaves what a subscriber cannot change as it is", async () => {
    const { call, create } = registrationApi();
    const { webhook } = await create();
    const foreign = { ...webhook, id: "other", createdDate: "never", updatedDate: 7 };
    const { status, json } = await call("PUT", pathOf(webhook.id), { json: foreign });
    expect(status).toBe(200);
    expect(json).toEqual({ ...webhook, updatedDate: expect.not.stringMatching(webhook.updatedDate) });
  });

  it.each<[string, object, string, string]>([
    ["no url", { status: "ENABLED" }, "invalid_request", "url"],
    ["no status", { url: URL_1 }, "invalid_request", "status"],
    ["another status", { url: URL_1, status: "PAUSED" }, "invalid_request", "status"],
    ["null for the status", { url: URL_1, status: null }, "invalid_request", "status"],
    ["null for the url", { url: null, status: "ENABLED" }, "invalid_request", "url"],
    ["a url that is refused", { url: "https://localhost/", status: "ENABLED" }, "invalid_url", "url"],
    [
      "null for the types",
      { url: URL_1, status: "ENABLED", event_types: null },
      "invalid_request",
      "event_types",
    ],
    [
      "an unknown type",
      { url: URL_1, status: "ENABLED", event_types: ["encounter.deleted"] },
      "unknown_event_type",
      "event_types[0]",
    ],
    ["an unknown field", { url: URL_1, status: "ENABLED", Secret: "s" }, "invalid_request", "Secret"],
  ])("PUT refuses %s, names the field and changes nothing", async (_, json, code, field) => {
    const { call, create } = registrationApi();
    const { webhook } = await create();
    expect(await call("PUT", pathOf(webhook.id), { json })).toMatchObject(error(400, code, field));
    expect((await call("GET", pathOf(webhook.id))).json).toEqual(webhook);
  });

  it("DELETE answers with a message; after it there is no such webhook", async () => {
    const { call, create } = registrationApi();
    const { webhook } = await create();
    const answer = await call("DELETE", pathOf(webhook.id));
    expect(answer).toMatchObject({ status: 200, headers: PRIVATE });
    expect(answer.json).toEqual({ message: expect.stringMatching(/deleted/) });
    for (const method of ["GET", "DELETE", "PUT"]) {
      const json = method === "PUT" ? { url: URL_1, status: "ENABLED" } : undefined;
      expect(await call(method, pathOf(webhook.id), { json })).toMatchObject(error(404, "not_found"));
    }
  });

  it("answers 404 where the webhook goes away between looking and changing", async () => {
    const storage = storageWith(() => ({
      removeWebhook: async () => false,
      updateWebhook: async () => ({ result: "not_found" }),
    }));
    const { call, create } = registrationApi({ storage });
    const { webhook } = await create();
    const json = { url: URL_1, status: "ENABLED" };
    expect(await call("PUT", pathOf(webhook.id), { json })).toMatchObject(error(404, "not_found"));
    expect(await call("DELETE", pathOf(webhook.id))).toMatchObject(error(404, "not_found"));
  });
});

describe("listing webhooks", () => {
  const ids = ({ json }: Answer): string[] =>
    (json as { webhooks: { id: string }[] }).webhooks.map(({ id }) => id);

  it("gives the account's webhooks, whichever of its keys made them, oldest first and without secrets", async () => {
    const { call, create } = registrationApi();
    const one = await create();
    const two = await create({ key: "key-a2" });
    await create({ key: "key-b" });
    const answer = await call("GET", COLLECTION);
    expect(answer).toMatchObject({ status: 200, headers: PRIVATE });
    expect(answer.json).toEqual({ webhooks: [one.webhook, two.webhook], next: null });
    expect((await call("GET", COLLECTION, { key: "key-a2" })).json).toEqual(answer.json);
  });

  it("gives an account without webhooks an empty list", async () => {
    expect((await registrationApi().call("GET", COLLECTION)).json).toEqual({ webhooks: [], next: null });
  });

  it("turns pages with the cursor of the page before until all have been seen once", async () => {
    const { call, create } = registrationApi();
    const made: string[] = [];
    for (let count = 0; count < 7; count++) made.push((await create()).webhook.id);
    const seen: string[] = [];
    const sizes: number[] = [];
    let cursor: string | null = null;
    do {
      const query: string = `limit=3${cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`}`;
      const answer = await call("GET", COLLECTION, { query });
      sizes.push(ids(answer).length);
      seen.push(...ids(answer));
      cursor = (answer.json as { next: string | null }).next;
    } while (cursor !== null);
    expect(seen).toEqual(made);
    expect(sizes).toEqual([3, 3, 1]);
  });

  it("shows fifty a page where no limit is given, and a hundred at most", async () => {
    const { call, create } = registrationApi({
      limits: { webhooks: 200, enabledWebhooks: 200, requestsPerMinute: 0 },
    });
    for (let count = 0; count < 101; count++) await create();
    expect(ids(await call("GET", COLLECTION))).toHaveLength(50);
    expect(ids(await call("GET", COLLECTION, { query: "limit=100" }))).toHaveLength(100);
  });

  it.each(["0", "101", "-1", "1.5", "1e1", "abc", "", "+5", "%3", "٣", "1000000000", "5%00"])(
    "refuses limit=%s",
    async (limit) => {
      const { call } = registrationApi();
      const answer = await call("GET", COLLECTION, { query: `limit=${limit}` });
      expect(answer).toMatchObject(error(400, "invalid_request", "limit"));
    },
  );

  it.each(["", "x", "-1", "1.5", "__proto__", "99999999999999999999", "%00"])(
    "refuses cursor=%s",
    async (cursor) => {
      const { call } = registrationApi();
      const answer = await call("GET", COLLECTION, { query: `cursor=${cursor}` });
      expect(answer).toMatchObject(error(400, "invalid_argument", "cursor"));
    },
  );
});

describe("paths and methods", () => {
  it("leaves every path that is not its own to the host, whoever asks", async () => {
    const { webhooks } = registrationApi();
    const request: HttpRequest = {
      method: "GET",
      path: "/",
      query: "",
      headers: {},
      body: null,
      baseUrl: "http://localhost",
    };
    for (const path of [
      "/",
      "/v1",
      "/v1/",
      "/v2/webhooks",
      "/v1/webhooksx",
      "/v1/webhooks/a/b",
      "//v1/webhooks",
    ])
      for (const method of ["GET", "POST", "DELETE", "OPTIONS"])
        expect(await webhooks.handle({ ...request, method, path })).toBeUndefined();
  });

  it("tolerates a slash at the end", async () => {
    const { call, create } = registrationApi();
    const { webhook } = await create();
    expect((await call("GET", `${COLLECTION}/`)).status).toBe(200);
    expect((await call("GET", `${pathOf(webhook.id)}/`)).json).toEqual(webhook);
    expect((await call("POST", `${COLLECTION}/`, { json: { url: URL_1 } })).status).toBe(201);
  });

  it("answers other methods with 405 and what there is, OPTIONS with 204", async () => {
    const { call } = registrationApi();
    const item = pathOf("any");
    for (const [path, allow, others] of [
      [COLLECTION, "POST, GET, HEAD, OPTIONS", ["PUT", "PATCH", "DELETE", "TRACE"]],
      [item, "GET, HEAD, PUT, DELETE, OPTIONS", ["POST", "PATCH", "PROPFIND"]],
    ] as const) {
      for (const method of others) {
        const answer = await call(method, path);
        expect(answer).toMatchObject(error(405, "method_not_allowed"));
        expect(answer.headers).toEqual({ ...PRIVATE, allow });
      }
      expect(await call("OPTIONS", path)).toMatchObject({ status: 204, headers: { allow }, text: null });
    }
  });

  it.each(["x", "%", "%00", "%2e%2e", "%C3", "__proto__", "constructor", "A".repeat(10_000), "٠١", "1e0"])(
    "knows no webhook '%s'",
    async (id) => {
      const { call } = registrationApi();
      expect(await call("GET", pathOf(id))).toMatchObject(error(404, "not_found"));
    },
  );
});

describe("who may call", () => {
  const withHeader = (authorization: string): object => ({ key: null, headers: { authorization } });

  it.each<[string, object]>([
    ["no header", { key: null }],
    ["an empty header", withHeader("")],
    ["no key", withHeader("Bearer")],
    ["only a blank for a key", withHeader("Bearer ")],
    ["another scheme", withHeader("Basic a2V5LWExOg==")],
    ["the key alone", withHeader("key-a1")],
    ["two headers", withHeader("Bearer key-a1, Bearer key-a1")],
    ["64 KB", withHeader(`Bearer ${"k".repeat(65_536)}`)],
    ["letters beyond ASCII", withHeader("Bearer kéy-a1")],
    ["a control character", withHeader("Bearer key-a1\u0000")],
    ["a trailing blank", withHeader("Bearer key-a1 ")],
    ["an unknown key", withHeader("Bearer nobody")],
    ["nearly a key", withHeader("Bearer key-a")],
    ["the name of a built-in property", withHeader("Bearer __proto__x")],
  ])("answers 401 to %s, in the same words each time", async (_, sent) => {
    const { call, webhooks } = registrationApi();
    const nobody = await call("GET", COLLECTION, { key: "nobody" });
    expect(nobody).toMatchObject(error(401, "unauthorized"));
    expect(nobody.headers).toEqual({ ...PRIVATE, "www-authenticate": "Bearer" });
    for (const [method, path] of [
      ["GET", COLLECTION],
      ["POST", COLLECTION],
      ["GET", pathOf("x")],
      ["PUT", pathOf("x")],
      ["DELETE", pathOf("x")],
    ] as const) {
      expect(await call(method, path, { json: { url: URL_1 }, ...sent })).toEqual(nobody);
    }
    expect((await webhooks.registrations.list({ account: "acme" })).items).toEqual([]);
  });

  it("does not ask the host about what cannot be a key", async () => {
    const asked: string[] = [];
    const authenticate = (apiKey: string) => {
      asked.push(apiKey);
      return { id: "first", account: "acme" };
    };
    const { call } = registrationApi({ access: { ...access, authenticate: byKey(authenticate) } });
    const longest = "k".repeat(4_096);
    for (const key of [`${longest}k`, "two words", "kéy", "tab\t", "", "a, Bearer b"]) {
      expect((await call("GET", COLLECTION, { key })).status).toBe(401);
    }
    expect((await call("GET", COLLECTION, { key: longest })).status).toBe(200);
    expect(asked).toEqual([longest]);
  });

  it.each(["bearer key-a1", "BEARER key-a1", "Bearer   key-a1"])("takes '%s'", async (authorization) => {
    const { call } = registrationApi();
    expect((await call("GET", COLLECTION, { key: null, headers: { authorization } })).status).toBe(200);
  });

  it("does not look at the body, nor wait for it, before it knows who calls", async () => {
    const { call } = registrationApi();
    const body: ReadableBody = {
      [Symbol.asyncIterator]: () => {
        throw new Error("read");
      },
    };
    expect((await call("POST", COLLECTION, { key: "nobody", body })).status).toBe(401);
  });

  it("answers for another account's webhook exactly as for one that does not exist", async () => {
    const { call, create } = registrationApi();
    const { webhook } = await create({ key: "key-b" });
    const unknown = pathOf(ANY_ID);
    for (const [method, json] of [
      ["GET", undefined],
      ["HEAD", undefined],
      ["PUT", { url: URL_2, status: "DISABLED" }],
      ["PUT", { url: 7 }],
      ["DELETE", undefined],
    ] as const) {
      const answer = await call(method, pathOf(webhook.id), { json });
      expect(answer.status).toBe(404);
      expect(answer).toEqual(await call(method, unknown, { json }));
    }
    expect((await call("GET", pathOf(webhook.id), { key: "key-b" })).json).toEqual(webhook);
  });

  it("never asks canRead, which is about records", async () => {
    let isAsked = false;
    const canRead = (): boolean => {
      isAsked = true;
      return true;
    };
    const { call, create } = registrationApi({ access: { ...access, canRead } });
    const { webhook } = await create();
    await call("GET", COLLECTION);
    await call("PUT", pathOf(webhook.id), { json: { url: URL_2, status: "ENABLED" } });
    await call("DELETE", pathOf(webhook.id));
    expect(isAsked).toBe(false);
  });

  const asking = (authenticate: unknown): Partial<WebhooksOptions> => ({
    access: { ...access, authenticate: authenticate as Access["authenticate"] },
  });

  it("waits for a host that answers later", async () => {
    const later = registrationApi(asking(byKey(async (key) => SUBSCRIBERS[key])));
    expect((await later.call("GET", COLLECTION)).status).toBe(200);
    expect((await later.call("GET", COLLECTION, { key: "nobody" })).status).toBe(401);
  });

  it.each([undefined, null, false, "", 0])("takes %j for nobody", async (answer) => {
    const { call, log } = registrationApi(asking(() => answer));
    expect(await call("GET", COLLECTION)).toMatchObject(error(401, "unauthorized"));
    expect(log).toEqual([]);
  });

  it.each<[string, () => unknown]>([
    [
      "throws",
      () => {
        throw new Error("db down for key-a1");
      },
    ],
    ["rejects", () => Promise.reject(new Error("db down for key-a1"))],
    ["throws something that is no error", () => Promise.reject("key-a1")],
    ["returns true", () => true],
    ["returns a name", () => "acme"],
    ["returns no account", () => ({ id: "first" })],
    ["returns no id", () => ({ account: "acme" })],
    ["returns an empty account", () => ({ id: "first", account: "" })],
    ["returns a number for the account", () => ({ id: "first", account: 7 })],
    ["returns an account with a NUL", () => ({ id: "first", account: "acme\u0000b" })],
    ["returns an account with a lone surrogate", () => ({ id: "first", account: "acme\ud800" })],
    ["returns an id with a lone surrogate", () => ({ id: "first\udc00", account: "acme" })],
    ["returns an account of a megabyte", () => ({ id: "first", account: "a".repeat(1_000_000) })],
    [
      "returns a trap",
      () => ({
        get id() {
          throw new Error("key-a1");
        },
      }),
    ],
  ])("answers 503 where authenticate %s, and says so in the log without the key", async (_, authenticate) => {
    const { call, log } = registrationApi(asking(authenticate));
    const answer = await call("GET", COLLECTION);
    expect(answer).toMatchObject(error(503, "unavailable"));
    expect(answer.headers).toEqual({ ...PRIVATE, "retry-after": "5" });
    expect(log).toMatchObject([{ level: "error", message: expect.stringContaining("access.authenticate") }]);
    expect(JSON.stringify([log, answer])).not.toContain("key-a1");
  });

  it("answers 503 where authenticate is silent for five seconds, and recovers with it", async () => {
    let isSilent = true;
    const { call, clock } = registrationApi(
      asking(byKey((key) => (isSilent ? new Promise(() => {}) : SUBSCRIBERS[key]))),
    );
    let status: number | undefined;
    const asked = call("GET", COLLECTION).then((answer) => {
      status = answer.status;
    });
    await clock.advance(4999);
    expect(status).toBeUndefined();
    await clock.advance(1);
    await asked;
    expect(status).toBe(503);
    isSilent = false;
    expect((await call("GET", COLLECTION)).status).toBe(200);
    expect(clock.nextTimerAt()).toBeUndefined();
  });
});

describe("what the API defends itself against", () => {
  it("gives a body that trickles in ten seconds, then 408", async () => {
    const { call, clock } = registrationApi();
    async function* trickle(): ReadableBody {
      for (;;) {
        yield Buffer.from(" ");
        await new Promise<void>((resolve) => clock.setTimeout(resolve, 1000));
      }
    }
    let answer: Answer | undefined;
    const asked = call("POST", COLLECTION, { body: trickle() }).then((given) => {
      answer = given;
    });
    await clock.advance(9_999);
    expect(answer).toBeUndefined();
    await clock.advance(1);
    await asked;
    expect(answer).toMatchObject(error(408, "request_timeout"));
  });

  it("answers 400 to a body whose sender has left", async () => {
    const { call } = registrationApi();
    async function* cut(): ReadableBody {
      yield Buffer.from('{"url":');
      throw new Error("reset");
    }
    expect(await call("POST", COLLECTION, { body: cut() })).toMatchObject(error(400, "request_aborted"));
  });

  it.each(["POST", "PUT"])(
    "answers 413 to a %s body larger than the limit, whole or streamed",
    async (method) => {
      const { call, create } = registrationApi({ limits: { requestBytes: 1024 } });
      const { webhook } = await create();
      const path = method === "PUT" ? pathOf(webhook.id) : COLLECTION;
      const fits = { url: URL_1, ...(method === "PUT" ? { status: "ENABLED" } : {}) };
      const text = JSON.stringify(fits).padEnd(1024);
      async function* streamed(bytes: string): ReadableBody {
        for (const char of bytes) yield Buffer.from(char);
      }
      for (const body of [Buffer.from(`${text} `), streamed(`${text} `)])
        expect(await call(method, path, { body })).toMatchObject(error(413, "body_too_large"));
      for (const body of [Buffer.from(text), streamed(text)])
        expect((await call(method, path, { body })).status).toBeLessThan(300);
    },
  );

  it.each<[string, Record<string, string>]>([
    ["no content type", { "content-type": "" }],
    ["plain text", { "content-type": "text/plain" }],
    ["a form", { "content-type": "application/x-www-form-urlencoded" }],
    ["an upload", { "content-type": "multipart/form-data; boundary=x" }],
    ["UTF-7", { "content-type": "application/json; charset=utf-7" }],
    ["gzip", { "content-encoding": "gzip" }],
  ])("answers 415 to %s", async (_, headers) => {
    const { call, create } = registrationApi();
    const { webhook } = await create();
    const json = { url: URL_1, status: "ENABLED" };
    for (const [method, path] of [
      ["POST", COLLECTION],
      ["PUT", pathOf(webhook.id)],
    ] as const)
      expect(await call(method, path, { json, headers })).toMatchObject(error(415, "unsupported_media_type"));
  });

  it("answers 400 where there is no body", async () => {
    const { call } = registrationApi();
    expect(await call("POST", COLLECTION)).toMatchObject(error(400, "invalid_json"));
  });

  it("takes the value that a body parser of the host has made, and says what to change where it made none", async () => {
    const { call, log } = registrationApi();
    const body = { parsed: { url: URL_1 } };
    expect((await call("POST", COLLECTION, { body })).status).toBe(201);
    const answer = await call("POST", COLLECTION, { body: { parsed: undefined } });
    expect(answer.json).toMatchObject({
      error: { code: "raw_body_unavailable", message: expect.stringMatching(/before the body parser/) },
    });
    expect(answer.status).toBe(500);
    expect(log).toMatchObject([{ level: "error", fields: { error: { code: "raw_body_unavailable" } } }]);
  });

  it("takes no form for a registration, though a body parser of the host has made an object of it", async () => {
    const { call, webhooks } = registrationApi();
    const body = { parsed: { url: URL_1 } };
    const headers = { "content-type": "application/x-www-form-urlencoded" };
    const answer = await call("POST", COLLECTION, { body, headers });
    expect(answer).toMatchObject(error(415, "unsupported_media_type"));
    expect((await webhooks.registrations.list({ account: "acme" })).items).toEqual([]);
  });

  it("answers 429 with the seconds to wait once an account has sent too much, and 200 after them", async () => {
    const { call, clock } = registrationApi({ limits: { requestsPerMinute: 3 } });
    for (const key of ["key-a1", "key-a2", "key-a1"])
      expect((await call("GET", COLLECTION, { key })).status).toBe(200);
    const answer = await call("GET", COLLECTION, { key: "key-a2" });
    expect(answer).toMatchObject(error(429, "rate_limited"));
    expect(answer.headers).toEqual({ ...PRIVATE, "retry-after": "20" });
    expect((await call("GET", COLLECTION, { key: "key-b" })).status).toBe(200);
    await clock.advance(19_000);
    expect((await call("GET", COLLECTION)).headers["retry-after"]).toBe("1");
    await clock.advance(1_000);
    expect((await call("GET", COLLECTION)).status).toBe(200);
    expect((await call("GET", COLLECTION)).status).toBe(429);
  });

  describe("of keys that nobody knows", () => {
    const stage = (requestsPerMinute: number) => {
      const asked: string[] = [];
      const valid = new Map(Object.entries(SUBSCRIBERS));
      const authenticate = async (apiKey: string) => {
        asked.push(apiKey);
        return valid.get(apiKey);
      };
      const api = registrationApi({
        access: { ...access, authenticate: byKey(authenticate) },
        limits: { requestsPerMinute },
      });
      const statusOf = async (key: string | null): Promise<number> =>
        (await api.call("GET", COLLECTION, { key })).status;
      return { ...api, asked, valid, statusOf };
    };

    it("asks the host about no more than sixteen at once, and lets a thousand wait", async () => {
      let open = 0;
      let most = 0;
      const waiting: (() => void)[] = [];
      const authenticate = async () => {
        most = Math.max(most, ++open);
        await new Promise<void>((resolve) => waiting.push(resolve));
        open -= 1;
        return null;
      };
      const { call } = registrationApi({ access: { ...access, authenticate: byKey(authenticate) } });
      const guesses = Array.from({ length: 1020 }, async (_, index) => {
        const answer = await call("GET", COLLECTION, { key: `guess-${index}` });
        return answer.status === 429 ? answer.headers["retry-after"] : answer.status;
      });
      let isOver = false;
      const answers = Promise.all(guesses).finally(() => {
        isOver = true;
      });
      while (!isOver) {
        await eventLoopTurn();
        for (const answer of waiting.splice(0)) answer();
      }
      const seen = await answers;
      expect(most).toBe(16);
      expect(seen.filter((status) => status === 401)).toHaveLength(1016);
      expect(seen.filter((retryAfter) => retryAfter === "1")).toHaveLength(4);
    });

    it.each([
      { perSecond: 40, hostMs: 200, fromMs: 30_000 },
      { perSecond: 1000, hostMs: 12, fromMs: 900 },
    ])(
      "serves 78 valid keys that it has not seen, right after a start, under $perSecond guesses a second",
      async ({ perSecond, hostMs, fromMs }) => {
        const asked = { guess: 0, valid: 0 };
        const clock = manualClock(START);
        const authenticate = (apiKey: string): Promise<Subscriber | null> => {
          const isValid = apiKey.startsWith("valid-");
          asked[isValid ? "valid" : "guess"] += 1;
          const found = isValid ? { id: apiKey, account: apiKey } : null;
          return new Promise((resolve) => clock.setTimeout(() => resolve(found), hostMs));
        };
        const { call } = registrationApi({ clock, access: { ...access, authenticate: byKey(authenticate) } });
        const statuses: Record<"guess" | "valid", number[]> = { guess: [], valid: [] };
        const ask = (who: "guess" | "valid", index: number): void =>
          void call("GET", COLLECTION, { key: `${who}-${index}` }).then(({ status }) =>
            statuses[who].push(status),
          );
        // Guesses come evenly; among them, for four seconds, a valid key every 50 ms.
        for (let ms = 0, guesses = 0, valid = 0; ms < fromMs + 4_000; ms += 10) {
          while (guesses < (ms * perSecond) / 1000) ask("guess", guesses++);
          if (ms >= fromMs && valid < 78 && ms % 50 === 0) ask("valid", valid++);
          await clock.advance(10);
          await eventLoopTurn();
        }
        for (let ms = 0; ms < 5_000; ms += 100) {
          await clock.advance(100);
          await eventLoopTurn();
        }
        expect(statuses.valid).toEqual(Array.from({ length: 78 }, () => 200));
        expect(asked.valid).toBe(78);
        expect(asked.guess).toBe(statuses.guess.filter((status) => status === 401).length);
      },
    );

    it.each([
      { perSecond: 40, hostMs: 450, fromMs: 45_000, share: 0.3 },
      { perSecond: 300, hostMs: 100, fromMs: 12_000, share: 0.1 },
    ])(
      "serves its share of valid keys under $perSecond guesses a second, more than a host that takes $hostMs ms can answer",
      async ({ perSecond, hostMs, fromMs, share }) => {
        const clock = manualClock(START);
        /** When each open question began. Every fiftieth is never answered. */
        const open = new Map<number, number>();
        let asked = 0;
        let most = 0;
        const authenticate = (apiKey: string): Promise<Subscriber | null> => {
          const question = ++asked;
          open.set(question, clock.monotonic());
          // Postbell gives a question up after 5 s; the host may keep running it.
          most = Math.max(most, [...open.values()].filter((at) => at > clock.monotonic() - 4_999).length);
          return new Promise((resolve) => {
            if (question % 50 === 0) return;
            clock.setTimeout(
              () => {
                open.delete(question);
                resolve(apiKey.startsWith("valid-") ? { id: apiKey, account: apiKey } : null);
              },
              hostMs * (0.8 + 0.4 * clock.random()),
            );
          });
        };
        const { call } = registrationApi({ clock, access: { ...access, authenticate: byKey(authenticate) } });
        const statuses: number[] = [];
        const ask = async (key: string): Promise<void> => {
          const { status } = await call("GET", COLLECTION, { key });
          if (key.startsWith("valid-")) statuses.push(status);
        };
        // All come at times of chance: guesses all along, ten valid keys a second from `fromMs` on.
        const arrivals: { at: number; key: string }[] = [];
        for (let at = 0; at < fromMs + 8_000; at += (2_000 / perSecond) * clock.random())
          arrivals.push({ at, key: `guess-${arrivals.length}` });
        for (let index = 0; index < 80; index++)
          arrivals.push({ at: fromMs + 8_000 * clock.random(), key: `valid-${index}` });
        arrivals.sort((one, other) => one.at - other.at);
        const pending: Promise<void>[] = [];
        for (const { at, key } of arrivals) {
          await clock.advance(at - clock.monotonic());
          pending.push(ask(key));
        }
        for (let ms = 0; ms < 12_000; ms += 100) await clock.advance(100);
        await Promise.all(pending);
        const served = statuses.filter((status) => status === 200).length;
        expect(statuses).toHaveLength(80);
        expect(served).toBeGreaterThan(80 * share);
        expect(statuses.filter((status) => ![200, 429, 503].includes(status))).toEqual([]);
        expect(most).toBe(16);
      },
    );

    it("answers 503 to those that the host keeps waiting, and goes on with the next", async () => {
      let isSilent = true;
      const authenticate = (apiKey: string) =>
        isSilent ? new Promise<null>(() => {}) : (SUBSCRIBERS[apiKey] ?? null);
      const { call, clock } = registrationApi({ access: { ...access, authenticate: byKey(authenticate) } });
      const asked = Array.from({ length: 40 }, (_, index) =>
        call("GET", COLLECTION, { key: `guess-${index}` }),
      );
      await eventLoopTurn();
      await clock.advance(5_000);
      expect(new Set((await Promise.all(asked)).map(({ status }) => status))).toEqual(new Set([503]));
      isSilent = false;
      expect((await call("GET", COLLECTION)).status).toBe(200);
    });

    it("asks about each request with the same key, which may come from different addresses", async () => {
      const authenticate = async (request: HttpRequest) =>
        bearer(request) === "key-a1" && request.headers["x-address"] === "10.0.0.1"
          ? SUBSCRIBERS["key-a1"]
          : null;
      const { call } = registrationApi({ access: { ...access, authenticate } });
      const addresses = Array.from({ length: 20 }, (_, index) => `10.0.0.${index % 2}`);
      const answers = await Promise.all(
        addresses.map((address) => call("GET", COLLECTION, { headers: { "x-address": address } })),
      );
      const allowed = answers.map(({ status }) => status === 200);
      expect(allowed).toEqual(addresses.map((address) => address === "10.0.0.1"));
    });

    it("asks about requests without a key, for hosts with sessions or certificates, and counts wrong cookies", async () => {
      let asked = 0;
      const authenticate = async ({ headers }: HttpRequest) => {
        asked += 1;
        return headers["cookie"] === "session=1" ? SUBSCRIBERS["key-a1"] : undefined;
      };
      const { call } = registrationApi({
        access: { ...access, authenticate },
        limits: { requestsPerMinute: 2 },
      });
      const statusOf = async (headers: Record<string, string>) =>
        (await call("GET", COLLECTION, { key: null, headers })).status;
      expect(await statusOf({ cookie: "session=1" })).toBe(200);
      const wrong = { cookie: "session=2" };
      expect([await statusOf(wrong), await statusOf(wrong), await statusOf(wrong)]).toEqual([401, 401, 429]);
      for (let count = 0; count < 5; count++) expect(await statusOf({})).toBe(401);
      expect(asked).toBe(8);
    });

    it("lets keys go on meanwhile that were valid before, and asks the host about them each time", async () => {
      const { asked, valid, statusOf, call, clock } = stage(3);
      expect(await statusOf("key-a1")).toBe(200);
      for (let count = 0; count < 3; count++) expect(await statusOf("guess")).toBe(401);
      const refused = await call("GET", COLLECTION, { key: "guess" });
      expect(refused).toMatchObject(error(429, "rate_limited"));
      expect(refused.headers).toEqual({ ...PRIVATE, "retry-after": "20" });
      asked.length = 0;
      expect([await statusOf("key-a1"), await statusOf("key-b"), await statusOf("guess")]).toEqual([
        200, 200, 429,
      ]);
      valid.delete("key-a1");
      expect([await statusOf("key-a1"), await statusOf("key-a1")]).toEqual([401, 401]);
      expect(asked).toEqual(["key-a1", "key-b", "key-a1", "key-a1"]);
      await clock.advance(20_000);
      expect([await statusOf("guess"), await statusOf("guess")]).toEqual([401, 429]);
    });

    it("counts neither keys that turn out valid, nor a host without an answer, nor a request without a key", async () => {
      const { valid, statusOf } = stage(2);
      for (let key = 0; key < 20; key++) {
        valid.set(`key-${key}`, { id: `${key}`, account: `account-${key}` });
        expect(await statusOf(`key-${key}`)).toBe(200);
        valid.set(`bad-${key}`, {} as never);
        expect(await statusOf(`bad-${key}`)).toBe(503);
        expect(await statusOf(null)).toBe(401);
      }
      expect([await statusOf("guess"), await statusOf("guess"), await statusOf("guess")]).toEqual([
        401, 401, 429,
      ]);
    });

    it("sets no limit if accounts have none", async () => {
      const { asked, statusOf } = stage(0);
      for (let count = 0; count < 700; count++) expect(await statusOf("guess")).toBe(401);
      expect(asked).toHaveLength(700);
    });
  });
});

describe("a storage that is away", () => {
  const CALLS: readonly (readonly [method: string, path: string, json?: object])[] = [
    ["POST", COLLECTION, { url: URL_1 }],
    ["GET", COLLECTION],
    ["GET", pathOf(ANY_ID)],
    ["PUT", pathOf(ANY_ID), { url: URL_1, status: "ENABLED" }],
    ["DELETE", pathOf(ANY_ID)],
  ];

  const failingWith = (thrown: unknown): Api => {
    const fail = (): Promise<never> => Promise.reject(thrown as Error);
    const failing: Partial<WebhookStore> = {
      createWebhook: fail,
      getWebhook: fail,
      listWebhooks: fail,
      updateWebhook: fail,
      removeWebhook: fail,
    };
    return registrationApi({ storage: storageWith(() => failing) });
  };

  it.each<[string, unknown]>([
    ["storage_unavailable", new PostbellError("storage_unavailable", "no answer")],
    ["an error of its driver", Object.assign(new Error("SET whsec_x failed"), { code: "ECONNRESET" })],
    ["something that is no error", "whsec_x"],
    ["undefined", undefined],
  ])("answers 503 with Retry-After where it rejects with %s, and logs it", async (_, thrown) => {
    const { call, log } = failingWith(thrown);
    for (const [method, path, json] of CALLS) {
      const answer = await call(method, path, { json });
      expect(answer).toMatchObject(error(503, "unavailable"));
      expect(answer.headers).toEqual({ ...PRIVATE, "retry-after": "5" });
      expect(answer.text).not.toContain("whsec_x");
    }
    const lines = log.filter(({ message }) => message === "a registration request failed");
    expect(lines).toHaveLength(CALLS.length);
    expect(log[0]?.level).toBe("error");
    expect(JSON.stringify(log)).not.toContain("whsec_x");
  });

  it("answers 503 with Retry-After where it is full, and logs it once a minute", async () => {
    const { call, log } = failingWith(new PostbellError("storage_full", "no room"));
    for (const [method, path, json] of CALLS) {
      const answer = await call(method, path, { json });
      expect(answer).toMatchObject(error(503, "unavailable"));
      expect(answer.headers).toEqual({ ...PRIVATE, "retry-after": "5" });
    }
    expect(log.map(({ level, message }) => [level, message])).toEqual([
      ["error", "a registration request failed"],
    ]);
  });

  it("answers 503 where the storage is full, and 201 again once there is room", async () => {
    const { call, create } = registrationApi({
      storage: storageWith((store) => {
        let made = 0;
        return {
          createWebhook: (request) =>
            ++made === 2
              ? Promise.reject(new PostbellError("storage_full", "full"))
              : store.createWebhook(request),
        };
      }),
    });
    await create();
    expect((await call("POST", COLLECTION, { json: { url: URL_1 } })).status).toBe(503);
    await create();
  });
});
