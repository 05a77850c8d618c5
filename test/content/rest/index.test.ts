import { describe, expect, it } from "vitest";
import { describeContentOpenApi } from "../../../src/content/rest/openapi.js";
import { AS_EDITOR, ask, BASE, notesRoutes, restServer, threeNotes } from "../../support/rest-host.js";

const routes = notesRoutes(threeNotes());
const server = restServer([
  ...routes,
  {
    namespace: "oembed/1.0",
    path: "/embed",
    endpoints: [
      {
        methods: ["GET"],
        args: { url: { type: "string", format: "uri", required: true } },
        permit: () => {},
        handle: () => ({ status: 200, headers: {}, body: { json: {} } }),
      },
    ],
  },
]);

describe("the index", () => {
  it("says what the site is, its namespaces and every route with methods and arguments", async () => {
    const { json, headers } = await ask(server, "/");
    expect(headers["allow"]).toBe("GET");
    expect(json).toMatchObject({
      name: "Clinic",
      namespaces: ["core/v2", "oembed/1.0"],
      authentication: [],
      _links: { self: [{ href: `${BASE}/` }] },
    });
    expect(Object.keys(json.routes)).toEqual([
      "/",
      "/batch/v1",
      "/core/v2",
      "/core/v2/notes",
      "/core/v2/notes/(?P<id>[\\d]+)",
      "/core/v2/notes/(?P<parent>[\\d]+)/drafts/(?P<id>[\\d]+)",
      "/core/v2/authors/(?P<id>[\\d]+)",
      "/core/v2/tags",
      "/core/v2/kinds/(?P<kind>[\\w-]+)",
      "/core/v2/kinds/all",
      "/core/v2/crash",
      "/oembed/1.0",
      "/oembed/1.0/embed",
    ]);
    expect(json.routes["/core/v2/notes"]).toMatchObject({
      namespace: "core/v2",
      methods: ["GET", "POST"],
      endpoints: [
        { methods: ["GET"], allow_batch: { v1: true }, args: { per_page: { type: "integer", default: 10 } } },
        { methods: ["POST"], allow_batch: { v1: true }, args: { title: { type: "string", required: true } } },
      ],
      _links: { self: [{ href: `${BASE}/core/v2/notes` }] },
    });
    const item = json.routes["/core/v2/notes/(?P<id>[\\d]+)"];
    expect(item.methods).toEqual(["GET", "POST", "PUT", "PATCH", "DELETE"]);
    expect(item).not.toHaveProperty("_links");
    expect(item).not.toHaveProperty("schema");
    expect(json.routes["/core/v2/tags"].endpoints[0]).not.toHaveProperty("allow_batch");
    expect(json.routes["/batch/v1"]).toMatchObject({ namespace: "", methods: ["POST"] });
    expect(json.routes["/batch/v1"].endpoints[0].args.requests.maxItems).toBe(25);
  });

  it("takes any context, and only GET", async () => {
    expect((await ask(server, "/?context=bogus")).status).toBe(200);
    expect((await ask(server, "/?_fields=namespaces")).json).toEqual({
      namespaces: ["core/v2", "oembed/1.0"],
    });
    expect((await ask(server, "/", { method: "HEAD" })).text).toBe("");
    expect((await ask(server, "/", { method: "DELETE", headers: AS_EDITOR })).status).toBe(404);
  });

  it("describes the namespace that the argument names, whatever the path, and keeps its links", async () => {
    const { json } = await ask(server, "/core/v2?namespace=oembed/1.0&_fields=namespace");
    expect(json).toEqual({
      namespace: "oembed/1.0",
      _links: { up: [{ href: "https://site.example/api/" }] },
    });
    const unknown = await ask(server, "/core/v2?namespace=__proto__");
    expect([unknown.status, unknown.json.code]).toEqual([404, "rest_invalid_namespace"]);
  });

  it("has a part for each namespace", async () => {
    for (const target of ["/oembed/1.0", "/oembed/1.0/"]) {
      const { json } = await ask(server, target);
      expect(Object.keys(json)).toEqual(["namespace", "routes", "_links"]);
      expect(Object.keys(json.routes)).toEqual(["/oembed/1.0", "/oembed/1.0/embed"]);
      expect(json.routes["/oembed/1.0"].endpoints[0].args).toMatchObject({
        namespace: { default: "oembed/1.0" },
        context: { default: "view" },
      });
    }
    expect((await ask(server, "/core")).status).toBe(404);
  });
});

describe("the table", () => {
  it("holds what the server adds to it", () => {
    const paths = server.routes.map(({ namespace, path }) => `${namespace} ${path}`);
    expect(paths).toEqual(expect.arrayContaining([" /", " /batch/v1", "core/v2 ", "core/v2 /notes"]));
  });
});

describe("OPTIONS", () => {
  const options = (target: string, headers = {}) => ask(server, target, { method: "OPTIONS", headers });

  it("describes the path, and allows what this caller may do there", async () => {
    const list = await options("/core/v2/notes");
    expect(list.status).toBe(200);
    expect(list.headers["allow"]).toBe("GET");
    expect(list.json).toMatchObject({
      namespace: "core/v2",
      methods: ["GET", "POST"],
      schema: { $schema: "http://json-schema.org/draft-04/schema#", title: "note" },
      _links: { self: [{ href: `${BASE}/core/v2/notes` }] },
    });
    const item = await options("/core/v2/notes/1", AS_EDITOR);
    expect(item.headers["allow"]).toBe("GET, POST, PUT, PATCH, DELETE");
    expect(Object.keys(item.json)).toEqual(["namespace", "methods", "endpoints"]);
    const unknown = await options("/core/v2/notes/99", AS_EDITOR);
    expect([unknown.status, unknown.headers["allow"]]).toEqual([200, undefined]);
    expect(Object.keys((await options("/")).json)).toEqual(["namespace", "methods", "endpoints", "_links"]);
  });

  it("of a path that does not exist is an empty list", async () => {
    const { status, json, headers } = await options("/core/v2/nothing");
    expect([status, json, headers["allow"]]).toEqual([200, [], undefined]);
  });
});

describe("the OpenAPI document", () => {
  const document: ReturnType<typeof JSON.parse> = describeContentOpenApi(
    [
      ...routes,
      {
        namespace: "core/v2",
        path: "/things/:id/edit",
        endpoints: [
          {
            methods: ["POST"],
            args: {
              id: { type: "integer" },
              rotation: {
                type: "integer",
                minimum: 0,
                maximum: 360,
                exclusiveMinimum: true,
                exclusiveMaximum: true,
              },
              steps: {
                type: "array",
                required: true,
                items: {
                  type: "object",
                  properties: {
                    kind: { type: "string", required: true },
                    note: { type: "string", readonly: true },
                  },
                },
              },
            },
            permit: () => {},
            handle: () => ({ status: 200, headers: {}, body: { json: {} } }),
          },
        ],
        schema: { title: "note", type: "object", properties: {} },
      },
    ],
    { title: "Clinic", baseUrl: "https://clinic.test" },
  );

  it("has every path with its parameters, methods and answers", () => {
    expect(document.openapi).toBe("3.1.0");
    expect(document.info).toMatchObject({ title: "Clinic", version: expect.any(String) });
    expect(document.servers).toEqual([{ url: "https://clinic.test" }]);
    expect(Object.keys(document.paths)).toContain("/core/v2/notes/{parent}/drafts/{id}");
    const item = document.paths["/core/v2/notes/{id}"];
    expect(Object.keys(item)).toEqual(["parameters", "get", "post", "put", "patch", "delete"]);
    expect(item.parameters).toEqual([
      { name: "id", in: "path", required: true, schema: { type: "integer", minimum: 0 } },
    ]);
    expect(document.paths["/core/v2/kinds/{kind}"].parameters[0].schema).toEqual({
      type: "string",
      pattern: "^[\\w-]+$",
      maxLength: 200,
    });
    expect(item.delete.parameters).toEqual([
      {
        name: "force",
        in: "query",
        required: false,
        style: "form",
        explode: false,
        schema: { type: "boolean", default: false },
      },
      { $ref: "#/components/parameters/Fields" },
    ]);
    const list = document.paths["/core/v2/notes"].get;
    expect(list.responses["200"].content["application/json"].schema).toEqual({
      type: "array",
      items: { $ref: "#/components/schemas/note" },
    });
    expect(list.responses["400"]).toEqual({ $ref: "#/components/responses/Error400" });
  });

  it("speaks JSON Schema 2020-12", () => {
    const { requestBody } = document.paths["/core/v2/things/{id}/edit"].post;
    expect(requestBody.required).toBe(true);
    expect(requestBody.content["application/json"].schema).toEqual({
      type: "object",
      required: ["steps"],
      properties: {
        rotation: { type: "integer", exclusiveMinimum: 0, exclusiveMaximum: 360 },
        steps: {
          type: "array",
          items: {
            type: "object",
            required: ["kind"],
            properties: { kind: { type: "string" }, note: { type: "string", readOnly: true } },
          },
        },
      },
    });
  });

  it("refers to nothing that is not there, and names no operation twice", () => {
    const text = JSON.stringify(document);
    for (const [, kind = "", name = ""] of text.matchAll(/"#\/components\/(\w+)\/([^"]+)"/g)) {
      expect(Object.keys(document.components[kind])).toContain(name);
    }
    expect(Object.keys(document.components.schemas)).toEqual(
      expect.arrayContaining(["Error", "note", "note.view", "note.edit", "note-2.edit"]),
    );
    const ids = [...text.matchAll(/"operationId":"([^"]+)"/g)].map(([, id]) => id);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.length).toBeGreaterThan(8);
  });
});
