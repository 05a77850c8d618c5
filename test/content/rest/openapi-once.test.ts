/**
 * A document or an answer that depends on nothing a client sent is built once, whatever the query
 * and the `Host` header say.
 */

import { describe, expect, it, vi } from "vitest";
import { cacheDocument } from "../../../src/http/openapi-document.js";
import type { JsonObject } from "../../../src/schema/types.js";
import { contentSite } from "../../support/content-site.js";
import { registrationApi } from "../../support/registration-api.js";
import { ask, BASE, httpRequest, notesRoutes, restServer, threeNotes } from "../../support/rest-host.js";

describe("an OpenAPI document", () => {
  it("is built once, and names the base URL that was asked for", () => {
    const build = vi.fn<() => JsonObject>(() => ({ openapi: "3.1.0", servers: [], paths: {} }));
    const document = cacheDocument(build);
    expect(document("https://a.example")).toEqual({
      openapi: "3.1.0",
      servers: [{ url: "https://a.example" }],
      paths: {},
    });
    expect(document("https://b.example")["servers"]).toEqual([{ url: "https://b.example" }]);
    expect(build).toHaveBeenCalledOnce();
  });

  it("that a host changes stays as it is for others", () => {
    for (const service of [contentSite(), registrationApi().webhooks]) {
      const mine = service.openApi() as { paths: { [path: string]: unknown } };
      for (const path of Object.keys(mine.paths)) delete mine.paths[path];
      expect(Object.keys(service.openApi()["paths"] as object).length).toBeGreaterThan(5);
    }
  });
});

describe("a cached answer", () => {
  const limits = { requestBytes: 10_000, cacheBytes: 1_000_000 };
  const reads = async (targets: readonly string[]): Promise<number> => {
    const log: string[] = [];
    const server = restServer(notesRoutes(threeNotes(), log), { limits });
    for (const target of targets) expect((await ask(server, target)).status).toBe(200);
    return log.length;
  };

  it("is the same whatever names the route does not know", async () => {
    const targets = Array.from({ length: 50 }, (_, at) => `/core/v2/notes?x=${at}&context=view&y[]=${at}`);
    expect(await reads(targets)).toBe(1);
    expect(await reads(["/core/v2/notes", "/core/v2/notes/", "/core/v2/%6Eotes", "/core/v2/notes?x"])).toBe(
      1,
    );
  });

  it("is another one for each value of a name that the route knows", async () => {
    const targets = ["?per_page=1", "?per_page=2", "?_fields=id", "?context=embed", ""];
    expect(await reads(targets.map((query) => `/core/v2/notes${query}`))).toBe(5);
  });

  it("has no link that repeats what one client sent", async () => {
    const site = contentSite();
    for (const title of ["One", "Two"]) {
      await site.request({
        method: "POST",
        path: "/core/v2/posts",
        body: { title, status: "publish" },
        as: 1,
      });
    }
    const link = async (query: string): Promise<string> => {
      const request = httpRequest(`/core/v2/posts?per_page=1&${query}`);
      return (await site.handle(request))?.headers["link"] as string;
    };
    expect(await link("x=secret")).toContain(`<${BASE}/core/v2/posts?per_page=1&page=2>; rel="next"`);
    expect(await link("order=asc")).toContain("order=asc");
  });
});
