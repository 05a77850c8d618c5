import { Validator } from "@seriousme/openapi-schema-validator";
import { describe, expect, it } from "vitest";
import type { JsonObject } from "../src/schema/types.js";
import { contentSite } from "./support/content-site.js";

const METHODS = ["get", "post", "put", "patch", "delete"];

describe("the OpenAPI document", () => {
  it("is valid", async () => {
    const { valid, errors } = await new Validator().validate(
      contentSite().openApi() as { [name: string]: unknown },
    );
    expect(errors).toBeUndefined();
    expect(valid).toBe(true);
  });

  it("holds every route and method of the index, and none besides", async () => {
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
    expect(described.sort()).toEqual(announced.sort());
    expect(described.length).toBeGreaterThan(60);
  });
});
