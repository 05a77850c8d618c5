import { createServer } from "node:http";
import { expect, it } from "vitest";
import { nodeAdapter } from "../../../adapters/node.js";
import { rewriteRestRoute } from "../../../src/content/hosting/rest-route.js";
import { contentSite, idOf } from "../../support/content-site.js";
import { listen } from "../../support/hosts.js";

const rewrite = (target: string): string | undefined => rewriteRestRoute(target, "/wp-json");

it.each([
  ["/?rest_route=/wp/v2/posts", "/wp-json/wp/v2/posts"],
  ["/?rest_route=/", "/wp-json/"],
  [
    "/index.php?rest_route=%2Fwp%2Fv2%2Fposts&page=2&_fields=id%2Clink",
    "/wp-json/wp/v2/posts?page=2&_fields=id%2Clink",
  ],
  ["/?page=2&rest_route=/wp/v2/posts", "/wp-json/wp/v2/posts?page=2"],
  // As in PHP, the last one counts.
  ["/?rest_route=/wp/v2/users&rest_route=/wp/v2/posts", "/wp-json/wp/v2/posts"],
  // The path is encoded again: nothing in it begins a query, a fragment or a header.
  ["/?rest_route=/wp/v2/types/a%3Fb%23c%0D%0Ad%2525+e", "/wp-json/wp/v2/types/a%3Fb%23c%0D%0Ad%2525%20e"],
])("rewrites %s", (target, expected) => {
  expect(rewrite(target)).toBe(expected);
});

it.each([
  "/",
  "/about",
  "/about?page=2",
  "/rest_route=/wp/v2/posts",
  "/?not_rest_route=/wp/v2/posts",
  "/?rest_route=",
  "/?rest_route=wp/v2/posts",
  "/?rest_route=%E0%A4%A",
  "/?rest_route=/\ud800",
  // Whoever resolves these would reach another path of the site.
  "/?rest_route=/../admin",
  "/?rest_route=/wp/v2/%2E%2E/..%2f../admin",
  "/?rest_route=/wp/v2/.",
])("leaves %s to the host", (target) => {
  expect(rewrite(target)).toBeUndefined();
});

it("takes time proportional to its input", () => {
  const parameter = "rest_route=/a&";
  expect(rewrite(`/?${parameter.repeat(100_000)}`)).toBe("/wp-json/a?");
});

it("answers as under the mounted path, for every method and with the same links", async () => {
  const content = contentSite();
  const { id } = (
    await content.request({
      method: "POST",
      path: "/core/v2/posts",
      body: { title: "A", status: "publish" },
      as: idOf("editor"),
    })
  ).body as { id: number };
  const adapter = nodeAdapter(content, { prefix: "/wp-json" });
  const server = await listen(
    createServer((request, response) => {
      request.url = rewriteRestRoute(request.url ?? "", "/wp-json") ?? request.url;
      adapter(request, response, () => response.writeHead(418).end());
    }),
  );
  const get = async (path: string, init?: RequestInit) => {
    const response = await fetch(server.origin + path, init);
    return { status: response.status, text: await response.text() };
  };
  expect(await get(`/?rest_route=/core/v2/posts/${id}&_fields=id,_links`)).toEqual(
    await get(`/wp-json/core/v2/posts/${id}?_fields=id,_links`),
  );
  expect(await get(`/?rest_route=/core/v2/posts/${id}`, { method: "DELETE" })).toMatchObject({ status: 401 });
  expect(await get("/?rest_route=/../wp-json/core/v2/posts")).not.toMatchObject({ status: 200 });
  expect(await get("/")).toMatchObject({ status: 418 });
  await server.close();
});
