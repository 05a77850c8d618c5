/**
 * Every argument of every route of both services has a maximum that a client can read, and is
 * judged by it before anything else.
 */

import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { validateArguments } from "../../src/schema/arguments.js";
import { checkJsonLimits, hasMoreValues } from "../../src/schema/json-limits.js";
import type { Arguments, JsonObject } from "../../src/schema/types.js";
import { readValue } from "../../src/schema/validate.js";
import { contentSite, idOf } from "../support/content-site.js";
import { describedArguments } from "../support/described-arguments.js";
import { registrationApi } from "../support/registration-api.js";
import { AS_EDITOR, ask, notesRoutes, restServer, threeNotes } from "../support/rest-host.js";

/** Lists the parts of a schema that allow values of any size. */
function unbounded(schema: JsonObject, at: string): readonly string[] {
  const { type, properties, items, additionalProperties } = schema;
  const alternatives = [schema["oneOf"], schema["anyOf"]].flat().filter((one) => one !== undefined);
  if ("enum" in schema || "const" in schema || "contentMediaType" in schema || schema["readOnly"] === true) {
    return [];
  }
  if (alternatives.length > 0) {
    return alternatives.flatMap((one) => unbounded({ type, ...(one as JsonObject) } as JsonObject, at));
  }
  const types = [type ?? "string"].flat();
  const found: string[] = [];
  const hasOwnBound =
    schema["format"] === "uuid" || /\{\d+,\d+\}\$$/.test((schema["pattern"] ?? "") as string);
  if (types.includes("string") && !("maxLength" in schema) && !hasOwnBound) found.push(`${at}: text`);
  if (types.includes("array")) {
    if (!("maxItems" in schema)) found.push(`${at}: list`);
    if (items !== undefined) found.push(...unbounded(items as JsonObject, `${at}[]`));
  }
  if (types.includes("object")) {
    const isFree = properties === undefined || (additionalProperties ?? false) !== false;
    if (isFree && !("maxProperties" in schema)) found.push(`${at}: object`);
    for (const [name, member] of Object.entries((properties ?? {}) as { [name: string]: JsonObject })) {
      found.push(...unbounded(member, `${at}.${name}`));
    }
    if (typeof additionalProperties === "object") {
      found.push(...unbounded(additionalProperties as JsonObject, `${at}.*`));
    }
  }
  return found;
}

const DOCUMENTS = {
  content: contentSite().openApi() as JsonObject,
  webhooks: registrationApi().webhooks.openApi() as JsonObject,
};

describe.each(Object.entries(DOCUMENTS))("the arguments of the %s service", (_, document) => {
  const all = describedArguments(document);

  it("are found", () => {
    expect(all.length).toBeGreaterThan(20);
  });

  it("have a maximum each, in OpenAPI", () => {
    const found = all.flatMap(({ method, path, name, schema }) =>
      unbounded(schema, `${method} ${path} ${name}`),
    );
    expect(found).toEqual([]);
  });
});

describe("the answer to OPTIONS", () => {
  it("tells the maximum of a text, and that of a list in a keyword that WordPress does not use", async () => {
    const { body } = await contentSite().request({ method: "OPTIONS", path: "/core/v2/posts", as: null });
    const { args } = (body as unknown as { endpoints: readonly { args: { [name: string]: JsonObject } }[] })
      .endpoints[0] as { args: { [name: string]: JsonObject } };
    expect(args["search"]).toMatchObject({ maxLength: 1_600 });
    expect(args["include"]).toMatchObject({ "x-maxItems": 10_000 });
    expect(args["include"]).not.toHaveProperty("maxItems");
  });
});

describe("a value that is too large", () => {
  const text = "x".repeat(101);
  it.each([
    [text, { type: "string", maxLength: 100 }, "rest_too_long"],
    [text, { maxLength: 100 }, "rest_too_long"],
    [
      { raw: text },
      { type: "object", properties: { raw: { type: "string", maxLength: 100 } } },
      "rest_too_long",
    ],
    [["1", "2", "3"], { type: "array", itemLimit: 2 }, "rest_too_many_items"],
    ["1,2,3", { type: "array", items: { type: "integer" }, itemLimit: 2 }, "rest_too_many_items"],
    [" ".repeat(1_000), { type: "array", items: { type: "integer" }, itemLimit: 2 }, "rest_too_long"],
    [{ 0: "a", 1: "b", 2: "c" }, { type: "array", itemLimit: 2 }, "rest_too_many_items"],
    [{ a: 1, b: 2 }, { type: "object", maxProperties: 1 }, "rest_too_many_properties"],
  ] as const)("is refused: %j", (value, schema, code) => {
    expect(readValue(value, schema, "a").problem?.code).toBe(code);
  });

  it("counts characters as a reader does", () => {
    const schema = { type: "string", maxLength: 3 } as const;
    expect(readValue("😀😀😀", schema, "a").problem).toBeUndefined();
    expect(readValue("😀😀😀😀", schema, "a").problem?.code).toBe("rest_too_long");
  });

  it("is never shown to the rules of an argument", () => {
    const seen: unknown[] = [];
    const args: Arguments = {
      a: {
        type: "object",
        maxLength: 100,
        properties: { raw: { type: "string", maxLength: 100 } },
        validate: (value) => void seen.push(value),
        sanitize: (value) => seen.push(value),
      },
    };
    for (const a of [text, { raw: text }]) {
      expect(validateArguments(args, { a })).toMatchObject({ ok: false, code: "rest_invalid_param" });
    }
    expect(seen).toEqual([]);
  });

  it.each(["integer", "number", "boolean", "date-time"])("is no %s, whatever it begins with", (kind) => {
    const schema = kind === "date-time" ? { type: "string", format: kind } : { type: kind };
    const start = kind === "boolean" ? "true" : kind === "date-time" ? "2026-01-01T00:00:00." : "1";
    const long = start + "0".repeat(300);
    expect(readValue(long, schema as Parameters<typeof readValue>[1], "a").problem).toBeDefined();
  });
});

describe("a JSON body", () => {
  const members = (count: number, name = (at: number) => `n${at}`): JsonObject =>
    Object.fromEntries(Array.from({ length: count }, (_, at) => [name(at), at]));

  it("may hold ten thousand values, counted before it is parsed", () => {
    const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));
    expect(hasMoreValues(json(members(9_999)), 10_000)).toBe(false);
    expect(hasMoreValues(json(members(10_001)), 10_000)).toBe(true);
    expect(hasMoreValues(json({ a: `,[{"`.repeat(20_000), b: "\\\\" }), 10_000)).toBe(false);
    expect(checkJsonLimits(members(10_000))?.code).toBe("rest_too_many_values");
    expect(checkJsonLimits(members(9_999, (at) => String(2 ** 31 + at)))).toBeUndefined();
  });

  it("has room for a batch of 25 posts with all their fields and a hundred meta fields each", () => {
    const post = { ...members(50), meta: members(100, (at) => `meta_${at}`), tags: Array(100).fill(1) };
    const requests = Array(25).fill({ method: "POST", path: "/core/v2/posts", body: post });
    expect(checkJsonLimits({ requests })).toBeUndefined();
  });

  it("has names of 256 characters at most", () => {
    expect(checkJsonLimits({ a: [{ ["n".repeat(257)]: 1 }] })?.code).toBe("rest_name_too_long");
    expect(checkJsonLimits({ a: [{ ["n".repeat(256)]: 1 }] })).toBeUndefined();
  });
});

describe("a request", () => {
  const limits = { requestBytes: 2_097_152, cacheBytes: 0 };
  const large = { title: "x".repeat(70_000) };

  it.each([
    ["GET", {}],
    ["DELETE", {}],
    ["POST", { "x-http-method-override": "GET" }],
    ["POST", { "x-http-method-override": "DELETE" }],
  ])("that reads or deletes takes a small body alone: %s %j", async (method, headers) => {
    const server = restServer(notesRoutes(threeNotes()), { limits });
    const request = { method, headers: { ...AS_EDITOR, ...headers }, body: large };
    const { status, json } = await ask(server, "/core/v2/notes/1", request);
    expect([status, json.code]).toEqual([413, "rest_body_too_large"]);
    expect(json.message).toContain("65536");
  });

  it("of somebody who is signed in may write a large body", async () => {
    const server = restServer(notesRoutes(threeNotes()), { limits });
    const answer = await ask(server, "/core/v2/notes", { method: "POST", headers: AS_EDITOR, body: large });
    expect(answer.status).toBe(201);
  });

  it("of nobody with a large body is told that it is not permitted", async () => {
    const server = restServer(notesRoutes(threeNotes()), { limits });
    const answer = await ask(server, "/core/v2/notes", { method: "POST", body: large });
    expect([answer.status, answer.json.code]).toEqual([401, "rest_cannot_edit"]);
  });

  it("is permitted before anything of it is sanitised", async () => {
    const log: string[] = [];
    const [row] = notesRoutes(threeNotes());
    const routes = [
      {
        ...row,
        endpoints: row?.endpoints.map((endpoint) => ({
          ...endpoint,
          args: {
            ...endpoint.args,
            title: {
              type: "string",
              sanitize: (value) => {
                log.push("sanitised");
                return value;
              },
            },
          },
        })),
      },
    ] as Parameters<typeof restServer>[0];
    const server = restServer(routes, { limits });
    const write = (headers: Readonly<Record<string, string>>) =>
      ask(server, "/core/v2/notes", { method: "POST", headers, body: { title: "x" } });
    expect((await write({})).status).toBe(401);
    expect(log).toEqual([]);
    expect((await write(AS_EDITOR)).status).toBe(201);
    expect(log).toEqual(["sanitised"]);
  });

  it("is refused for wrong arguments before it is for permission, as by WordPress", async () => {
    const server = restServer(notesRoutes(threeNotes()), { limits });
    const answer = await ask(server, "/core/v2/notes", { method: "POST", body: { title: "x", rank: -1 } });
    expect([answer.status, answer.json.code]).toEqual([400, "rest_invalid_param"]);
  });

  it.each(["_fields", "_embed"])("names a thousand members in %s at most", async (name) => {
    const server = restServer(notesRoutes(threeNotes()), { limits });
    const { status, json } = await ask(server, `/core/v2/notes?${name}=${"a".repeat(16_385)}`);
    expect([status, json.code, Object.keys(json.data.params)]).toEqual([400, "rest_invalid_param", [name]]);
  });
});

describe("a JSON body that is no object", () => {
  const site = contentSite();
  const as = `Basic ${Buffer.from("administrator:secret").toString("base64")}`;
  const paths = Object.entries(DOCUMENTS.content["paths"] as { [path: string]: JsonObject }).flatMap(
    ([path, item]) =>
      ["get", "post", "put", "patch", "delete"]
        .filter((method) => method in item)
        .map((method) => [method.toUpperCase(), path.replace(/\{\w+\}/g, "1")] as const),
  );

  it.each(paths)("is refused with 400 by %s %s", async (method, path) => {
    for (const text of ["[1]", '"x"', "1", "null"]) {
      const answer = await site.handle({
        method,
        path,
        query: "",
        headers: { "content-type": "application/json", authorization: as },
        body: Buffer.from(text),
        baseUrl: "http://localhost",
      });
      expect(answer?.status).toBe(400);
    }
  });

  it("is refused by every route of the webhook service that takes a body", async () => {
    const { call, create } = registrationApi();
    const { webhook } = await create();
    const routes = describedArguments(DOCUMENTS.webhooks).filter(({ place }) => place === "body");
    for (const { method, path } of routes) {
      const target = path
        .replace("{webhookId}", webhook.id)
        .replace("{deliveryId}", `${webhook.id}.${randomUUID()}`);
      for (const json of [[1], "x", 1, null]) {
        expect((await call(method.toUpperCase(), target, { json })).status).toBe(400);
      }
    }
  });

  it("is refused as the body of an item in a batch, as are headers that are no texts", async () => {
    const { body: post } = await site.request({
      method: "POST",
      path: "/core/v2/posts",
      body: { title: "x" },
      as: idOf("administrator"),
    });
    const path = `/core/v2/posts/${(post as { readonly id: number }).id}`;
    const batch = async (item: JsonObject) =>
      site.request({
        method: "POST",
        path: "/batch/v1",
        body: { requests: [{ path, ...item }] },
        as: idOf("administrator"),
      });
    const { status, body } = await batch({ body: [1] });
    expect(status).toBe(207);
    expect((body as unknown as { responses: JsonObject[] }).responses[0]).toMatchObject({ status: 400 });
    for (const headers of [{ a: 1 }, { a: true }, { a: { 0: "x" } }, { a: [1] }, [1]]) {
      expect((await batch({ headers })).status).toBe(400);
    }
    expect((await batch({ headers: { a: "x", b: ["y"] }, body: { title: "y" } })).body).toMatchObject({
      responses: [{ status: 200 }],
    });
  });
});
