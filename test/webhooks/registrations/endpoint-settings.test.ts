/** The settings of endpoints that the option `registrations` turns on: filter, headers, rate. */

import { readFile } from "node:fs/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import type { WebhooksOptions } from "../../../src/index.js";
import type { OutboundRequest } from "../../../src/ports.js";
import { isDisablingOnly } from "../../../src/webhooks/registrations/entitlement.js";
import type { AuditEntry } from "../../../src/webhooks/webhook.js";
import { memoryStorage } from "../../../storage/memory/index.js";
import { sqliteStorage } from "../../../storage/sqlite/index.js";
import { type Api, registrationApi, URL_1, URL_2 } from "../../support/registration-api.js";
import { createDatabaseFile } from "../../support/sqlite.js";
import { response } from "../../support/webhook-harness.js";

const ACME = { id: "first", account: "acme" };
const COLLECTION = "/v1/webhooks";
const EVENTS = { "order.paid": {}, "order.sent": {} };
const ALL_ON = { filters: true, headers: true, perSecond: true };
const FILTER = { "data.amount": { gte: 100 } };
const TOKEN = "t0p-s3cret-t0ken";
const HEADERS = { "X-Api-Key": TOKEN };

/** A service of plain events with all settings, and the requests that it sends. */
function openService(options: Partial<WebhooksOptions> = {}) {
  const sent: OutboundRequest[] = [];
  const send = async (request: OutboundRequest) => {
    sent.push(request);
    return response(200);
  };
  const api = registrationApi({
    events: EVENTS as never,
    registrations: ALL_ON,
    ...options,
    delivery: { send, ...options.delivery },
  });
  const emit = (data: unknown) => api.webhooks.emit({ type: "order.paid", account: "acme", data });
  return { ...api, sent, emit };
}

const details = async ({ call }: Api, id: string, key = "key-a1") =>
  (await call("GET", `${COLLECTION}/${id}`, { query: "include=details", key })).json as Record<
    string,
    unknown
  >;

describe("without the option", () => {
  it("settings are unknown fields, in-process and over REST, and appear in no response", async () => {
    const api = registrationApi();
    const { registrations, deliveries } = api.webhooks;
    const unknown = { code: "invalid_argument" };
    await expect(
      registrations.create({ subscriber: ACME, url: URL_1, filter: FILTER }),
    ).rejects.toMatchObject(unknown);
    await expect(
      registrations.create({ subscriber: ACME, url: URL_1, headers: HEADERS }),
    ).rejects.toMatchObject(unknown);
    for (const field of ["filter", "headers", "per_second", "perSecond", "header_names"]) {
      const { status, json } = await api.call("POST", COLLECTION, { json: { url: URL_1, [field]: null } });
      expect([status, json]).toMatchObject([400, { error: { code: "invalid_request", field } }]);
    }
    const { webhook } = await api.create();
    expect(Object.keys(await details(api, webhook.id))).toEqual([
      ...["id", "status", "url", "createdDate", "updatedDate", "description", "metadata"],
    ]);
    expect(await deliveries.stats(webhook.id)).not.toHaveProperty("filtered");
    const { text } = await api.call("GET", "/v1/openapi.json");
    expect(text).not.toMatch(/"(?:filter|filtered|header_names|per_second)":/);
  });

  it("the host alone sets a rate, in-process", async () => {
    const api = registrationApi();
    const { registrations } = api.webhooks;
    const { webhook } = await registrations.create({ subscriber: ACME, url: URL_1, perSecond: 3 });
    expect(webhook.perSecond).toBe(3);
    expect(await registrations.update({ id: webhook.id, perSecond: null })).not.toHaveProperty("perSecond");
    expect(await details(api, webhook.id)).not.toHaveProperty("per_second");
    for (const perSecond of [0, -1, 1.5, 10_001, "3", Number.NaN])
      await expect(
        registrations.update({ id: webhook.id, perSecond: perSecond as number }),
      ).rejects.toMatchObject({
        code: "invalid_request",
        field: "perSecond",
      });
  });
});

describe("settings over REST", () => {
  it("are set, shown with include=details but for the values of headers, changed and removed", async () => {
    const api = openService();
    const json = { url: URL_1, filter: FILTER, headers: HEADERS, per_second: 7 };
    const { webhook } = await api.create({ json });
    expect(Object.keys(webhook)).toEqual(["id", "status", "url", "createdDate", "updatedDate"]);
    const shown = { filter: FILTER, header_names: ["x-api-key"], per_second: 7 };
    const record = await details(api, webhook.id);
    expect(record).toMatchObject(shown);
    const path = `${COLLECTION}/${webhook.id}`;
    const put = (change: object, key = "key-a1") =>
      api.call("PUT", path, { key, json: { ...record, ...change } });
    expect((await put({})).status).toBe(200);
    expect(await details(api, webhook.id)).toMatchObject(shown);
    expect((await put({ filter: null, headers: { a: "b" }, per_second: null })).status).toBe(200);
    expect(await details(api, webhook.id)).toMatchObject({
      filter: null,
      header_names: ["a"],
      per_second: null,
    });
    expect((await put({ per_second: 10_001 })).json).toMatchObject({ error: { field: "per_second" } });
    expect((await put({ filter: { "data.a": { no: 1 } } })).json).toMatchObject({
      error: { code: "invalid_request", field: "filter['data.a']" },
    });
    const { text } = await api.call("GET", COLLECTION, { query: "include=details,stats" });
    expect(text).not.toContain(TOKEN);
  });

  it("belong to the owner: other keys of the account cannot set, repeat or probe them", async () => {
    const api = openService();
    const { webhook } = await api.create({ json: { url: URL_1, filter: FILTER, headers: HEADERS } });
    const path = `${COLLECTION}/${webhook.id}`;
    const put = async (change: object, key = "key-a2") => {
      const { status, json } = await api.call("PUT", path, { key, json: { url: URL_1, ...change } });
      return [status, (json as { error?: { code: string } }).error?.code];
    };
    const refused = [403, "webhook_owned_by_another_key"];
    expect(await put({ status: "ENABLED", filter: null })).toEqual(refused);
    expect(await put({ status: "DISABLED", per_second: 1 })).toEqual(refused);
    expect(await put({ status: "DISABLED", headers: HEADERS })).toEqual(refused);
    expect(await put({ status: "DISABLED", headers: { "x-api-key": "guess" } })).toEqual(refused);
    expect(await put({ status: "ENABLED", url: URL_2 })).toEqual(refused);
    expect(await put({ status: "DISABLED", filter: FILTER })).toEqual([200, undefined]);
    expect(await put({ status: "ENABLED", filter: null }, "key-b")).toEqual([404, "not_found"]);
    expect(await details(api, webhook.id)).toMatchObject({ filter: FILTER, header_names: ["x-api-key"] });
  });

  it("are described in the OpenAPI document, each with its option", async () => {
    const bodyOf = async (registrations: WebhooksOptions["registrations"]) => {
      const { json } = await openService({ registrations }).call("GET", "/v1/openapi.json");
      const document = json as {
        paths: { "/v1/webhooks": { post: { requestBody: { content: Record<string, { schema: object }> } } } };
        components: { schemas: { Webhook: { properties: object }; Stats: { properties: object } } };
      };
      const { Webhook, Stats } = document.components.schemas;
      const content = document.paths["/v1/webhooks"].post.requestBody.content["application/json"];
      const names = (schema: { properties?: object } | undefined) => Object.keys(schema?.properties ?? {});
      return [names(content?.schema), names(Webhook), names(Stats).includes("filtered")];
    };
    const plain = await bodyOf({});
    const [body, record] = plain as [string[], string[], boolean];
    expect(await bodyOf({ filters: true })).toEqual([[...body, "filter"], [...record, "filter"], true]);
    expect(await bodyOf({ headers: true })).toEqual([
      [...body, "headers", "header_names"],
      [...record, "header_names"],
      false,
    ]);
    expect(await bodyOf({ perSecond: true })).toEqual([
      [...body, "per_second"],
      [...record, "per_second"],
      false,
    ]);
  });
});

describe("a filter", () => {
  it("keeps events from the webhook, which counts them, and recover does not bring them back", async () => {
    const api = openService();
    const { registrations, deliveries } = api.webhooks;
    const { webhook } = await registrations.create({ subscriber: ACME, url: URL_1, filter: FILTER });
    const { webhook: other } = await registrations.create({ subscriber: ACME, url: URL_2 });
    await api.webhooks.start();
    const small = await api.emit({ amount: 99 });
    const large = await api.emit({ amount: 100 });
    expect(small.deliveries.map(({ webhookId }) => webhookId)).toEqual([other.id]);
    expect(small.webhooks).toBe(2);
    expect(large.deliveries).toHaveLength(2);
    const since = new Date(0);
    expect(await deliveries.recover({ webhookId: webhook.id, since, state: "missed" })).toEqual({ count: 0 });
    expect(await deliveries.stats(webhook.id)).toMatchObject({ filtered: 1 });
    expect(await deliveries.stats(other.id)).toMatchObject({ filtered: 0 });
    await registrations.update({ id: webhook.id, filter: null });
    expect(await deliveries.recover({ webhookId: webhook.id, since, state: "missed" })).toEqual({ count: 1 });
    await api.webhooks.stop();
  });

  it("is refused for a webhook that subscribes to types with a resource", async () => {
    const { registrations } = openService({
      events: { ...EVENTS, "patient.created": "Patient" } as never,
    }).webhooks;
    const refusal = { code: "invalid_request", field: "filter", message: /patient\.created/ };
    const rejects = async (call: Promise<unknown>) =>
      expect(await call.catch((error: unknown) => error)).toMatchObject({
        ...refusal,
        message: expect.stringMatching(refusal.message) as string,
      });
    const url = URL_1;
    await rejects(registrations.create({ subscriber: ACME, url, filter: FILTER }));
    await rejects(registrations.create({ subscriber: ACME, url, filter: FILTER, eventTypes: ["patient.*"] }));
    const eventTypes = ["order.*"];
    const { webhook } = await registrations.create({ subscriber: ACME, url, filter: FILTER, eventTypes });
    await rejects(registrations.update({ id: webhook.id, eventTypes: ["*"] }));
    await registrations.update({ id: webhook.id, eventTypes: ["*"], filter: null });
    await rejects(registrations.update({ id: webhook.id, filter: FILTER }));
    await registrations.update({ id: webhook.id, status: "DISABLED" });
  });

  it("is part of what an idempotency key repeats", async () => {
    const { registrations } = openService().webhooks;
    const request = { url: URL_1, idempotencyKey: "k", filter: { "data.a": { lt: 2, gt: 1 } } };
    const first = await registrations.create({ subscriber: ACME, ...request });
    const reordered = { "data.a": { gt: 1, lt: 2 } };
    expect(await registrations.create({ subscriber: ACME, ...request, filter: reordered })).toEqual(first);
    const reused = { code: "idempotency_key_reused" };
    await expect(
      registrations.create({ subscriber: ACME, ...request, filter: FILTER }),
    ).rejects.toMatchObject(reused);
  });
});

describe("secret headers", () => {
  it("are sent with every attempt, and replaced by those of Postbell and of the host", async () => {
    const headers = () => ({ "X-TENANT": "host" });
    const api = openService({ delivery: { headers } });
    const registration = { url: URL_1, headers: { ...HEADERS, "x-tenant": "theirs" } };
    const { webhook } = await api.webhooks.registrations.create({ subscriber: ACME, ...registration });
    await api.webhooks.start();
    await api.emit({});
    await api.webhooks.deliveries.test({ webhookId: webhook.id });
    await api.webhooks.idle();
    await api.webhooks.stop();
    expect(api.sent).toHaveLength(2);
    for (const { headers: one } of api.sent) {
      expect(one).toMatchObject({ "x-api-key": TOKEN, "X-TENANT": "host", "user-agent": "Postbell" });
      expect(one).not.toHaveProperty("x-tenant");
    }
  });

  const BROKEN: readonly (readonly [what: string, headers: unknown])[] = [
    ["a line feed", { "x-a": "b\nx-evil: 1" }],
    ["a carriage return", { "x-a": "b\r\nx-evil: 1" }],
    ["obs-fold", { "x-a": "b\r\n c" }],
    ["NUL", { "x-a": "b\u0000" }],
    ["a value that begins with a space", { "x-a": " b" }],
    ["an empty value", { "x-a": "" }],
    ["a character beyond ASCII", { "x-a": "ü" }],
    ["a value of 1 025 bytes", { "x-a": "b".repeat(1_025) }],
    ["a number", { "x-a": 1 }],
    ["a list", { "x-a": ["b"] }],
    ["a name with a colon", { "x:a": "b" }],
    ["a name with a line feed", { "x-a\n": "b" }],
    ["an empty name", { "": "b" }],
    ["a name of 129 characters", { ["x".repeat(129)]: "b" }],
    ["a name twice in other cases", { "x-a": "b", "X-A": "c" }],
    ["a prototype", JSON.parse('{"__proto__":"b"}')],
    ["no headers", {}],
    ["eleven headers", Object.fromEntries(Array.from({ length: 11 }, (_, index) => [`x-${index}`, "b"]))],
    ["a list in place of an object", [["x-a", "b"]]],
    ["a text", "x-a: b"],
    ...[
      ...[
        "host",
        "Content-Length",
        "Content-Type",
        "User-Agent",
        "Connection",
        "Keep-Alive",
        "TE",
        "Trailer",
      ],
      ...["Transfer-Encoding", "Upgrade", "Expect", "Accept-Encoding", "Proxy-Authorization", "Webhook-Id"],
      ...["webhook-signature", "x-service-signature"],
    ].map((name) => [name, { [name]: "b" }] as const),
  ];
  it.each(BROKEN)("are refused with %s", async (_, headers) => {
    const { registrations } = openService().webhooks;
    const error = (await registrations
      .create({ subscriber: ACME, url: URL_1, headers: headers as Record<string, string> })
      .catch((thrown: unknown) => thrown)) as Error;
    expect(error).toMatchObject({ code: "invalid_request", field: "headers" });
    expect(error.message).not.toContain("evil");
  });

  it("stay with the origin of the URL unless the change repeats or removes them", async () => {
    const { registrations } = openService().webhooks;
    const { webhook } = await registrations.create({ subscriber: ACME, url: URL_1, headers: HEADERS });
    const move = (url: string, headers?: Record<string, string> | null) =>
      registrations.update({ id: webhook.id, url, ...(headers !== undefined && { headers }) });
    await expect(move(URL_2)).rejects.toMatchObject({ code: "invalid_request", field: "headers" });
    await expect(move("https://example.com:444/hook")).rejects.toMatchObject({ field: "headers" });
    expect(await move(`${URL_1}/other`)).toMatchObject({ headerNames: ["x-api-key"] });
    expect(await move(URL_2, { "x-other": "1" })).toMatchObject({ url: URL_2, headerNames: ["x-other"] });
    expect(await move(URL_1, null)).not.toHaveProperty("headerNames");
    expect(await move(URL_2)).toMatchObject({ url: URL_2 });
  });

  it("are repeated by an idempotency key, and other values are refused", async () => {
    const { registrations } = openService().webhooks;
    const request = { url: URL_1, idempotencyKey: "k", headers: HEADERS };
    const first = await registrations.create({ subscriber: ACME, ...request });
    expect(
      await registrations.create({ subscriber: ACME, ...request, headers: { "x-api-key": TOKEN } }),
    ).toEqual(first);
    const reused = { code: "idempotency_key_reused" };
    for (const headers of [{ "x-api-key": "other" }, { "x-other": TOKEN }, undefined])
      await expect(registrations.create({ subscriber: ACME, ...request, headers })).rejects.toMatchObject(
        reused,
      );
  });

  it("cannot be repeated by a change that only disables, since the answer would confirm a guess", () => {
    const webhook = { url: URL_1, eventTypes: null, filter: FILTER, perSecond: 3 };
    const disable = (change: object) => isDisablingOnly(webhook, { status: "DISABLED", ...change });
    expect(disable({ filter: FILTER, perSecond: 3 })).toBe(true);
    expect(disable({ filter: { "data.amount": { gte: 99 } } })).toBe(false);
    expect(disable({ perSecond: null })).toBe(false);
    expect(disable({ headers: HEADERS })).toBe(false);
    expect(disable({ headers: null })).toBe(false);
  });

  it("are in no result, log line, audit entry or file of the storage", async () => {
    const { path, destroy } = createDatabaseFile();
    onTestFinished(destroy);
    const storage = sqliteStorage({ file: path, sealKeys: [Buffer.alloc(32, 7)] });
    const audited: AuditEntry[] = [];
    const api = openService({
      storage,
      audit: (entry) => audited.push(entry),
      limits: { auditEntries: 100 },
      delivery: { send: async () => response(500, {}, "no") },
    });
    const { registrations, deliveries } = api.webhooks;
    const json = { url: URL_1, headers: HEADERS };
    const { webhook } = await api.create({ json, headers: { "idempotency-key": "k" } });
    await api.call("PUT", `${COLLECTION}/${webhook.id}`, {
      json: { url: URL_1, status: "ENABLED", headers: { "x-api-key": `${TOKEN}-2`, "x-b": "c\nd" } },
    });
    await registrations.update({ id: webhook.id, headers: { "x-api-key": `${TOKEN}-3` } });
    const emitted = await api.emit({});
    const id = emitted.deliveries[0]?.id ?? "";
    const results = [
      await registrations.get(webhook.id),
      await registrations.list({ account: "acme" }),
      await deliveries.get(id),
      await deliveries.inspect({ id, includeBody: true }),
      await deliveries.stats(webhook.id),
      await api.webhooks.audit.list({ account: "acme" }),
      (await api.call("GET", "/v1/audit")).json,
      (await api.call("GET", `${COLLECTION}/${webhook.id}/deliveries/${id}/request`)).json,
      (await api.call("GET", "/v1/openapi.json")).json,
      await details(api, webhook.id),
      audited,
      api.log,
    ];
    expect(JSON.stringify(results)).not.toContain(TOKEN);
    expect(JSON.stringify(audited)).toContain('"fields":["headers"]');
    const readFiles = () => Promise.all([path, `${path}-wal`].map((name) => readFile(name).catch(() => "")));
    const files = await readFiles();
    await api.webhooks.stop();
    await storage.close();
    for (const content of [...files, ...(await readFiles())]) expect(content.includes(TOKEN)).toBe(false);
    expect(files.some((content) => content.includes(webhook.id))).toBe(true);
  });
});

describe("what is stored", () => {
  it("stays in effect when the options are turned off", async () => {
    const storage = memoryStorage();
    const { webhooks } = openService({ storage });
    await webhooks.registrations.create({ subscriber: ACME, url: URL_1, filter: FILTER });
    const later = openService({ storage, registrations: {} });
    expect((await later.emit({ amount: 1 })).deliveries).toEqual([]);
    expect((await later.emit({ amount: 100 })).deliveries).toHaveLength(1);
  });
});
