import { describe, expect, it } from "vitest";
import type { JsonObject } from "../../../src/schema/types.js";
import { contentSite } from "../../support/content-site.js";
import { describedBy, textOf } from "../../support/described-answers.js";
import { objectionsTo } from "../../support/openapi-lint.js";

const METHODS = ["get", "post", "put", "patch", "delete"];
const PATH = "/openapi.json";

const at = (json: unknown, ...path: readonly string[]): unknown =>
  path.reduce<unknown>((value, name) => (value as JsonObject)[name], json);

const asked = (path: string, headers: { readonly [name: string]: string } = {}) => ({
  method: "GET",
  path,
  query: "",
  headers,
  body: null,
  baseUrl: "https://site.test/api",
});

describe("the OpenAPI document", () => {
  it.each(["core", "wp"])(
    "gives a linter and a validator nothing to object to, in the namespace %s",
    async (namespace) => {
      const document = contentSite({ namespace }).openApi({ baseUrl: "https://site.test/api" });
      expect(await objectionsTo(document)).toEqual([]);
    },
  );

  it("holds every route and method of the index, itself, and none besides", async () => {
    const site = contentSite();
    const { body } = await site.request({ method: "GET", path: "/", as: null });
    const { routes } = body as { readonly routes: JsonObject };
    const announced = Object.entries(routes).flatMap(([pattern, route]) => {
      const path = pattern.replace(/\(\?P<(\w+)>[^)]*\)/g, "{$1}");
      return ((route as JsonObject)["methods"] as readonly string[]).map((method) => `${method} ${path}`);
    });
    const { paths } = site.openApi() as { readonly paths: { readonly [path: string]: JsonObject } };
    const described = Object.entries(paths).flatMap(([path, item]) =>
      METHODS.filter((method) => method in item).map((method) => `${method.toUpperCase()} ${path}`),
    );
    expect(described.sort()).toEqual([...announced, `GET ${PATH}`].sort());
    expect(described.length).toBeGreaterThan(60);
  });

  it("is served to anybody, for the address it was asked at, and kept until it changes", async () => {
    const site = contentSite();
    const answer = await site.handle(asked(PATH));
    expect(answer?.status).toBe(200);
    expect(JSON.parse(textOf(answer?.body ?? null))).toEqual(
      site.openApi({ baseUrl: "https://site.test/api" }),
    );
    expect(answer?.headers["access-control-allow-origin"]).toBe("*");
    const again = await site.handle(asked(PATH, { "if-none-match": String(answer?.headers["etag"]) }));
    expect(again?.status).toBe(304);
    expect(again?.body).toBeNull();
  });

  it("has a schema for each context that holds what OPTIONS says the context shows", async () => {
    const site = contentSite();
    const { body } = await site.request({ method: "OPTIONS", path: "/core/v2/pages", as: null });
    const properties = at(body, "schema", "properties") as { readonly [name: string]: JsonObject };
    for (const context of ["view", "embed", "edit"]) {
      const shown = Object.keys(properties).filter((name) =>
        (at(properties, name, "context") as readonly string[]).includes(context),
      );
      const record = at(site.openApi(), "components", "schemas", `page.${context}`);
      expect(at(record, "required")).toEqual(shown);
      expect(Object.keys(at(record, "properties") as object)).toEqual([...shown, "_links", "_embedded"]);
      expect(at(record, "additionalProperties")).toBe(false);
    }
  });

  it("is compared with every answer: one that it does not describe is noticed", async () => {
    const site = contentSite();
    const { problems } = describedBy(site.openApi());
    const request = asked("/core/v2/categories");
    const answer = await site.handle(request);
    if (answer === undefined) throw new Error("There is no answer.");
    const [category] = JSON.parse(textOf(answer.body)) as readonly JsonObject[];
    const { name: _, ...nameless } = category as JsonObject;
    const { "x-wp-total": __, ...untold } = answer.headers;
    const of = (records: unknown, change = {}) => ({ ...answer, body: JSON.stringify(records), ...change });
    expect(problems(request, of([category]))).toEqual([]);
    const wrong = [
      of([nameless]),
      of([{ ...category, id: "1" }]),
      of([{ ...category, more: true }]),
      of(category),
      of([category], { headers: untold }),
      of([category], { headers: { ...answer.headers, "x-wp-total": "many" } }),
      of([category], { status: 201 }),
      of({ code: "rest_post_invalid_id", message: "" }, { status: 401 }),
    ];
    for (const response of wrong) expect(problems(request, response)).not.toEqual([]);
    expect(problems({ ...request, query: "context=embed" }, of([category]))).not.toEqual([]);
    expect(problems({ ...request, query: "_fields=id" }, of([{ id: 1 }]))).toEqual([]);
    expect(problems({ ...request, path: "/core/v2/unknown" }, of([]))).not.toEqual([]);
  });
});
