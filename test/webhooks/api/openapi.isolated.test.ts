import { describe, expect, it, vi } from "vitest";
import type { Route } from "../../../src/http/router.js";
import type { JsonObject } from "../../../src/schema/types.js";
import type { WebhooksOptions } from "../../../src/webhooks/config/webhooks-options.js";
import { createWebhooks } from "../../../src/webhooks/service.js";
import { memoryStorage } from "../../../storage/memory/index.js";
import { describedBy } from "../../support/described-answers.js";
import { objectionsTo } from "../../support/openapi-lint.js";
import { access, registrationApi } from "../../support/registration-api.js";

/** The rows of every router that is made: what is answered, whatever the document says. */
const rows = vi.hoisted((): Pick<Route<never>, "method" | "path">[] => []);
vi.mock("../../../src/http/router.js", async (original) => {
  const actual = await original<typeof import("../../../src/http/router.js")>();
  const createRouter: typeof actual.createRouter = (routes, options) => {
    rows.push(...routes);
    return actual.createRouter(routes, options);
  };
  return { ...actual, createRouter };
});

const PATH = "/v1/openapi.json";

const at = (json: unknown, ...path: readonly string[]): unknown =>
  path.reduce<unknown>((value, name) => (value as JsonObject)[name], json);

const forms: readonly (readonly [string, Partial<WebhooksOptions>])[] = [
  ["as it is by default", {}],
  [
    "with every option that shows in it",
    {
      body: "envelope",
      delivery: { eventIdField: true },
      signature: {
        header: "X-Clinic-Signature",
        standardWebhooks: true,
        ed25519: [`whsk_${Buffer.alloc(32, 7).toString("base64")}`],
      },
    },
  ],
];

describe.each(forms)("the OpenAPI document, %s", (_, options) => {
  const document = () =>
    registrationApi(options).webhooks.openApi({ baseUrl: "https://api.clinic.test/hooks" });

  it("gives a linter and a validator nothing to object to", async () => {
    expect(await objectionsTo(document())).toEqual([]);
  });

  it("describes the notification that an endpoint receives, with its headers", async () => {
    const sent: { headers: Readonly<Record<string, string>>; body: unknown }[] = [];
    const { webhooks, create } = registrationApi({
      ...options,
      delivery: {
        ...options.delivery,
        send: async ({ headers, body }) => {
          sent.push({ headers, body: JSON.parse(Buffer.from(body as Uint8Array).toString()) });
          return { kind: "response", status: 204, headers: {}, body: new Uint8Array(0), complete: true };
        },
      },
    });
    await create();
    await webhooks.start();
    await webhooks.emit({
      type: "patient.created",
      account: "acme",
      resource: { resourceType: "Patient", id: "p1", managingOrganization: { reference: "Organization/o1" } },
      related: [{ resourceType: "Organization", id: "o1" }],
    });
    await webhooks.idle();
    await webhooks.stop();

    const described = webhooks.openApi();
    const post = at(described, "webhooks", "notification", "post");
    const { fits } = describedBy(described);
    const [notification] = sent;
    expect(sent).toHaveLength(1);
    const schema = at(post, "requestBody", "content", "application/json", "schema") as JsonObject;
    expect(fits(notification?.body, schema)).toEqual([]);
    expect(fits({ ...(notification?.body as object), id: "1" }, schema)).not.toEqual([]);

    const given = new Map(
      Object.entries(notification?.headers ?? {}).map(([name, value]) => [name.toLowerCase(), value]),
    );
    const parameters = at(post, "parameters") as readonly { name: string; schema: JsonObject }[];
    for (const { name, schema: header } of parameters) {
      expect(fits(given.get(name.toLowerCase()), header)).toEqual([]);
    }
    const general = new Set(["content-type", "user-agent"]);
    expect(parameters.map(({ name }) => name.toLowerCase()).sort()).toEqual(
      [...given.keys()].filter((name) => !general.has(name)).sort(),
    );
  });
});

describe("the OpenAPI document of the registration API", () => {
  it("has the paths and methods of the route table, and no others", async () => {
    rows.length = 0;
    const { webhooks, call } = registrationApi();
    const { paths } = webhooks.openApi() as { readonly paths: { readonly [path: string]: JsonObject } };
    const methodsOf = (item: JsonObject): string[] =>
      Object.keys(item)
        .filter((name) => name !== "parameters")
        .map((name) => name.toUpperCase())
        .sort();
    const described = Object.entries(paths).flatMap(([path, item]) =>
      methodsOf(item).map((method) => `${method} ${path}`),
    );
    const answered = rows.map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, "{$1}")}`);
    expect(described.sort()).toEqual(answered.sort());
    expect(described).toContain(`GET ${PATH}`);
    expect(described.length).toBeGreaterThan(12);

    // HEAD and OPTIONS are nobody's rows: the first goes with GET, the second with every path.
    for (const [path, item] of Object.entries(paths)) {
      const { status, headers } = await call("OPTIONS", path);
      const methods = methodsOf(item);
      const allowed = [...methods, "OPTIONS", ...(methods.includes("GET") ? ["HEAD"] : [])].sort();
      expect([path, status, String(headers["allow"]).split(", ").sort()]).toEqual([path, 204, allowed]);
    }
  });

  it("has the version of the interface", () => {
    const webhooks = createWebhooks({ storage: memoryStorage(), access });
    expect(at(webhooks.openApi(), "info", "version")).toBe("1.4.2");
  });

  it.each([
    [false, /^The URL of the endpoint: absolute, and HTTPS\.$/],
    [true, /^The URL of the endpoint: absolute, HTTPS or HTTP\.$/],
  ])("allows http in the url of a webhook only with destinations.allowHttp: %s", async (allowHttp, text) => {
    const { call, webhooks } = registrationApi({ destinations: { allowHttp } });
    const document = webhooks.openApi();
    const { pattern, maxLength, description } = at(
      document,
      ...["components", "schemas", "EndpointUrl"],
    ) as JsonObject;
    expect([maxLength, description]).toEqual([2048, expect.stringMatching(text)]);
    const form = new RegExp(pattern as string);
    const urls = [
      "https://hooks.example.com/in",
      "HTTPS://hooks.example.com:8443/",
      "http://hooks.example.com",
    ];
    expect(urls.map((url) => form.test(url))).toEqual([true, true, allowHttp]);
    for (const url of urls) {
      const { status } = await call("POST", "/v1/webhooks", { json: { url } });
      expect(status === 201, url).toBe(form.test(url));
    }
    for (const url of ["ftp://hooks.example.com", "https://a b", "hooks.example.com", ""])
      expect(url).not.toMatch(form);
    for (const [path, method] of [
      ["/v1/webhooks", "post"],
      ["/v1/webhooks/{webhookId}", "put"],
    ] as const) {
      const body = at(document, "paths", path, method, "requestBody", "content", "application/json");
      expect(at(body, "schema", "properties", "url")).toEqual({ $ref: "#/components/schemas/EndpointUrl" });
    }
  });

  it("names the host's own event types, and no others", () => {
    const events = { "order.paid": "Basic", "order.sent": "Basic" };
    const webhooks = createWebhooks({ storage: memoryStorage(), access, events });
    const schemas = at(webhooks.openApi(), "components", "schemas");
    expect(at(schemas, "EventType", "enum")).toEqual(["order.paid", "order.sent"]);
    expect(at(schemas, "EventTypePattern", "enum")).toEqual(["order.paid", "order.sent", "order.*", "*"]);
  });

  it("is served without a key, for the address it was asked at, and kept until it changes", async () => {
    const { webhooks, call } = registrationApi();
    const { status, headers, json } = await call("GET", PATH, {
      key: null,
      baseUrl: "https://clinic.test/api",
    });
    expect(status).toBe(200);
    expect(headers["content-type"]).toBe("application/json; charset=utf-8");
    expect(json).toEqual(webhooks.openApi({ baseUrl: "https://clinic.test/api" }));
    expect(at(json, "servers")).toEqual([{ url: "https://clinic.test/api" }]);

    const again = {
      key: null,
      baseUrl: "https://clinic.test/api",
      headers: { "if-none-match": String(headers["etag"]) },
    };
    expect(await call("GET", PATH, again)).toMatchObject({ status: 304, text: null });
    expect((await call("GET", PATH, { ...again, baseUrl: "https://other.test" })).status).toBe(200);
    expect((await call("POST", PATH, { key: null })).status).toBe(405);
  });

  it("is compared with every answer: one that it does not describe is noticed", async () => {
    const { webhooks } = registrationApi();
    const { problems } = describedBy(webhooks.openApi());
    const request = { method: "GET", path: "/v1/webhooks", query: "", headers: {}, body: null, baseUrl: "" };
    const answer = (status: number, body: unknown, headers = {}) => ({
      status,
      headers: { "content-type": "application/json", "cache-control": "no-store", ...headers },
      body: JSON.stringify(body),
    });
    expect(problems(request, answer(200, { webhooks: [], next: null }))).toEqual([]);
    const wrong = [
      answer(200, { webhooks: [] }),
      answer(200, { webhooks: [], next: 7 }),
      answer(200, { webhooks: [], next: null, secret: "" }),
      answer(200, { webhooks: [], next: null }, { "content-type": "text/html" }),
      answer(200, { webhooks: [], next: null }, { "x-more": "1" }),
      answer(200, { webhooks: [], next: null }, { "cache-control": "public" }),
      answer(204, null),
      answer(404, { error: { code: "not_found", message: "" } }),
      answer(401, { error: { code: "unauthorized", message: "" } }),
      answer(400, { error: { code: "not_found", message: "" } }),
      undefined,
    ];
    for (const response of wrong) expect(problems(request, response)).not.toEqual([]);
    expect(problems({ ...request, path: "/v1/other" }, answer(200, {}))).not.toEqual([]);
    expect(problems({ ...request, method: "PATCH" }, answer(200, {}))).not.toEqual([]);
  });
});
