/** The files of the page: their size, their encodings, and how long a browser keeps them. */

import { createServer } from "node:http";
import { brotliCompressSync, brotliDecompressSync, gunzipSync } from "node:zlib";
import { script, style } from "virtual:portal-app";
import { describe, expect, it } from "vitest";
import { nodeAdapter } from "../../adapters/node.js";
import type { HttpResponse } from "../../src/http/types.js";
import { createPortal, type PortalOptions, portalTexts } from "../../src/portal/index.js";
import { manualClock } from "../../src/testing/manual-clock.js";
import { contentSite } from "../support/content-site.js";
import { listen } from "../support/hosts.js";
import { send } from "../support/http-client.js";
import { recordingLogger } from "../support/registration-api.js";

const portalOf = (changes: Partial<PortalOptions> = {}) =>
  createPortal({
    content: contentSite({ clock: manualClock(0) }),
    authorize: () => ({ name: "Ada", userId: 1 }),
    ...changes,
  });

type Headers = Readonly<Record<string, string>>;

/** Requests a path of a portal, which is mounted at the root. */
const ask =
  (portal = portalOf()) =>
  async (path: string, headers: Headers = {}, method = "GET"): Promise<HttpResponse | undefined> =>
    portal.handle({ method, path, query: "", headers, body: null, baseUrl: "https://host.example" });

/** The names of script and styles on the page, each with its leading slash. */
async function readNames(get: ReturnType<typeof ask>): Promise<readonly string[]> {
  const body = (await get("/"))?.body as string;
  return [...body.matchAll(/(?:src|href)="\.(\/(?:app|theme)[^"]+)"/g)].map(([, name = ""]) => name);
}

const encodingOf = (response: HttpResponse | undefined): unknown =>
  response?.headers["content-encoding"] ?? "identity";

it("the page of the portal stays under 75 kB compressed, with the texts of its language", () => {
  const measure = (text: string): number => brotliCompressSync(text).length;
  const texts = Object.values(portalTexts).map((table) => measure(JSON.stringify(table)));
  const bytes = measure(script) + measure(style) + Math.max(...texts);
  expect(bytes).toBeGreaterThan(10_000);
  expect(bytes).toBeLessThan(75_000);
});

describe("the names of the files", () => {
  it("change with their content, and a browser keeps what has such a name", async () => {
    const get = ask();
    const names = await readNames(get);
    expect(names.map((name) => name.replace(/-[\w-]{22}\./, "-HASH."))).toEqual([
      "/app-HASH.css",
      "/theme-HASH.css",
      "/app-HASH.js",
    ]);
    for (const name of names) {
      const response = await get(name);
      expect(response?.status).toBe(200);
      expect(response?.headers["cache-control"]).toBe("public, max-age=31536000, immutable");
    }
    const others = await readNames(ask(portalOf({ theme: { accent: "#7a1f5c", accentDark: "#f0a6d8" } })));
    expect(others.map((name, index) => name === names[index])).toEqual([true, false, true]);
  });

  it("with a slash at the end are no files: 404, and nothing in the log", async () => {
    const { logger, log } = recordingLogger();
    const get = ask(portalOf({ logger }));
    for (const name of ["/app.js", "/app.css", "/theme.css", "/favicon.svg", ...(await readNames(get))]) {
      const response = await get(`${name}/`);
      expect([name, response?.status, log]).toEqual([name, 404, []]);
    }
  });

  it("without a hash work as before, for a page that was opened with an older version", async () => {
    const get = ask();
    for (const name of ["/app.js", "/app.css", "/theme.css", "/favicon.svg"]) {
      const response = await get(name);
      expect([response?.status, response?.headers["cache-control"]]).toEqual([200, "no-cache"]);
    }
  });

  it("with the hash of another version give the present file, which nobody keeps", async () => {
    const get = ask();
    for (const [path, text] of [
      [`/app-${"0".repeat(22)}.js`, script],
      [`/app-${"-_".repeat(11)}.css`, style],
    ] as const) {
      const response = await get(path);
      expect(response?.body).toBe(text);
      expect(response?.headers["cache-control"]).toBe("no-cache");
    }
  });

  it.each([
    `/app-${"0".repeat(21)}.js`,
    `/app-${"0".repeat(23)}.js`,
    `/app-${"0".repeat(22)}.mjs`,
    `/__proto__-${"0".repeat(22)}.js`,
    `/constructor-${"0".repeat(22)}.js`,
    `/app-${"-".repeat(22)}.js/`.repeat(2),
    `/app-${"0".repeat(100_000)}.js`,
    `/app-..%2f..%2fetc%2fpasswd.js`,
    "/constructor",
    "/__proto__",
  ])("leave the host what is no file: %.40s", async (path) => {
    expect(await ask()(path)).toBeUndefined();
  });
});

describe("a compressed file", () => {
  it.each([
    ["gzip, deflate, br, zstd", "br"],
    ["gzip, deflate", "gzip"],
    ["GZIP", "gzip"],
    ["br;q=0.2, gzip;q=0.8", "gzip"],
    ["br;q=0.8;gzip", "identity"],
    ["br ; q=0.5,\tgzip\t;\tq=0.5", "br"],
    ["br;q=0, gzip;q=0.001", "gzip"],
    ["br;q=0, gzip;q=0", "identity"],
    ["br;q=0.5, identity", "identity"],
    ["*", "br"],
    ["*;q=0.1, br;q=0", "gzip"],
    ["*;q=0", "identity"],
    ["identity;q=0", "identity"],
    ["", "identity"],
    [",,, ,", "identity"],
    ["br;q=2, gzip;q=-1", "identity"],
    ["br;q=NaN, gzip;q=1e9", "identity"],
    ["br;q=0.5000", "identity"],
    ["bröt, \u0000br, br\u0000", "identity"],
    ["__proto__, constructor;q=1", "identity"],
    [`${"x".repeat(1_000_000)}, br`, "identity"],
    [`${"gzip, ".repeat(200_000)}br`, "identity"],
    [`br${" ".repeat(400)};q=1`, "identity"],
  ])("is chosen by Accept-Encoding: %.40j gives %s", async (accepted, expected) => {
    const response = await ask()("/app.js", { "accept-encoding": accepted });
    expect([response?.status, encodingOf(response)]).toEqual([200, expected]);
    expect(response?.headers["vary"]).toBe("accept-encoding");
  });

  it("is the same file, and smaller", async () => {
    const get = ask();
    for (const [path, text] of [
      ["/app.js", script],
      ["/app.css", style],
    ] as const) {
      const br = (await get(path, { "accept-encoding": "br" }))?.body as Uint8Array;
      const gzip = (await get(path, { "accept-encoding": "gzip" }))?.body as Uint8Array;
      expect(brotliDecompressSync(br).toString()).toBe(text);
      expect(gunzipSync(gzip).toString()).toBe(text);
      expect(br.length).toBeLessThan(gzip.length);
      expect(gzip.length).toBeLessThan(text.length / 2);
    }
  });

  it("is compressed once, for many requests at the same time too", async () => {
    const get = ask();
    const requests = Array.from({ length: 50 }, () => get("/app.js", { "accept-encoding": "br" }));
    const bodies = new Set((await Promise.all(requests)).map((response) => response?.body));
    bodies.add((await get("/app.js", { "accept-encoding": "gzip, br" }))?.body);
    expect(bodies.size).toBe(1);
  });

  it("has a tag of its own, so that no cache mixes it up with another encoding", async () => {
    const get = ask();
    const tags: string[] = [];
    for (const encoding of ["identity", "gzip", "br"]) {
      const tag = String((await get("/app.js", { "accept-encoding": encoding }))?.headers["etag"]);
      const again = await get("/app.js", { "accept-encoding": encoding, "if-none-match": `W/${tag}` });
      expect([again?.status, again?.body, encodingOf(again)]).toEqual([304, null, "identity"]);
      expect(again?.headers).toMatchObject({ etag: tag, vary: "accept-encoding" });
      tags.push(tag);
    }
    expect(new Set(tags).size).toBe(3);
    const other = await get("/app.js", { "accept-encoding": "br", "if-none-match": tags[1] ?? "" });
    expect(other?.status).toBe(200);
    const many = await get("/app.js", { "if-none-match": `${'"x", '.repeat(100_000)}"y"` });
    expect(many?.status).toBe(200);
  });

  it("is not made of a file that is too small to gain by it", async () => {
    const response = await ask()("/favicon.svg", { "accept-encoding": "br" });
    expect([encodingOf(response), response?.headers["vary"]]).toEqual(["identity", undefined]);
  });

  it("arrives over a socket with its length, which HEAD tells as well", async () => {
    const running = await listen(createServer(nodeAdapter(portalOf())));
    const headers = { "accept-encoding": "br" };
    const got = await send(running.origin, "/app.js", { headers });
    const head = await send(running.origin, "/app.js", { method: "HEAD", headers });
    await running.close();
    expect(got.headers["content-encoding"]).toBe("br");
    expect(head.headers["content-encoding"]).toBe("br");
    expect(head.headers["content-length"]).toBe(got.headers["content-length"]);
    expect(Number(head.headers["content-length"])).toBeLessThan(script.length / 2);
    expect(head.text).toBe("");
  });

  it("is asked for by nothing but GET and HEAD", async () => {
    for (const method of ["POST", "PUT", "DELETE"]) {
      const response = await ask()("/app.js", { "accept-encoding": "br" }, method);
      expect([response?.status, response?.headers["allow"]]).toEqual([405, "GET, HEAD, OPTIONS"]);
    }
  });
});
