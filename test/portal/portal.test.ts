import { readFile } from "node:fs/promises";
import { afterEach, describe, expect, it } from "vitest";
import type { HttpRequest } from "../../src/http/types.js";
import { createWebhooks, type Subscriber } from "../../src/index.js";
import { createPortal, type PortalOptions, type Visitor } from "../../src/portal/index.js";
import { DEFAULT_THEME, LINK_BACKGROUNDS } from "../../src/portal/theme.js";
import { manualClock } from "../../src/testing/manual-clock.js";
import { memoryStorage } from "../../storage/memory/index.js";
import type { RunningHost } from "../contracts/adapter.js";
import { contentSite } from "../support/content-site.js";
import { HOSTS } from "../support/hosts.js";
import { type Sent, send } from "../support/http-client.js";
import { response, START } from "../support/webhook-harness.js";

const ADA = { name: "Ada", subscriber: { id: "key-1", account: "clinic" } };
const EVE = { name: "Eve", subscriber: { id: "key-2", account: "other" } };
const FROM_PAGE = { "x-postbell-portal": "1", "content-type": "application/json" };

function portalWith(changes: Partial<PortalOptions> = {}) {
  const clock = manualClock(START);
  const webhooks = createWebhooks({
    storage: memoryStorage(),
    access: { authenticate: () => null, canRead: () => true },
    delivery: { send: async () => response(500) },
    clock,
  });
  const authorize: PortalOptions["authorize"] = ({ headers }) =>
    ({ ada: ADA, eve: EVE, nobody: { name: "Nobody" } })[headers["x-user"] ?? ""] ?? null;
  const portal = createPortal({ webhooks, authorize, clock, ...changes });
  const ask = async (
    method: string,
    path: string,
    {
      headers = {},
      body,
      user = "ada",
    }: { headers?: Record<string, string>; body?: object; user?: string } = {},
  ) => {
    const [target = "", query = ""] = path.split("?");
    const answer = await portal.handle({
      method,
      path: target,
      query,
      headers: { host: "host.example", "x-user": user, ...(method === "GET" ? {} : FROM_PAGE), ...headers },
      body: body ? Buffer.from(JSON.stringify(body)) : null,
      baseUrl: "https://host.example/portal",
    });
    if (!answer) throw new Error(`${path} is not the portal's.`);
    const text = typeof answer.body === "string" ? answer.body : "";
    const isJson = String(answer.headers["content-type"]).startsWith("application/json");
    return {
      ...answer,
      text,
      json: (isJson ? JSON.parse(text || "null") : undefined) as Record<string, unknown>,
    };
  };
  return { portal, webhooks, clock, ask };
}

const register = async ({ webhooks }: ReturnType<typeof portalWith>): Promise<string> =>
  (await webhooks.registrations.create({ subscriber: ADA.subscriber, url: "https://hooks.example.com/in" }))
    .webhook.id;

describe("the portal's guard", () => {
  it("answers who is not signed in with 401: a plain page for the page, JSON for its API", async () => {
    const { ask } = portalWith();
    const page = await ask("GET", "/", { user: "" });
    expect([page.status, page.headers["content-type"]]).toEqual([401, "text/html; charset=utf-8"]);
    expect(page.text).not.toContain("<script");
    // It looks like the portal, and its files are public.
    const [, style = ""] =
      /<link rel="stylesheet" href="(?:\.|[^"]*)\/(app-[\w-]{22}\.css)">/.exec(page.text) ?? [];
    expect((await ask("GET", `/${style}`, { user: "" })).status).toBe(200);
    const api = await ask("GET", "/api/session", { user: "" });
    expect([api.status, api.json]).toEqual([
      401,
      { error: expect.objectContaining({ code: "unauthorized" }) },
    ]);
    const change = await ask("POST", "/api/v1/webhooks", {
      user: "",
      body: { url: "https://hooks.example.com/" },
    });
    expect(change.status).toBe(401);
  });

  it("answers 503 where the host throws, gives nonsense, or nothing for 5 s", async () => {
    const broken = async (authorize: PortalOptions["authorize"]) => {
      const { ask, clock } = portalWith({ authorize });
      const answers = Promise.all([ask("GET", "/"), ask("GET", "/api/session")]);
      await clock.advance(5_000);
      return (await answers).map(({ status }) => status);
    };
    const authorizes = [
      () => {
        throw new Error("session store is away");
      },
      () => ({ name: "Ada", subscriber: { id: "", account: "clinic" } }),
      () => ({ name: "Ada", subscriber: { id: "a\u0000b", account: "clinic" } }),
      () => ({ name: "Ada", canReadRecords: "yes" as never }),
      () => ({}) as never,
      () => new Promise<null>(() => {}),
    ];
    for (const authorize of authorizes) expect(await broken(authorize)).toEqual([503, 503]);
  });

  it.each([
    ["without the page's header", { "x-postbell-portal": undefined }],
    ["of another site", { "sec-fetch-site": "cross-site" }],
    ["of another origin of the same site", { "sec-fetch-site": "same-site" }],
    ["of another origin", { origin: "https://evil.example" }],
    ["of no origin", { origin: "null" }],
  ])("refuses a change %s", async (_, headers) => {
    const made = portalWith();
    const id = await register(made);
    const given = headers as Record<string, string>;
    const { status, json } = await made.ask("DELETE", `/api/v1/webhooks/${id}`, { headers: given });
    expect([status, json]).toEqual([403, { error: expect.objectContaining({ code: "foreign_request" }) }]);
    expect((await made.webhooks.registrations.get(id)).id).toBe(id);
  });

  it.each([
    [{}],
    [{ "sec-fetch-site": "same-origin", origin: "https://host.example" }],
    [{ "sec-fetch-site": "same-origin", origin: "https://before-a-proxy.example" }],
    [{ origin: "https://host.example" }],
  ])("takes a change of its own page: %j", async (headers) => {
    const made = portalWith();
    const id = await register(made);
    expect((await made.ask("DELETE", `/api/v1/webhooks/${id}`, { headers })).status).toBe(200);
  });
});

describe("the portal's page", () => {
  it("carries a strict policy, and nothing inline", async () => {
    const { ask } = portalWith({ title: 'A "<b>" & co' });
    const { headers, text } = await ask("GET", "/");
    expect(headers["content-security-policy"]).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    );
    expect(headers).toMatchObject({ "x-content-type-options": "nosniff", "cache-control": "no-store" });
    expect(text).toContain("<title>A &quot;&lt;b&gt;&quot; &amp; co</title>");
    expect(text).not.toMatch(/<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=/);
  });

  it("has assets that a browser keeps until they change", async () => {
    const { ask } = portalWith();
    for (const [path, type, length] of [
      ["/app.js", "text/javascript; charset=utf-8", 1_000],
      ["/app.css", "text/css; charset=utf-8", 1_000],
      ["/theme.css", "text/css; charset=utf-8", 50],
      ["/favicon.svg", "image/svg+xml", 50],
    ] as const) {
      const { status, headers, text } = await ask("GET", path, { user: "" });
      expect([status, headers["content-type"], text.length > length]).toEqual([200, type, true]);
      expect(headers).toMatchObject({
        "x-content-type-options": "nosniff",
        "cross-origin-resource-policy": "same-origin",
        "content-security-policy": "default-src 'none'; sandbox",
      });
      const again = await ask("GET", path, {
        headers: { "if-none-match": `"x", W/${String(headers["etag"])}` },
      });
      expect([again.status, again.body]).toEqual([304, null]);
      const changed = await ask("GET", path, { headers: { "if-none-match": '"other"' } });
      expect(changed.status).toBe(200);
    }
  });

  it("leaves the host every other path", async () => {
    const { portal } = portalWith();
    for (const path of [
      "/app.html",
      "/api/nothing",
      "/webhooks",
      "/app-x.js",
      `/app-${"x".repeat(22)}.html`,
    ]) {
      const request = {
        method: "GET",
        path,
        query: "",
        headers: {},
        body: null,
        baseUrl: "https://host.example",
      };
      expect(await portal.handle(request)).toBeUndefined();
    }
  });

  it("refuses options it cannot work with", () => {
    const { webhooks } = portalWith();
    const make = (options: object) => () => createPortal(options as PortalOptions);
    expect(make({ webhooks })).toThrow(expect.objectContaining({ field: "authorize" }));
    expect(make({ authorize: () => null })).toThrow(expect.objectContaining({ field: "webhooks" }));
    for (const webhooksGiven of [{}, { ...webhooks, as: undefined }, { ...webhooks, schedule: undefined }])
      expect(make({ webhooks: webhooksGiven, authorize: () => null })).toThrow(
        expect.objectContaining({ field: "webhooks" }),
      );
    const pick = (from: object, names: readonly string[]) =>
      Object.fromEntries(Object.entries(from).filter(([name]) => names.includes(name)));
    const asked = pick(webhooks, ["as", "schedule"]);
    expect(make({ webhooks: asked, authorize: () => null })).not.toThrow();
    for (const content of [
      pick(contentSite(), ["handle", "request"]),
      { ...contentSite(), uploads: undefined },
    ])
      expect(make({ content, authorize: () => null })).toThrow(expect.objectContaining({ field: "content" }));
    expect(make({ webhooks, authorize: () => null, titel: "x" })).toThrow(
      expect.objectContaining({ code: "invalid_option", field: "titel" }),
    );
  });
});

describe("the portal's API", () => {
  it("says who the visitor is, and what the page may show", async () => {
    const { ask, clock, webhooks } = portalWith({ title: "Hooks", theme: { logo: "/logo.png" } });
    await clock.advance(90_000);
    expect((await ask("GET", "/api/session")).json).toEqual({
      title: "Hooks",
      logo: "/logo.png",
      name: "Ada",
      parts: { webhooks: true, content: false },
      canReadRecords: false,
      schedule: webhooks.schedule(),
      now: new Date(START + 90_000).toISOString(),
    });
    expect((await ask("GET", "/api/session", { user: "nobody" })).json).toMatchObject({
      parts: { webhooks: false, content: false },
    });
    const plain = portalWith({ webhooks: undefined, content: contentSite() });
    expect((await plain.ask("GET", "/api/session")).json).toMatchObject({
      logo: null,
      parts: { webhooks: false, content: false },
      schedule: [],
    });
    expect((await plain.ask("GET", "/api/v1/webhooks")).status).toBe(404);
  });

  it("has the audit log of the visitor's account, if the service keeps one", async () => {
    const off = portalWith();
    expect((await off.ask("GET", "/api/session")).json).not.toHaveProperty("hasAuditLog");
    expect((await off.ask("GET", "/api/v1/audit")).status).toBe(404);
    const webhooks = createWebhooks({
      storage: memoryStorage(),
      access: { authenticate: () => null, canRead: () => true },
      limits: { auditEntries: 10 },
    });
    const made = portalWith({ webhooks });
    await webhooks.registrations.create({ subscriber: ADA.subscriber, url: "https://hooks.example.com/in" });
    expect((await made.ask("GET", "/api/session")).json["hasAuditLog"]).toBe(true);
    const entriesOf = async (user: string) =>
      (await made.ask("GET", "/api/v1/audit", { user })).json["entries"];
    expect(await entriesOf("ada")).toMatchObject([{ action: "webhook.created", actor: { type: "host" } }]);
    expect(await entriesOf("eve")).toEqual([]);
    expect((await made.ask("GET", "/api/v1/audit", { user: "nobody" })).status).toBe(404);
    expect((await made.ask("GET", "/api/v1/event-types/patient.created/sample")).text).toBe(
      JSON.stringify(await webhooks.deliveries.sample({ type: "patient.created" })),
    );
  });

  it("answers for a webhook of another account as for one that does not exist, on every route", async () => {
    const made = portalWith();
    const id = await register(made);
    await made.webhooks.emit({
      type: "patient.updated",
      account: "clinic",
      resource: { resourceType: "Patient" },
    });
    const { items: deliveries } = await made.webhooks.deliveries.list({ webhookId: id });
    const delivery = deliveries[0]?.id ?? "";
    const missing = "0b7a1c5e-2f9d-4c0e-9d38-6c1f8d0a5e11";
    const paths = (webhookId: string): readonly (readonly [string, string, object?])[] => [
      ["GET", `/api/v1/webhooks/${webhookId}`],
      ["PUT", `/api/v1/webhooks/${webhookId}`, { url: "https://hooks.example.com/", status: "DISABLED" }],
      ["DELETE", `/api/v1/webhooks/${webhookId}`],
      ["GET", `/api/v1/webhooks/${webhookId}/stats`],
      ["POST", `/api/v1/webhooks/${webhookId}/rotate`, {}],
      ["POST", `/api/v1/webhooks/${webhookId}/rotate/finish`],
      ["POST", `/api/v1/webhooks/${webhookId}/test`, {}],
      ["POST", `/api/v1/webhooks/${webhookId}/recover`, { since: "2025-01-01T00:00:00Z" }],
      ["GET", `/api/v1/webhooks/${webhookId}/deliveries`],
      ["GET", `/api/v1/webhooks/${webhookId}/deliveries/${delivery}`],
      ["GET", `/api/v1/webhooks/${webhookId}/deliveries/${delivery}/request`],
      ["POST", `/api/v1/webhooks/${webhookId}/deliveries/${delivery}/resend`, {}],
    ];
    for (const [index, [method, path, body]] of paths(id).entries()) {
      const [, none = ""] = paths(missing)[index] ?? [];
      const given = body === undefined ? {} : { body };
      const foreign = await made.ask(method, path, { ...given, user: "eve" });
      const absent = await made.ask(method, none, given);
      expect([foreign.status, foreign.text], path).toEqual([404, absent.text]);
      expect((await made.ask(method, path, { ...given, user: "nobody" })).status, path).toBe(404);
    }
    expect((await made.ask("GET", "/api/v1/webhooks", { user: "eve" })).json).toEqual({
      webhooks: [],
      next: null,
    });
    expect((await made.webhooks.registrations.get(id)).status).toBe("ENABLED");
  });

  it("shows a delivery below its own webhook only", async () => {
    const made = portalWith();
    const [first, second] = [await register(made), await register(made)];
    await made.webhooks.emit({
      type: "patient.updated",
      account: "clinic",
      resource: { resourceType: "Patient" },
    });
    const { items: deliveries } = await made.webhooks.deliveries.list({ webhookId: first });
    const at = (webhookId: string) => `/api/v1/webhooks/${webhookId}/deliveries/${deliveries[0]?.id}`;
    expect((await made.ask("GET", at(first))).status).toBe(200);
    expect((await made.ask("GET", at(second))).status).toBe(404);
  });

  it("gives no answer with a secret in it, but the two that make one", async () => {
    const made = portalWith();
    const created = await made.ask("POST", "/api/v1/webhooks", {
      body: { url: "https://hooks.example.com/in" },
    });
    expect(created.json).toMatchObject({ secret: expect.stringMatching(/^whsec_/) });
    const id = (created.json["webhook"] as { id: string }).id;
    const rotated = await made.ask("POST", `/api/v1/webhooks/${id}/rotate`, { body: { overlap_seconds: 0 } });
    expect(rotated.json).toMatchObject({ secret: expect.stringMatching(/^whsec_/) });
    for (const path of ["/api/v1/webhooks", `/api/v1/webhooks/${id}`, `/api/v1/webhooks/${id}/deliveries`]) {
      const { status, text, headers } = await made.ask("GET", path);
      expect([status, headers["cache-control"]]).toEqual([200, "no-store"]);
      expect(text).not.toContain("whsec_");
    }
  });

  it.each([
    ["url", { url: "http://hooks.example.com/" }],
    ["event_types[0]", { url: "https://hooks.example.com/", event_types: ["patient.udated"] }],
    ["adress", { url: "https://hooks.example.com/", adress: 1 }],
  ])("names the field at fault: %s", async (field, body) => {
    const { ask } = portalWith();
    const { status, json } = await ask("POST", "/api/v1/webhooks", { body });
    expect([status, json]).toEqual([400, { error: expect.objectContaining({ field }) }]);
  });

  it("bounds the requests about webhooks by account and minute: 429, and when to ask again", async () => {
    const { ask, clock } = portalWith({ requestsPerMinute: 3 });
    for (let count = 0; count < 3; count++) expect((await ask("GET", "/api/v1/webhooks")).status).toBe(200);
    const refused = await ask("GET", "/api/v1/webhooks");
    expect([refused.status, refused.json]).toEqual([
      429,
      { error: { code: "rate_limited", message: expect.stringContaining("20 s") } },
    ]);
    expect(refused.headers["retry-after"]).toBe("20");
    expect((await ask("GET", "/api/v1/webhooks", { user: "eve" })).status).toBe(200);
    await clock.advance(20_000);
    expect((await ask("GET", "/api/v1/webhooks")).status).toBe(200);
  });

  it.each([
    ["include=stats&limit=2", "", 3],
    ["include=stats&limit=2", "/", 3],
    ["limit=2", "", 1],
    ["include=stats&limit=0", "", 1],
    ["include=stats", "", 4],
  ])(
    "counts a list with statistics as one request and one for each webhook on it: %s%s costs %i",
    async (query, end, cost) => {
      const host = portalWith({ requestsPerMinute: 60 });
      const { ask } = host;
      for (let count = 0; count < 3; count++) await register(host);
      await ask("GET", `/api/v1/webhooks${end}?${query}`);
      let left = 0;
      while ((await ask("GET", "/api/v1/event-types")).status === 200) left += 1;
      expect(left).toBe(60 - cost);
    },
  );

  it("reads no body of an account that sends too many requests", async () => {
    const { portal, ask } = portalWith({ requestsPerMinute: 1 });
    await ask("GET", "/api/v1/webhooks");
    let reads = 0;
    const body = new Proxy(Buffer.from("{}"), {
      get(target, name) {
        reads += 1;
        const value: unknown = Reflect.get(target, name, target);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
    const answer = await portal.handle({
      method: "POST",
      path: "/api/v1/webhooks",
      query: "",
      headers: { host: "host.example", "x-user": "ada", ...FROM_PAGE },
      body,
      baseUrl: "https://host.example/portal",
    });
    expect([answer?.status, reads]).toEqual([429, 0]);
  });

  it("refuses a body that is too long, compressed or not JSON, as the service does", async () => {
    const { ask } = portalWith();
    const body = { url: "https://hooks.example.com/in" };
    const create = async (sent: object, headers: Record<string, string> = {}): Promise<unknown> => {
      const { status, json } = await ask("POST", "/api/v1/webhooks", { body: sent, headers });
      return [status, (json["error"] as { code: string } | undefined)?.code];
    };
    expect(await create({ ...body, url: `https://a.example/${"a".repeat(1_000_000)}` })).toEqual([
      413,
      "body_too_large",
    ]);
    expect(await create(body, { "content-encoding": "gzip" })).toEqual([415, "unsupported_media_type"]);
    expect(await create(body, { "content-type": "text/plain" })).toEqual([415, "unsupported_media_type"]);
    expect(await create([])).toEqual([400, "invalid_request"]);
    expect(await create(body)).toEqual([201, undefined]);
  });

  it("filters deliveries by state, type and time, and counts what is recovered", async () => {
    const made = portalWith();
    const id = await register(made);
    await made.webhooks.emit({
      type: "patient.updated",
      account: "clinic",
      resource: { resourceType: "Patient" },
    });
    await made.clock.advance(60_000);
    await made.webhooks.emit({
      type: "patient.created",
      account: "clinic",
      resource: { resourceType: "Patient" },
    });
    const list = async (query: string): Promise<readonly unknown[]> => {
      const { json } = await made.ask("GET", `/api/v1/webhooks/${id}/deliveries?${query}`);
      return (json["deliveries"] as { type: string }[]).map(({ type }) => type);
    };
    const later = new Date(START + 30_000).toISOString();
    expect(await list("")).toEqual(["patient.created", "patient.updated"]);
    expect(await list("type=patient.updated")).toEqual(["patient.updated"]);
    expect(await list(`since=${later}`)).toEqual(["patient.created"]);
    expect(await list(`until=${later}&state=pending`)).toEqual(["patient.updated"]);
    expect((await made.ask("GET", `/api/v1/webhooks/${id}/deliveries?state=lost`)).status).toBe(400);
    const recovered = await made.ask("POST", `/api/v1/webhooks/${id}/recover`, { body: { since: later } });
    expect([recovered.status, recovered.json]).toEqual([202, { count: 0 }]);
    const without = await made.ask("POST", `/api/v1/webhooks/${id}/recover`, { body: {} });
    expect([without.status, without.json]).toEqual([
      400,
      { error: expect.objectContaining({ field: "since" }) },
    ]);
  });
});

describe("requests that the portal forwards", () => {
  /** A portal on a service that shows what reaches it. */
  function recording(visitor: Partial<Visitor> = {}) {
    const requests: (readonly [HttpRequest, Subscriber])[] = [];
    const { ask, portal } = portalWith({
      authorize: () => ({ ...ADA, ...visitor }),
      webhooks: {
        schedule: () => [],
        as: (subscriber) => ({
          ...createWebhooks({
            storage: memoryStorage(),
            access: { authenticate: () => null, canRead: () => true },
          }).as(subscriber),
          async handle(request) {
            requests.push([request, subscriber as Subscriber]);
            const headers = { etag: '"1"', "access-control-allow-origin": "*", "retry-after": "7" };
            return request.path === "/v1/nothing" ? undefined : { status: 418, headers, body: "{}" };
          },
        }),
      },
    });
    return { ask, portal, requests };
  }

  it("say nothing about their sender, and name the visitor's subscriber", async () => {
    const { ask, requests } = recording();
    const headers = {
      authorization: "Bearer stolen",
      cookie: "session=1",
      "content-encoding": "gzip",
      "idempotency-key": "a",
      "if-none-match": "b",
      "x-forwarded-for": "10.0.0.1",
    };
    await ask("POST", "/api/v1/webhooks?limit=2", { headers, body: { url: "https://a.example/" } });
    expect(requests).toEqual([
      [
        {
          method: "POST",
          path: "/v1/webhooks",
          query: "limit=2",
          headers: {
            "content-type": "application/json",
            "content-encoding": "gzip",
            "idempotency-key": "a",
            "if-none-match": "b",
          },
          body: expect.any(Buffer),
          baseUrl: "https://host.example/portal/api",
          signal: undefined,
        },
        ADA.subscriber,
      ],
    ]);
  });

  it("get the service's response, for the page only", async () => {
    const { ask } = recording();
    const { status, headers, body } = await ask("GET", "/api/v1/openapi.json");
    expect([status, headers, body]).toEqual([
      418,
      { etag: '"1"', "retry-after": "7", "cross-origin-resource-policy": "same-origin" },
      "{}",
    ]);
    expect((await ask("GET", "/api/v1/nothing")).status).toBe(404);
  });

  it("ask for the body of a notification only for who may read records", async () => {
    const queries = ["include=body", "include=%62ody&a=1", "include=stats&include=body", "a=1&include=body"];
    const path = "/api/v1/webhooks/w/deliveries/d/request";
    for (const [canReadRecords, expected] of [
      [undefined, ["", "a=1", "include=stats", "a=1"]],
      [false, ["", "a=1", "include=stats", "a=1"]],
      [true, ["include=body", "include=body&a=1", "include=stats&include=body", "a=1&include=body"]],
    ] as const) {
      const { ask, requests } = recording({ canReadRecords });
      for (const query of queries) await ask("GET", `${path}?${query}`);
      expect(requests.map(([{ query }]) => query)).toEqual(expected);
      expect((await ask("GET", "/api/session")).json["canReadRecords"]).toBe(canReadRecords === true);
    }
  });

  it("show the body of a notification to the owner with canReadRecords, and to no other key", async () => {
    const made = portalWith({
      authorize: ({ headers }) => ({
        name: "Ada",
        subscriber: { ...ADA.subscriber, id: headers["x-key"] ?? "key-1" },
        canReadRecords: true,
      }),
    });
    const id = await register(made);
    const resource = { resourceType: "Patient", id: "7" };
    const { deliveries } = await made.webhooks.emit({ type: "patient.updated", account: "clinic", resource });
    const path = `/api/v1/webhooks/${id}/deliveries/${deliveries[0]?.id}/request?include=body`;
    expect((await made.ask("GET", path)).json["body"]).toContain('"Patient"');
    const other = await made.ask("GET", path, { headers: { "x-key": "key-2" } });
    expect([other.status, other.text.includes("Patient")]).toEqual([403, false]);
  });

  it("are refused with an empty response where HEAD is", async () => {
    const { ask } = recording();
    for (const [path, user] of [
      ["/api/v1/nothing", "ada"],
      ["/api/session", "ada"],
    ] as const)
      expect((await ask("HEAD", path, { user })).body).toBeNull();
  });
});

describe("the look of the portal", () => {
  const policyOf = async (options: Partial<PortalOptions>): Promise<readonly string[]> => {
    const { headers } = await portalWith(options).ask("GET", "/");
    return [
      ...String(headers["content-security-policy"]).split("; "),
      String(headers["cross-origin-resource-policy"]),
    ];
  };

  it("has the host's colours in a style sheet and in the favicon", async () => {
    const { ask } = portalWith({ theme: { accent: "#7a1f5c", accentDark: "#F0A6D8" } });
    const { text } = await ask("GET", "/theme.css");
    expect(text).toContain("--accent:#7a1f5c;--accent-ink:#ffffff");
    expect(text).toContain("--accent:#F0A6D8;--accent-ink:#0d1722");
    expect((await ask("GET", "/favicon.svg")).text).toMatch(/^<svg [^>]*>.*fill="#7a1f5c"/);
    const page = (await ask("GET", "/")).text;
    // The host's colours come later, so that they win.
    expect(page).toMatch(/href="\/portal\/app-[\w-]{22}\.css">\n.*href="\/portal\/theme-[\w-]{22}\.css">/);
    expect(page).toContain('<link rel="icon" type="image/svg+xml" href="/portal/favicon.svg">');
  });

  it("measures the contrast of colours against the backgrounds that the page has", async () => {
    const styles = await readFile("src/portal/app/styles.css", "utf8");
    const { accent: light, accentDark: dark, font, radius } = DEFAULT_THEME;
    for (const part of [`accent: ${light}`, `accent: ${dark}`, `font: ${font}`, `radius: ${radius}px`])
      expect(styles).toContain(`--${part};`);
    const found = [...styles.matchAll(/--(?:bg|surface|surface-2|\w+-bg): (#\w+);/g)].map(
      ([, color]) => color,
    );
    expect(new Set(found)).toEqual(new Set(Object.values(LINK_BACKGROUNDS).flat()));
    const { text } = await portalWith({}).ask("GET", "/theme.css");
    const derived = [...text.matchAll(/--accent-(?:ink|hover):#\w+/g)].map(([each]) =>
      each.replace(":", ": "),
    );
    expect(derived).toHaveLength(6);
    for (const each of derived) expect(styles).toContain(`${each};`);
  });

  const refusal = (theme: object): unknown => {
    try {
      portalWith({ theme });
    } catch (error) {
      return error;
    }
    return undefined;
  };

  it.each([
    [{ accent: "#777777" }, "accent", "4.5 with the text on buttons (#777777 has 4.48 with #ffffff)"],
    [{ accent: "#ffd166" }, "accent", "3 with the light page (#ffd166 has 1.35); choose a darker colour"],
    [
      { accent: "#7a1f5c" },
      "accent",
      "3 with the dark page (#7a1f5c has 1.81); choose a lighter colour and give it as theme.accentDark",
    ],
    [{ accentDark: "#0b57b5" }, "accentDark", "3 with the dark page (#0b57b5 has 2.53); choose a lighter"],
  ])("refuses %j, which cannot be read, with the contrast that it has", (theme, name, message) => {
    expect(refusal(theme)).toMatchObject({
      code: "invalid_option",
      field: `theme.${name}`,
      message: expect.stringContaining(`theme.${name} must have a contrast of at least ${message}`),
    });
  });

  it("takes one colour for both pages if it can be read on both, with a shade of it for links", async () => {
    expect(refusal({ accent: "#000000", accentDark: "#ffffff" })).toBeUndefined();
    const { text } = await portalWith({ theme: { accent: "#c0561a" } }).ask("GET", "/theme.css");
    expect(text).toContain(
      ":root{--accent:#c0561a;--accent-ink:#ffffff;--accent-hover:#a34916;--link:#ad4d17}",
    );
    expect(text).toContain(
      ":root[data-theme=dark]{--accent:#c0561a;--accent-ink:#ffffff;--accent-hover:#a34916;--link:#cd7848}",
    );
  });

  it.each([
    ...["red", "#fff", "#0b57b5;", "0b57b5", 1].map((accent) => ["accent", accent]),
    ...[-1, 17, 4.5, "4px", Number.NaN].map((radius) => ["radius", radius]),
    ...["", "a;b", 'x"y', "a{}", "url(x)", "é", "1a", "a,,b", "a\\", "a".repeat(41), "ab,".repeat(80)].map(
      (font) => ["font", font],
    ),
  ])("refuses %s %j", (name, value) => {
    expect(refusal({ [String(name)]: value })).toMatchObject({ field: `theme.${name}` });
  });

  it("quotes the names of fonts, and gives cards twice the radius of controls", async () => {
    const theme = { font: "Inter, Segoe UI,sans-serif", radius: 10 };
    const { text } = await portalWith({ theme }).ask("GET", "/theme.css");
    expect(text).toContain(':root{--font:"Inter", "Segoe UI", sans-serif;--radius:10px;--radius-card:20px}');
  });

  it.each(["Sans-Serif", "ui-monospace", "cursive", "fantasy", "math"])(
    "does not quote %s, which CSS knows by a keyword",
    async (family) => {
      const { text } = await portalWith({ theme: { font: `Inter, ${family}` } }).ask("GET", "/theme.css");
      expect(text).toContain(`--font:"Inter", ${family};`);
    },
  );

  it.each([
    ["/logo.svg", "img-src 'self'"],
    ["https://cdn.example.com/a/logo.png?b=1", "img-src 'self' https://cdn.example.com"],
    ["https://cdn.example.com:8443/logo.png", "img-src 'self' https://cdn.example.com:8443"],
    ["data:image/png;base64,AAAA", "img-src 'self' data:"],
  ])("allows the logo %s and no other image: %s", async (logo, source) => {
    expect(await policyOf({ theme: { logo } })).toContain(source);
  });

  it.each([
    "http://cdn.example.com/logo.png",
    "//cdn.example.com/logo.png",
    "/\\cdn.example.com/logo.png",
    "/\t/cdn.example.com/logo.png",
    "/\n\\cdn.example.com/logo.png",
    "\t//cdn.example.com/logo.png",
    "https://a;script-src/logo.png",
    "https://a,b/logo.png",
    "javascript:alert(1)",
    "data:text/html,x",
    "logo.png",
    "",
    `data:image/png;base64,${"A".repeat(100_000)}`,
    `/${"a".repeat(3_000)}`,
  ])("refuses the logo %.60s", (logo) => {
    expect(() => portalWith({ theme: { logo } })).toThrow(expect.objectContaining({ field: "theme.logo" }));
  });

  it("can be framed by the origins that the host names, and by no other", async () => {
    expect(await policyOf({})).toEqual(expect.arrayContaining(["frame-ancestors 'none'", "same-origin"]));
    expect(await policyOf({ frameAncestors: ["self"] })).toEqual(
      expect.arrayContaining(["frame-ancestors 'self'", "same-origin"]),
    );
    expect(
      await policyOf({ frameAncestors: ["self", "https://app.example.com", "http://localhost:3000"] }),
    ).toEqual(
      expect.arrayContaining([
        "frame-ancestors 'self' https://app.example.com http://localhost:3000",
        "cross-origin",
      ]),
    );
    const refused = [
      ["https://app.example.com/"],
      ["https://app.example.com/path"],
      ["app.example.com"],
      ["*"],
      ["'unsafe-inline'"],
      ["https://a;script-src"],
      ["https://a example.com"],
      [1],
      "self",
      Array.from({ length: 21 }, () => "self"),
    ];
    for (const frameAncestors of refused)
      expect(() => portalWith({ frameAncestors: frameAncestors as string[] })).toThrow(
        expect.objectContaining({ code: "invalid_option", field: "frameAncestors" }),
      );
  });

  it("carries the same policy on the page of a visitor who may not see it", async () => {
    const { ask } = portalWith({ frameAncestors: ["https://app.example.com"] });
    const [seen, refused] = [await ask("GET", "/"), await ask("GET", "/", { user: "" })];
    expect(refused.headers["content-security-policy"]).toBe(seen.headers["content-security-policy"]);
  });
});

describe("the portal, mounted", () => {
  const running: RunningHost[] = [];
  afterEach(async () => {
    for (const host of running.splice(0)) await host.close();
  });
  const cases = HOSTS.flatMap((host) => ["", "/tools/portal"].map((prefix) => ({ ...host, prefix })));

  it.each(cases)(
    "answers its page, its assets and its API in $name at '$prefix'",
    async ({ mount, prefix }) => {
      const { portal } = portalWith({ authorize: () => ADA });
      const host = await mount({ service: portal, prefix, parser: "none" });
      running.push(host);
      const get = (path: string) => send(host.origin, path);
      for (const address of prefix === "" ? ["/"] : [prefix, `${prefix}/`]) {
        const page = await get(address);
        expect([page.status, page.headers["content-type"]]).toEqual([200, "text/html; charset=utf-8"]);
        const sources = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, source = ""]) => source);
        expect(sources).toHaveLength(5);
        for (const source of sources) {
          const { pathname } = new URL(source, `${host.origin}${address}`);
          expect((await get(pathname)).status, source).toBe(200);
        }
      }
      expect((await get(`${prefix}/api/session`)).json).toMatchObject({ name: "Ada" });
      const made: Sent = {
        method: "POST",
        headers: FROM_PAGE,
        body: JSON.stringify({ url: "https://hooks.example.com/in" }),
      };
      const created = await send(host.origin, `${prefix}/api/v1/webhooks`, made);
      expect(created.status).toBe(201);
      const { pathname } = new URL(String(created.headers["location"]));
      expect((await get(pathname)).json).toMatchObject({ status: "ENABLED" });
    },
  );
});
