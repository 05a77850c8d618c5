/**
 * The content service responds alike in every host: requests that frameworks like to treat in
 * their own way get the same response through each adapter as through node:http.
 */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { manualClock } from "../../src/testing/manual-clock.js";
import { memoryFiles } from "../../storage/files/index.js";
import type { RunningHost } from "../contracts/adapter.js";
import { contentSite, credentials } from "../support/content-site.js";
import { HOSTS } from "../support/hosts.js";
import { type Sent, send } from "../support/http-client.js";

const PREFIX = "/api";
const AS_EDITOR = { authorization: credentials("editor") };
const JSON_TYPE = { "content-type": "application/json" };
const CHUNKED = { "transfer-encoding": "chunked" };
const NAMED = { "content-disposition": 'attachment; filename="a.txt"' };

const post = (headers: Sent["headers"], body?: string): Sent => ({
  method: "POST",
  headers: { ...AS_EDITOR, ...headers },
  ...(body !== undefined && { body }),
});

const POSTS = "/core/v2/posts";
const MEDIA = "/core/v2/media";

/** Requests that no host may treat in its own way, by a short name. */
const REQUESTS: readonly (readonly [what: string, path: string, sent?: Sent])[] = [
  ["an upload", MEDIA, post({ ...NAMED, "content-type": "text/plain" }, "hello")],
  ["an upload without a type", MEDIA, post(NAMED, "hello")],
  ["an upload of unknown length without a type", MEDIA, post({ ...NAMED, ...CHUNKED }, "hello")],
  ["an upload with an empty type", MEDIA, post({ ...NAMED, "content-type": "" }, "hello")],
  ["an upload with half a type", MEDIA, post({ ...NAMED, "content-type": "text" }, "hello")],
  ["an upload with two types", MEDIA, post({ ...NAMED, "content-type": "text/plain, a/b" }, "hello")],
  ["a compressed upload", MEDIA, post({ ...NAMED, "content-type": "a/b", "content-encoding": "br" }, "x")],
  ["an upload larger than a framework's limit", MEDIA, post(NAMED, "x".repeat(2_000_000))],
  ["an upload without a body", MEDIA, post({})],
  ["an upload of length 0", MEDIA, post({}, "")],
  ["an empty upload of unknown length", MEDIA, post(CHUNKED, "")],
  ["an upload of JSON", MEDIA, post(JSON_TYPE, "{}")],
  ["an upload of JSON of unknown length", MEDIA, post({ ...JSON_TYPE, ...CHUNKED }, "{}")],
  ["a form without a boundary", MEDIA, post({ "content-type": "multipart/form-data" }, "hello")],
  ["an anonymous upload", MEDIA, { method: "POST", headers: NAMED, body: "hello" }],
  ["JSON without a type", POSTS, post({}, '{"title":"a"}')],
  ["an empty JSON body", POSTS, post(JSON_TYPE, "")],
  ["half of JSON", POSTS, post(JSON_TYPE, "{")],
  ["JSON null", POSTS, post(JSON_TYPE, "null")],
  ["JSON in Latin 1", POSTS, post({ "content-type": "application/json; charset=latin1" }, "{}")],
  ["JSON of a vendor", POSTS, post({ "content-type": "application/x+json" }, '{"status":"none"}')],
  ["a type in capitals", POSTS, post({ "Content-Type": "APPLICATION/JSON" }, '{"status":"none"}')],
  ["a member __proto__", POSTS, post(JSON_TYPE, '{"__proto__":{"a":1},"title":"a"}')],
  ["a body larger than a framework's limit", POSTS, post(JSON_TYPE, `{"slug":"${"x".repeat(1_500_000)}"}`)],
  ["a form", POSTS, post({ "content-type": "application/x-www-form-urlencoded" }, "title=a&status=none")],
  ["XML", POSTS, post({ "content-type": "text/xml" }, "<a/>")],
  ["DELETE with a body", `${POSTS}/9`, { ...post(JSON_TYPE, '{"force":true}'), method: "DELETE" }],
  ["DELETE with an unknown type", `${POSTS}/9`, { ...post({ "content-type": "zz" }, "x"), method: "DELETE" }],
  ["GET with half a type", POSTS, { headers: { "content-type": "zz" } }],
  ["HEAD", POSTS, { method: "HEAD" }],
  ["HEAD of nothing", "/core/v2/none", { method: "HEAD" }],
  ["OPTIONS", POSTS, { method: "OPTIONS" }],
  ["OPTIONS with a body", POSTS, { method: "OPTIONS", headers: { "content-type": "zz" }, body: "{}" }],
  [
    "a preflight",
    POSTS,
    { method: "OPTIONS", headers: { origin: "https://a.example", "access-control-request-method": "PUT" } },
  ],
  ["a method of HTTP that the path lacks", POSTS, { method: "PUT", headers: AS_EDITOR }],
  ["a method override", `${POSTS}/9`, post({ "X-HTTP-Method-Override": "DELETE" })],
  ["a repeated header", POSTS, { headers: { authorization: ["x", credentials("editor")] } }],
  ["a condition", "/core/v2/statuses", { headers: { "if-none-match": "*" } }],
  ["a range", POSTS, { headers: { range: "bytes=0-3" } }],
  ["a type that is not acceptable", POSTS, { headers: { accept: "text/xml" } }],
  [
    "headers of a proxy",
    "/core/v2/types/post",
    { headers: { "x-forwarded-host": "evil.example", "x-forwarded-proto": "https" } },
  ],
  ["the root", ""],
  ["the root with a slash", "/"],
  ["the root with a query", "?_fields=name"],
  ["a trailing slash", `${POSTS}/`],
  ["two trailing slashes", `${POSTS}//`],
  ["a double slash", "/core/v2//posts"],
  ["a double slash at the mount point", "//core/v2/posts"],
  ["another case of the namespace", "/CORE/v2/posts"],
  ["an encoded letter", "/core/v2/n%6Fne"],
  ["an encoded slash", "/core%2Fv2/posts"],
  ["an encoded NUL", `${POSTS}%00`],
  ["a matrix parameter", `${POSTS};a=b`],
  ["a long segment", `${POSTS}/${"1".repeat(500)}`],
  ["a query that cannot be decoded", `${POSTS}?search=%zz`],
  ["a repeated parameter", `${POSTS}?per_page=0&per_page=1`],
  ["a list in the query", `${POSTS}?include[]=1&include[]=x`],
  ["a query with a question mark", `${POSTS}??per_page=0`],
  ["an empty query", `${POSTS}?`],
  ["a script", `${POSTS}?_jsonp=show`],
  ["an envelope", `${POSTS}?_envelope`],
];

/** Headers that the connection or the framework adds. */
const OF_THE_HOST = new Set(["date", "connection", "keep-alive", "x-powered-by", "transfer-encoding"]);

interface SameHost {
  readonly name: string;
  readonly ask: (path: string, sent?: Sent) => Promise<unknown>;
}

describe("every host responds like node:http to", () => {
  let running: readonly RunningHost[];
  let hosts: readonly SameHost[];

  beforeAll(async () => {
    running = await Promise.all(
      HOSTS.map(({ mount }) => {
        const options = { files: memoryFiles(), clock: manualClock(Date.UTC(2026, 10, 23)) };
        const service = contentSite({ ...options, unknownPaths: "answer" });
        return mount({ service, prefix: PREFIX, parser: "none" });
      }),
    );
    hosts = HOSTS.map(({ name }, at) => ({
      name,
      async ask(path, sent = {}) {
        const headers = { host: "site.example", ...sent.headers };
        const reply = await send(running[at]?.origin ?? "", PREFIX + path, { ...sent, headers });
        const shown = Object.entries(reply.headers).filter(([header]) => !OF_THE_HOST.has(header));
        // A fetch host streams, so its responses have no length.
        const kept = shown.filter(([header]) => header !== "content-length" || name !== "fetch");
        return { status: reply.status, headers: Object.fromEntries(kept), text: reply.text };
      },
    }));
  });
  afterAll(() => Promise.all(running.map((host) => host.close())));

  it.each(REQUESTS.map(([what, path, sent = {}]) => [what, path, sent] as const))(
    "%s",
    async (_, path, sent) => {
      const [expected, ...others] = await Promise.all(
        hosts
          .toSorted((a, b) => Number(b.name === "node:http") - Number(a.name === "node:http"))
          .map(async ({ name, ask }) => ({ name, response: await ask(path, sent) })),
      );
      expect(expected?.name).toBe("node:http");
      for (const { name, response } of others) {
        const wanted = expected?.response as { headers: Record<string, unknown> };
        const { "content-length": _length, ...headers } = wanted.headers;
        expect({ name, response }).toEqual({
          name,
          response: name === "fetch" ? { ...wanted, headers } : wanted,
        });
      }
    },
  );
});
