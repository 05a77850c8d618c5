import { Readable } from "node:stream";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { HttpError } from "../../src/http/errors.js";
import { createRouter, type PathParameter, type Route } from "../../src/http/router.js";
import type { HttpRequest, HttpResponse } from "../../src/http/types.js";

const request = (method: string, path: string): HttpRequest => ({
  method,
  path,
  query: "",
  headers: {},
  body: null,
  baseUrl: "http://127.0.0.1",
});

const text = (body: string): HttpResponse => ({ status: 200, headers: {}, body });

const row = (
  method: string,
  path: string,
  answer: (parameter: PathParameter) => HttpResponse,
): Route<PathParameter> => ({ method, path, handle: async (parameter) => answer(parameter) });

function router(routes: readonly Route<PathParameter>[]) {
  return createRouter(routes, {
    context: (_request, parameter) => parameter,
    onError: (error) =>
      error instanceof HttpError
        ? { status: error.status, headers: error.headers, body: error.code }
        : { status: 500, headers: {}, body: String(error) },
  });
}

const things = router([
  row("GET", "/things", () => text("list")),
  row("POST", "/things", () => text("create")),
  row("GET", "/things/mine", () => text("mine")),
  row("GET", "/things/:thing", (parameter) => text(parameter("thing"))),
  row("DELETE", "/things/:thing", () => text("removed")),
  row("GET", "/things/:thing/parts/:part", (p) => text(`${p("thing")} ${p("part")}`)),
]);

const bodyOf = async (method: string, path: string): Promise<HttpResponse["body"] | undefined> =>
  (await things(request(method, path)))?.body;

describe("the router", () => {
  it("finds the row for a method and a path and gives it the parameters", async () => {
    expect(await bodyOf("GET", "/things")).toBe("list");
    expect(await bodyOf("POST", "/things")).toBe("create");
    expect(await bodyOf("GET", "/things/7")).toBe("7");
    expect(await bodyOf("GET", "/things/7/parts/x.y")).toBe("7 x.y");
  });

  it("lets the first path that fits decide, whatever its methods", async () => {
    expect(await bodyOf("GET", "/things/mine")).toBe("mine");
    expect((await things(request("DELETE", "/things/mine")))?.status).toBe(405);
  });

  it("tolerates one trailing slash, not two, and no empty parameter", async () => {
    expect(await bodyOf("GET", "/things/")).toBe("list");
    expect(await bodyOf("GET", "/things/7/")).toBe("7");
    for (const path of ["/things//", "//things", "/things//parts/1", "/things/7//parts/1"]) {
      expect([path, await bodyOf("GET", path)]).toEqual([path, undefined]);
    }
  });

  it("says nothing about a path that is not in the table", async () => {
    for (const path of ["/", "", "/thing", "/THINGS", "/things/1/parts", "/x/things", "*", "/%74hings"]) {
      expect([path, await things(request("GET", path))]).toEqual([path, undefined]);
    }
  });

  it("decodes a parameter once, and keeps one that does not decode", async () => {
    expect(await bodyOf("GET", "/things/a%2Fb%20%C3%A9")).toBe("a/b é");
    expect(await bodyOf("GET", "/things/%2525")).toBe("%25");
    expect(await bodyOf("GET", "/things/%zz%C3")).toBe("%zz%C3");
  });

  it("gives back any name that a client encodes, and answers any path without an error", async () => {
    const name = fc.string({ unit: "binary", minLength: 1 });
    await fc.assert(
      fc.asyncProperty(name, async (given) => {
        expect(await bodyOf("GET", `/things/${encodeURIComponent(given)}/parts/x`)).toBe(`${given} x`);
      }),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom("/", "things", "%", ":thing", "..", "parts", "%41")),
        async (parts) => {
          const status = (await things(request("GET", parts.join(""))))?.status;
          expect([undefined, 200]).toContain(status);
        },
      ),
    );
  });

  it("answers another method on a known path with 405 and what is allowed", async () => {
    const refused = await things(request("PUT", "/things/7"));
    expect(refused).toMatchObject({ status: 405, body: "method_not_allowed" });
    expect(refused?.headers["allow"]).toBe("GET, HEAD, DELETE, OPTIONS");
  });

  it("answers OPTIONS with 204 and what is allowed, unless a row does", async () => {
    expect(await things(request("OPTIONS", "/things"))).toEqual({
      status: 204,
      headers: { allow: "GET, HEAD, POST, OPTIONS" },
      body: null,
    });
    const own = router([row("OPTIONS", "/a", () => text("described"))]);
    expect(await own(request("OPTIONS", "/a"))).toMatchObject({ status: 200, body: "described" });
  });

  it("answers HEAD by the GET row: its head with the length in bytes, no body", async () => {
    const pages = router([
      row("GET", "/text", () => ({ status: 201, headers: { "x-a": "1" }, body: "é" })),
      row("GET", "/bytes", () => ({ status: 200, headers: {}, body: new Uint8Array(3) })),
      row("GET", "/known", () => ({ status: 200, headers: { "content-length": "99" }, body: "x" })),
      row("GET", "/none", () => ({ status: 204, headers: {}, body: null })),
      row("POST", "/post", () => text("posted")),
    ]);
    const head = (path: string) => pages(request("HEAD", path));
    expect(await head("/text")).toEqual({
      status: 201,
      headers: { "x-a": "1", "content-length": "2" },
      body: null,
    });
    expect(await head("/bytes")).toMatchObject({ headers: { "content-length": "3" }, body: null });
    expect(await head("/known")).toMatchObject({ headers: { "content-length": "99" }, body: null });
    expect(await head("/none")).toEqual({ status: 204, headers: {}, body: null });
    expect(await head("/post")).toMatchObject({ status: 405, body: null });
  });

  it("closes a stream that HEAD does not send, of whatever kind it is", async () => {
    const readable = new Readable({ read() {} });
    let isCancelled = false;
    const web = new ReadableStream<Uint8Array>({
      cancel: () => {
        isCancelled = true;
      },
    });
    const pages = router([
      row("GET", "/readable", () => ({ status: 200, headers: {}, body: readable })),
      row("GET", "/web", () => ({ status: 200, headers: {}, body: web })),
    ]);
    expect(await pages(request("HEAD", "/readable"))).toEqual({ status: 200, headers: {}, body: null });
    expect(await pages(request("HEAD", "/web"))).toEqual({ status: 200, headers: {}, body: null });
    expect([readable.destroyed, isCancelled]).toEqual([true, true]);
  });

  it("hands what a row or the context throws to the service, also for a parameter the path does not have", async () => {
    const failing = router([
      row("GET", "/teapot", () => {
        throw new HttpError(418, "teapot", "No coffee.", { headers: { "x-tea": "1" } });
      }),
      row("GET", "/typo/:name", (parameter) => text(parameter("nmae"))),
    ]);
    expect(await failing(request("GET", "/teapot"))).toEqual({
      status: 418,
      headers: { "x-tea": "1" },
      body: "teapot",
    });
    expect((await failing(request("GET", "/typo/x")))?.body).toMatch("no parameter 'nmae'");

    const refusing = createRouter([row("GET", "/a", () => text("secret"))], {
      context: () => {
        throw new HttpError(401, "unauthorized", "Who are you?");
      },
      onError: (error) => ({ status: (error as HttpError).status, headers: {}, body: null }),
    });
    expect(await refusing(request("GET", "/a"))).toMatchObject({ status: 401 });
    expect(await refusing(request("GET", "/b"))).toBeUndefined();
  });
});
