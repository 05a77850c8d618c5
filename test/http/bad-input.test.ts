import { createServer, type Server } from "node:http";
import { type AddressInfo, connect } from "node:net";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { nodeAdapter } from "../../adapters/node.js";
import type { RequestBody } from "../../src/http/types.js";
import { badCases, bytesOf, streamed } from "../support/bad-json.js";
import { expectAtMost } from "../support/cpu-time.js";
import { dial, send, untilClosed } from "../support/http-client.js";
import { type Api, registrationApi, URL_1 } from "../support/registration-api.js";

const COLLECTION = "/v1/webhooks";
const MAX_MS = 200;
const BODY_LIMIT = 65_536;

const registrationCases = badCases("registration");

/** The documented form of every error, and nothing besides. */
function expectError(json: unknown): void {
  const { error, ...rest } = json as { error: Record<string, unknown> };
  expect(rest).toEqual({});
  const { code, message, field = "", ...more } = error;
  expect(more).toEqual({});
  expect(code).toMatch(/^[a-z_]+$/);
  expect(message).toMatch(/\S \S/);
  expect(field).toBeTypeOf("string");
}

/** On a machine that takes 10 ms for the calibration of `expectAtMost`. */
function timed<T>(work: () => Promise<T>): Promise<T> {
  return expectAtMost(MAX_MS / 10, work);
}

const patient = { resourceType: "Patient", id: "1" };

describe.each<[string, (bytes: Buffer) => RequestBody]>([
  ["whole", (bytes) => bytes],
  ["streamed", streamed],
])("a bad body, handed over %s", (_, bodyOf) => {
  const api = registrationApi({ limits: { webhooks: 1000, enabledWebhooks: 1000, requestsPerMinute: 0 } });

  it.each(registrationCases)("$id is refused, and the next good request works: $why", async (bad) => {
    const { webhook } = await api.create();
    const path = bad.path.replace("{webhook_id}", webhook.id);
    const { status, json } = await timed(() => api.call(bad.method, path, { body: bodyOf(bytesOf(bad)) }));
    expect(status).toBeGreaterThanOrEqual(400);
    expect(status).toBeLessThan(500);
    expectError(json);
    expect((await api.call("GET", `${COLLECTION}/${webhook.id}`)).json).toEqual(webhook);
    await api.create({ body: bodyOf(Buffer.from(JSON.stringify({ url: URL_1 }))) });
  });
});

describe("a bad request over a socket", () => {
  let api: Api;
  let server: Server;
  let origin: string;

  beforeAll(async () => {
    api = registrationApi({ limits: { webhooks: 1000, enabledWebhooks: 1000, requestsPerMinute: 0 } });
    server = createServer(nodeAdapter(api.webhooks));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });

  const headers = { authorization: "Bearer key-a1", "content-type": "application/json" };
  const post = (body: string | Uint8Array, more: Record<string, string> = {}) =>
    send(origin, COLLECTION, { method: "POST", headers: { ...headers, ...more }, body });
  /**
   * Of a body that is announced too large, only the beginning is sent: the server hangs up on the
   * rest, whenever that comes.
   */
  const ask = async (
    method: string,
    path: string,
    body: Buffer,
  ): Promise<{ status: number; json: unknown }> => {
    if (body.length <= BODY_LIMIT) return send(origin, path, { method, headers, body });
    const socket = await dial(origin);
    const fields = Object.entries({ ...headers, host: "a", "content-length": String(body.length) });
    const head = fields.map(([name, value]) => `${name}: ${value}\r\n`).join("");
    socket.write(`${method} ${path} HTTP/1.1\r\n${head}\r\n`);
    socket.write(body.subarray(0, 1024));
    const [answered = "", json = ""] = (await untilClosed(socket)).split("\r\n\r\n");
    return { status: Number(answered.split(" ")[1]), json: JSON.parse(json) as unknown };
  };
  const stillWorks = async (): Promise<string> => {
    const reply = await post(JSON.stringify({ url: URL_1 }));
    expect(reply.status).toBe(201);
    return (reply.json as { webhook: { id: string } }).webhook.id;
  };

  it.each(registrationCases)("$id is refused, and the next good request works: $why", async (bad) => {
    const path = bad.path.replace("{webhook_id}", await stillWorks());
    const { status, json } = await timed(() => ask(bad.method, path, bytesOf(bad)));
    expect(status).toBeGreaterThanOrEqual(400);
    expect(status).toBeLessThan(500);
    expectError(json);
    await stillWorks();
  });

  it.each<[string, Record<string, string>]>([
    ["no content type", { "content-type": "" }],
    ["a form", { "content-type": "application/x-www-form-urlencoded" }],
    ["an upload", { "content-type": "multipart/form-data; boundary=x" }],
    ["UTF-7", { "content-type": "application/json; charset=utf-7" }],
    ["gzip", { "content-encoding": "gzip" }],
  ])("%s gets a 415", async (_, more) => {
    const reply = await post(JSON.stringify({ url: URL_1 }), more);
    expect(reply.status).toBe(415);
    expectError(reply.json);
    await stillWorks();
  });

  it.each<[string, string[]]>([
    ["an unknown key", ["Bearer nobody"]],
    ["two keys", ["Bearer key-a1", "Bearer key-a1"]],
    ["bytes beyond ASCII", ["Bearer key-a1\u00e9"]],
    ["8 KB", [`Bearer ${"k".repeat(8_192)}`]],
  ])("%s in Authorization gets a 401", async (_, authorization) => {
    const reply = await send(origin, COLLECTION, { headers: { authorization } });
    expect(reply.status).toBe(401);
    expectError(reply.json);
    expect(reply.headers["www-authenticate"]).toBe("Bearer");
    await stillWorks();
  });

  it("64 KB of Authorization are refused by the server itself, and it goes on", async () => {
    const { hostname, port } = new URL(origin);
    const answer = await new Promise<string>((done) => {
      let text = "";
      const socket = connect(Number(port), hostname);
      socket.on("data", (chunk) => {
        text += chunk.toString();
      });
      // Node closes while the rest is still on its way, which may reset the connection before its
      // answer is read.
      socket.on("error", () => {});
      socket.on("close", () => done(text));
      socket.write(
        `GET ${COLLECTION} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${"k".repeat(65_536)}\r\n\r\n`,
      );
    });
    expect(answer).toMatch(/^(?:HTTP\/1\.1 431 |$)/);
    await stillWorks();
  });
});

describe("hostile values", () => {
  const emptyPrototype = (): void => expect(Object.keys(Object.prototype)).toEqual([]);

  it.each([
    '{"__proto__":{"polluted":1},"url":"https://example.com/"}',
    '{"constructor":{"prototype":{"polluted":1}},"url":"https://example.com/"}',
    '{"url":"https://example.com/","event_types":{"__proto__":["*"]}}',
    '{"url":{"__proto__":"https://example.com/"}}',
  ])("the body %s gets a 400 and pollutes nothing", async (text) => {
    const { call } = registrationApi();
    const { status } = await call("POST", COLLECTION, { body: Buffer.from(text) });
    expect(status).toBe(400);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
    emptyPrototype();
  });

  it("names of built-in properties in query and headers are ignored", async () => {
    const { call } = registrationApi();
    const { status } = await call("GET", COLLECTION, {
      query: "__proto__[polluted]=1&constructor[prototype][polluted]=1&__proto__=1",
      headers: JSON.parse('{"__proto__":"x","constructor":"x"}') as Record<string, string>,
    });
    expect(status).toBe(200);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
    emptyPrototype();
  });

  it("of a parameter that comes several times the first counts", async () => {
    const { call, create } = registrationApi();
    await create();
    await create();
    const { json } = await call("GET", COLLECTION, { query: "limit=1&limit=100&limit=x" });
    expect((json as { webhooks: unknown[] }).webhooks).toHaveLength(1);
  });

  it("a query of 100 000 parameters is answered in time", async () => {
    const { call } = registrationApi();
    const query = "a[b][c]=1&".repeat(100_000);
    expect((await timed(() => call("GET", COLLECTION, { query }))).status).toBe(200);
  });

  it.each<[string, () => string]>([
    ["a million names", () => `{${Array.from({ length: 1_000_000 }, (_, n) => `"a${n}":0`).join(",")}}`],
    ["7 MB of one string", () => `{"url":"${"a".repeat(7_000_000)}"}`],
    ["2 MB of one name of digits", () => `{"${"1".repeat(2_000_000)}":1}`],
    [
      "as many names like integers as the limit lets pass",
      () => `{${Array.from({ length: 5_000 }, (_, n) => `"${n * 7919}":0`).join(",")}}`,
    ],
    ["names long enough to be slow to compare", () => `{"${"eventtypes".repeat(6_000)}":1}`],
    ["a number beyond all numbers", () => `{"url":1e400}`],
    ["many event types", () => `{"url":"${URL_1}","event_types":["${"x.y".repeat(20_000)}"]}`],
    [
      "many known event types and one unknown",
      () => `{"url":"${URL_1}","event_types":[${'"x",'.repeat(10_000)}"patient.created"]}`,
    ],
  ])("%s: refused in time", async (_, make) => {
    const { call } = registrationApi();
    const bytes = Buffer.from(make());
    for (const body of [bytes, streamed(bytes)]) {
      const { status, json } = await timed(() => call("POST", COLLECTION, { body }));
      expect([400, 413]).toContain(status);
      expectError(json);
    }
    expect((await call("POST", COLLECTION, { json: { url: URL_1 } })).status).toBe(201);
  });

  it("a body in UTF-8 with a byte order mark is taken", async () => {
    const { call } = registrationApi();
    const body = Buffer.from(`\uFEFF${JSON.stringify({ url: URL_1 })}`);
    expect((await call("POST", COLLECTION, { body })).status).toBe(201);
  });

  it("values of a host's own body parser are checked like any others", async () => {
    const { call } = registrationApi();
    const bare: object = Object.assign(Object.create(null), { url: URL_1 });
    expect((await call("POST", COLLECTION, { body: { parsed: bare } })).status).toBe(201);
    for (const parsed of ["x", 1, null, [], new Map(), { URL: URL_1 }, { url: [URL_1] }, () => 1]) {
      expect((await call("POST", COLLECTION, { body: { parsed } })).status).toBe(400);
    }
  });

  it("any JSON at any path with any method gets an answer of the documented form, never a 5xx", async () => {
    const api = registrationApi({
      limits: { webhooks: 10_000, enabledWebhooks: 10_000, requestsPerMinute: 0 },
    });
    const { webhook } = await api.create();
    const request = fc.record({
      method: fc.constantFrom("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"),
      path: fc.oneof(
        fc.constantFrom(COLLECTION, `${COLLECTION}/`, `${COLLECTION}/${webhook.id.toUpperCase()}`),
        fc
          .webSegment()
          .filter((part) => part !== "")
          .map((part) => `${COLLECTION}/${part}`),
      ),
      query: fc.webQueryParameters(),
      value: fc.oneof(
        fc.jsonValue(),
        fc.record(
          { url: fc.oneof(fc.webUrl(), fc.jsonValue()), status: fc.jsonValue(), event_types: fc.jsonValue() },
          { requiredKeys: [] },
        ),
      ),
    });
    await fc.assert(
      fc.asyncProperty(request, async ({ method, path, query, value }) => {
        const hasBody = method === "POST" || method === "PUT";
        const { status, json } = await api.call(method, path, hasBody ? { query, json: value } : { query });
        expect(status).toBeLessThan(500);
        if (status >= 400 && method !== "HEAD") expectError(json);
      }),
      { numRuns: 300 },
    );
    expect((await api.call("GET", `${COLLECTION}/${webhook.id}`)).json).toEqual(webhook);
    expect(api.log).toEqual([]);
  });

  it("the service goes on delivering meanwhile", async () => {
    const api = registrationApi();
    const { webhook } = await api.create();
    await Promise.all(
      registrationCases.slice(0, 50).map((bad) => api.call("POST", COLLECTION, { body: bytesOf(bad) })),
    );
    const emitted = await api.webhooks.emit({ type: "patient.created", account: "acme", resource: patient });
    expect(emitted.deliveries).toMatchObject([{ webhookId: webhook.id }]);
  });
});
