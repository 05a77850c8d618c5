import { createServer } from "node:http";
import { afterEach, describe, expect, it } from "vitest";
import { nodeAdapter } from "../../adapters/node.js";
import type { ContentOptions } from "../../src/content/options.js";
import { memoryFiles } from "../../storage/files/index.js";
import type { RunningHost } from "../contracts/adapter.js";
import { contentSite, credentials } from "../support/content-site.js";
import { listen } from "../support/hosts.js";
import { type Reply, send } from "../support/http-client.js";

const EDITOR = "https://editor.example.org";
const OTHER = "https://other.example.org";

const hosts: RunningHost[] = [];
afterEach(async () => {
  await Promise.all(hosts.splice(0).map((host) => host.close()));
});

async function originWith(cors: ContentOptions["cors"] = { origins: [EDITOR] }): Promise<string> {
  const host = await listen(createServer(nodeAdapter(contentSite({ cors, files: memoryFiles() }))));
  hosts.push(host);
  return host.origin;
}

interface PageRequest {
  readonly origin: string;
  readonly method: string;
  readonly path: string;
  readonly headers?: Record<string, string>;
  readonly body?: string;
}

const SAFE_METHODS = ["GET", "HEAD", "POST"];
const SAFE_HEADERS = ["accept"];

const listOf = (value = ""): string[] => value.split(/, ?/);

/**
 * Sends a request as a browser does for a page that includes credentials: after a preflight, and
 * only if that allows its method and each of its headers. Resolves with what the page may read.
 */
async function fetchAsPage(server: string, request: PageRequest): Promise<Reply | "refused"> {
  const { origin, method, path, headers = {}, body } = request;
  const names = Object.keys(headers).map((name) => name.toLowerCase());
  const preflight = await send(server, path, {
    method: "OPTIONS",
    headers: {
      origin,
      "access-control-request-method": method,
      "access-control-request-headers": names.sort().join(","),
    },
  });
  expect(preflight.status).toBe(204);
  const allowedMethods = [...SAFE_METHODS, ...listOf(preflight.headers["access-control-allow-methods"])];
  const allowedHeaders = [
    ...SAFE_HEADERS,
    ...listOf(preflight.headers["access-control-allow-headers"]).map((name) => name.toLowerCase()),
  ];
  const isReadable = (reply: Reply): boolean =>
    reply.headers["access-control-allow-origin"] === origin &&
    reply.headers["access-control-allow-credentials"] === "true";
  if (!isReadable(preflight) || !allowedMethods.includes(method)) return "refused";
  if (!names.every((name) => allowedHeaders.includes(name))) return "refused";
  const reply = await send(server, path, {
    method,
    headers: { origin, ...headers },
    ...(body === undefined ? {} : { body }),
  });
  return isReadable(reply) ? reply : "refused";
}

const json = { "content-type": "application/json", accept: "application/json, */*;q=0.1" };
const signedIn = { authorization: credentials("administrator"), "x-wp-nonce": "n" };

describe("an editor on a listed origin", () => {
  it("reads, creates, updates through an override, uploads and deletes", async () => {
    const server = await originWith();
    const page = async (request: Omit<PageRequest, "origin">): Promise<Reply> => {
      const reply = await fetchAsPage(server, { origin: EDITOR, ...request });
      if (reply === "refused") throw new Error(`${request.method} ${request.path} was refused`);
      return reply;
    };
    const created = await page({
      method: "POST",
      path: "/core/v2/posts",
      headers: { ...json, ...signedIn },
      body: JSON.stringify({ title: "One", status: "publish" }),
    });
    expect(created.status).toBe(201);
    const { id, modified_gmt: modified } = created.json as { id: number; modified_gmt: string };
    const path = `/core/v2/posts/${id}`;
    const unmodified = new Date(`${modified}Z`).toUTCString();
    const overridden = await page({
      method: "POST",
      path,
      headers: {
        ...json,
        ...signedIn,
        "x-http-method-override": "PUT",
        "if-unmodified-since": unmodified,
      },
      body: JSON.stringify({ title: "Two" }),
    });
    expect([overridden.status, (overridden.json as { title: { raw: string } }).title.raw]).toEqual([
      200,
      "Two",
    ]);
    const uploaded = await page({
      method: "POST",
      path: "/core/v2/media",
      headers: {
        ...signedIn,
        "content-type": "text/plain",
        "content-disposition": "attachment; filename=a.txt",
        "content-md5": "5d41402abc4b2a76b9719d911017c592",
      },
      body: "hello",
    });
    expect(uploaded.status).toBe(201);
    for (const method of ["PUT", "PATCH", "DELETE"]) {
      const reply = await page({ method, path, headers: { ...json, ...signedIn }, body: "{}" });
      expect([method, reply.status]).toEqual([method, 200]);
    }
  });

  it("reads what it may do, and where and when to go on", async () => {
    const server = await originWith();
    const reply = await fetchAsPage(server, {
      origin: EDITOR,
      method: "GET",
      path: "/core/v2/posts",
      headers: signedIn,
    });
    if (reply === "refused") throw new Error("The page may not read");
    const exposed = listOf(reply.headers["access-control-expose-headers"]);
    expect(exposed).toEqual(["X-WP-Total", "X-WP-TotalPages", "Link", "Allow", "Location", "Retry-After"]);
    expect(reply.headers.allow).toBe("GET, POST");
  });

  it("may send the headers that the host adds, and no others", async () => {
    const request = { origin: EDITOR, method: "GET", path: "/core/v2/posts" };
    const withTenant = { ...request, headers: { "x-tenant": "north" } };
    expect(await fetchAsPage(await originWith(), withTenant)).toBe("refused");
    const server = await originWith({ origins: [EDITOR], allowedHeaders: ["X-Tenant", "traceparent"] });
    expect(await fetchAsPage(server, withTenant)).toMatchObject({ status: 200 });
    expect(
      await fetchAsPage(server, { ...request, headers: { ...signedIn, traceparent: "00" } }),
    ).toMatchObject({
      status: 200,
    });
    expect(await fetchAsPage(server, { ...request, headers: { "x-other": "1" } })).toBe("refused");
  });

  it("is the only one that may", async () => {
    const server = await originWith({ origins: [EDITOR], allowedHeaders: ["X-Tenant"] });
    for (const origin of [OTHER, "null"]) {
      for (const headers of [{}, signedIn, { "x-http-method-override": "DELETE" }, { "x-tenant": "north" }]) {
        for (const method of ["GET", "POST", "DELETE"]) {
          expect(await fetchAsPage(server, { origin, method, path: "/core/v2/posts", headers })).toBe(
            "refused",
          );
        }
      }
    }
  });
});

describe("cors.allowedHeaders", () => {
  it.each([
    ["X-Tenant"],
    [["X Tenant"]],
    [["X-Tenant, Cookie"]],
    [["X-Tenant\r\nSet-Cookie"]],
    [["*"]],
    [[""]],
    [["x".repeat(101)]],
    [[7]],
    [Array(101).fill("X-Tenant")],
  ])("must be a bounded list of names of headers: %j", (allowedHeaders) => {
    expect(() =>
      contentSite({ cors: { origins: [EDITOR], allowedHeaders: allowedHeaders as never } }),
    ).toThrow("cors.allowedHeaders must be a list of at most 100 names of headers");
  });
});
