import { gzipSync } from "node:zlib";
import { afterEach, describe, expect, it } from "vitest";
import { createPortal, type PortalOptions } from "../../portal/index.js";
import { createWebhooks } from "../../src/index.js";
import { memoryStorage } from "../../storage/memory/index.js";
import { manualClock } from "../../testing/manual-clock.js";
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
    return { ...answer, text, json: (isJson ? JSON.parse(text) : undefined) as Record<string, unknown> };
  };
  return { portal, webhooks, clock, ask };
}

const register = async ({ webhooks }: ReturnType<typeof portalWith>): Promise<string> =>
  (await webhooks.registrations.create(ADA.subscriber, { url: "https://hooks.example.com/in" })).webhook.id;

describe("the portal's guard", () => {
  it("answers who is not signed in with 401: a plain page for the page, JSON for its API", async () => {
    const { ask } = portalWith();
    const page = await ask("GET", "/", { user: "" });
    expect([page.status, page.headers["content-type"]]).toEqual([401, "text/html; charset=utf-8"]);
    expect(page.text).not.toContain("<script");
    const api = await ask("GET", "/api/session", { user: "" });
    expect([api.status, api.json]).toEqual([
      401,
      { error: expect.objectContaining({ code: "unauthorized" }) },
    ]);
    const change = await ask("POST", "/api/webhooks", {
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
    const { status, json } = await made.ask("DELETE", `/api/webhooks/${id}`, { headers: given });
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
    expect((await made.ask("DELETE", `/api/webhooks/${id}`, { headers })).status).toBe(200);
  });
});

describe("the portal's page", () => {
  it("carries a strict policy, and nothing inline", async () => {
    const { ask } = portalWith({ title: 'A "<b>" & co' });
    const { headers, text } = await ask("GET", "/");
    expect(headers["content-security-policy"]).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    );
    expect(headers).toMatchObject({ "x-content-type-options": "nosniff", "cache-control": "no-store" });
    expect(text).toContain("<title>A &quot;&lt;b&gt;&quot; &amp; co</title>");
    expect(text).not.toMatch(/<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=/);
  });

  it("has assets that a browser keeps until they change", async () => {
    const { ask } = portalWith();
    for (const path of ["/app.js", "/app.css"]) {
      const { status, headers, text } = await ask("GET", path, { user: "" });
      expect([status, headers["x-content-type-options"], text.length > 1_000]).toEqual([
        200,
        "nosniff",
        true,
      ]);
      const again = await ask("GET", path, {
        headers: { "if-none-match": `"x", W/${String(headers["etag"])}` },
      });
      expect([again.status, again.body]).toEqual([304, null]);
      const changed = await ask("GET", path, { headers: { "if-none-match": '"other"' } });
      expect(changed.status).toBe(200);
    }
  });

  it("is small: script and style under 60 kB compressed", async () => {
    const { ask } = portalWith();
    const texts = await Promise.all(
      ["/app.js", "/app.css"].map(async (path) => (await ask("GET", path)).text),
    );
    const bytes = texts.reduce((sum, text) => sum + gzipSync(text).length, 0);
    expect(bytes).toBeLessThan(60_000);
  });

  it("leaves the host every other path", async () => {
    const { portal } = portalWith();
    for (const path of ["/app.html", "/api/nothing", "/webhooks"]) {
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
    for (const webhooksGiven of [
      {},
      { ...webhooks, deliveries: undefined },
      { ...webhooks, schedule: undefined },
    ])
      expect(make({ webhooks: webhooksGiven, authorize: () => null })).toThrow(
        expect.objectContaining({ field: "webhooks" }),
      );
    const pick = (from: object, names: readonly string[]) =>
      Object.fromEntries(Object.entries(from).filter(([name]) => names.includes(name)));
    const asked = pick(webhooks, ["registrations", "deliveries", "eventTypes", "schedule"]);
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
  it("says which parts there are for the visitor", async () => {
    const { ask } = portalWith({ title: "Hooks" });
    expect((await ask("GET", "/api/session")).json).toEqual({
      title: "Hooks",
      name: "Ada",
      parts: { webhooks: true, content: false },
    });
    expect((await ask("GET", "/api/session", { user: "nobody" })).json).toMatchObject({
      parts: { webhooks: false, content: false },
    });
  });

  it("answers for a webhook of another account as for one that does not exist, on every route", async () => {
    const made = portalWith();
    const id = await register(made);
    await made.webhooks.emit({
      type: "patient.updated",
      account: "clinic",
      resource: { resourceType: "Patient" },
    });
    const { deliveries } = await made.webhooks.deliveries.list({ webhookId: id });
    const delivery = deliveries[0]?.id ?? "";
    const missing = "0b7a1c5e-2f9d-4c0e-9d38-6c1f8d0a5e11";
    const paths = (webhookId: string): readonly (readonly [string, string, object?])[] => [
      ["GET", `/api/webhooks/${webhookId}`],
      ["PUT", `/api/webhooks/${webhookId}`, { status: "DISABLED" }],
      ["DELETE", `/api/webhooks/${webhookId}`],
      ["POST", `/api/webhooks/${webhookId}/rotate`, {}],
      ["POST", `/api/webhooks/${webhookId}/test`, {}],
      ["POST", `/api/webhooks/${webhookId}/recover`, { since: "2025-01-01T00:00:00Z" }],
      ["GET", `/api/webhooks/${webhookId}/deliveries`],
      ["GET", `/api/webhooks/${webhookId}/deliveries/${delivery}`],
      ["POST", `/api/webhooks/${webhookId}/deliveries/${delivery}/resend`, {}],
    ];
    for (const [index, [method, path, body]] of paths(id).entries()) {
      const [, none = ""] = paths(missing)[index] ?? [];
      const given = body === undefined ? {} : { body };
      const foreign = await made.ask(method, path, { ...given, user: "eve" });
      const absent = await made.ask(method, none, given);
      expect([foreign.status, foreign.text], path).toEqual([404, absent.text]);
      expect((await made.ask(method, path, { ...given, user: "nobody" })).status, path).toBe(404);
    }
    expect((await made.ask("GET", "/api/webhooks", { user: "eve" })).json).toEqual({
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
    const { deliveries } = await made.webhooks.deliveries.list({ webhookId: first });
    const at = (webhookId: string) => `/api/webhooks/${webhookId}/deliveries/${deliveries[0]?.id}`;
    expect((await made.ask("GET", at(first))).status).toBe(200);
    expect((await made.ask("GET", at(second))).status).toBe(404);
  });

  it("gives no answer with a secret in it, but the two that make one", async () => {
    const made = portalWith();
    const created = await made.ask("POST", "/api/webhooks", {
      body: { url: "https://hooks.example.com/in" },
    });
    expect(created.json).toMatchObject({ secret: expect.stringMatching(/^whsec_/) });
    const id = (created.json["webhook"] as { id: string }).id;
    const rotated = await made.ask("POST", `/api/webhooks/${id}/rotate`, { body: { overlapMs: 0 } });
    expect(rotated.json).toEqual({ secret: expect.stringMatching(/^whsec_/) });
    for (const path of ["/api/webhooks", `/api/webhooks/${id}`, `/api/webhooks/${id}/deliveries`]) {
      const { status, text, headers } = await made.ask("GET", path);
      expect([status, headers["cache-control"]]).toEqual([200, "no-store"]);
      expect(text).not.toContain("whsec_");
    }
  });

  it.each([
    ["url", { url: "http://hooks.example.com/" }],
    ["event_types[0]", { url: "https://hooks.example.com/", eventTypes: ["patient.udated"] }],
    ["adress", { url: "https://hooks.example.com/", adress: 1 }],
  ])("names the field at fault: %s", async (field, body) => {
    const { ask } = portalWith();
    const { status, json } = await ask("POST", "/api/webhooks", { body });
    expect([status, json]).toEqual([400, { error: expect.objectContaining({ field }) }]);
  });

  it("bounds the requests about webhooks by account and minute: 429, and when to ask again", async () => {
    const { ask, clock } = portalWith({ requestsPerMinute: 3 });
    for (let count = 0; count < 3; count++) expect((await ask("GET", "/api/webhooks")).status).toBe(200);
    const refused = await ask("GET", "/api/webhooks");
    expect([refused.status, refused.json]).toEqual([
      429,
      { error: { code: "rate_limited", message: expect.stringContaining("20 s") } },
    ]);
    expect(refused.headers["retry-after"]).toBe("20");
    expect((await ask("GET", "/api/webhooks", { user: "eve" })).status).toBe(200);
    await clock.advance(20_000);
    expect((await ask("GET", "/api/webhooks")).status).toBe(200);
  });

  it("counts a list of webhooks as one request and one for each webhook in it", async () => {
    const made = portalWith({ requestsPerMinute: 6 });
    for (let count = 0; count < 4; count++) await register(made);
    expect((await made.ask("GET", "/api/webhooks?limit=2")).status).toBe(200);
    // 3 of 6 are left: one more list may begin, and overdraws the rest.
    expect((await made.ask("GET", "/api/webhooks")).status).toBe(200);
    const refused = await made.ask("GET", "/api/webhooks");
    expect([refused.status, refused.headers["retry-after"]]).toEqual([429, "30"]);
    await made.clock.advance(30_000);
    expect((await made.ask("GET", "/api/webhooks")).status).toBe(200);
  });

  it("reads no body of an account that sends too many requests", async () => {
    const { portal, ask } = portalWith({ requestsPerMinute: 1 });
    await ask("GET", "/api/webhooks");
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
      path: "/api/webhooks",
      query: "",
      headers: { host: "host.example", "x-user": "ada", ...FROM_PAGE },
      body,
      baseUrl: "https://host.example/portal",
    });
    expect([answer?.status, reads]).toEqual([429, 0]);
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
      const { json } = await made.ask("GET", `/api/webhooks/${id}/deliveries?${query}`);
      return (json["deliveries"] as { type: string }[]).map(({ type }) => type);
    };
    const later = new Date(START + 30_000).toISOString();
    expect(await list("")).toEqual(["patient.created", "patient.updated"]);
    expect(await list("type=patient.updated&state=")).toEqual(["patient.updated"]);
    expect(await list(`since=${later}`)).toEqual(["patient.created"]);
    expect(await list(`until=${later}&state=pending`)).toEqual(["patient.updated"]);
    expect((await made.ask("GET", `/api/webhooks/${id}/deliveries?state=lost`)).status).toBe(400);
    const recovered = await made.ask("POST", `/api/webhooks/${id}/recover`, { body: { since: later } });
    expect([recovered.status, recovered.json]).toEqual([202, { count: 0 }]);
    const without = await made.ask("POST", `/api/webhooks/${id}/recover`, { body: {} });
    expect([without.status, without.json]).toEqual([
      400,
      { error: expect.objectContaining({ field: "since" }) },
    ]);
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
        const sources = [...page.text.matchAll(/(?:src|href)="([^"]*app\.[^"]+)"/g)].map(
          ([, source = ""]) => source,
        );
        expect(sources).toHaveLength(2);
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
      expect((await send(host.origin, `${prefix}/api/webhooks`, made)).status).toBe(201);
    },
  );
});
