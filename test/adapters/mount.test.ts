import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import express from "express";
import koa from "koa";
import { afterEach, describe, expect, it } from "vitest";
import { expressAdapter } from "../../adapters/express.js";
import { fetchAdapter } from "../../adapters/fetch.js";
import { koaAdapter } from "../../adapters/koa.js";
import { mountAt } from "../../adapters/mount.js";
import { nodeAdapter } from "../../adapters/node.js";
import type { RunningHost } from "../contracts/adapter.js";
import { BODY_LIMIT, echoService } from "../support/echo-service.js";
import { listen } from "../support/hosts.js";
import { begin, dial, send, untilClosed } from "../support/http-client.js";

describe("a mount point", () => {
  it.each([
    ["", "/", { path: "/", query: "", basePath: "" }],
    ["", "/a?b?c", { path: "/a", query: "b?c", basePath: "" }],
    ["/api", "/api", { path: "/", query: "", basePath: "/api" }],
    ["/api", "/api?x", { path: "/", query: "x", basePath: "/api" }],
    ["/api", "/api/a%2Fb/", { path: "/a%2Fb/", query: "", basePath: "/api" }],
    ["/api", "http://host:1/api/a?x", { path: "/a", query: "x", basePath: "/api" }],
    ["", "//a", { path: "//a", query: "", basePath: "" }],
    ["/api", "/apix", undefined],
    ["/api", "/API/a", undefined],
    ["/api", "/", undefined],
    ["", "*", undefined],
  ])("under '%s' sees %s as it should", (prefix, target, expected) => {
    expect(mountAt(prefix, target)).toEqual(expected);
  });

  it.each([
    ["", "/a", "/outer/a", "/outer"],
    ["/api", "/api/a?x", "/outer/api/a?x", "/outer/api"],
    ["", "/", "/outer", "/outer"],
    ["", "/", "/outer/", "/outer"],
    ["", "/?x", "/outer?x", "/outer"],
    ["/new", "/new/a", "/old/b", "/new"],
  ])("under '%s' for %s of %s lies at %s", (prefix, target, whole, basePath) => {
    expect(mountAt(prefix, target, whole)?.basePath).toBe(basePath);
  });
});

describe("an adapter's options", () => {
  const adapters = { nodeAdapter, koaAdapter, fetchAdapter };
  it.each(Object.entries(adapters))(
    "%s refuses what it does not know and a prefix that is no path",
    (_, adapter) => {
      const invalid = (options: object): void => {
        adapter(echoService(), options);
      };
      expect(() => invalid({ prefx: "/api" })).toThrow(
        expect.objectContaining({ code: "invalid_option", field: "prefx" }),
      );
      for (const prefix of ["api", "/api?x", 1, null]) {
        expect(() => invalid({ prefix })).toThrow(
          expect.objectContaining({ code: "invalid_option", field: "prefix" }),
        );
      }
      for (const options of [
        undefined,
        {},
        { prefix: undefined },
        { prefix: "" },
        { prefix: "/" },
        { prefix: "/a/" },
      ]) {
        expect(adapter(echoService(), options)).toBeTypeOf("function");
      }
    },
  );
});

describe("a value that is not a service", () => {
  const mount: Readonly<Record<string, (service: never) => unknown>> = {
    expressAdapter,
    koaAdapter,
    nodeAdapter,
    fetchAdapter,
  };
  it.each(Object.entries(mount))("is refused by %s when it is mounted", (name, adapter) => {
    const given = [undefined, null, 1, {}, { service: echoService() }, { handle: 1 }, express(), []];
    for (const service of given) {
      expect(() => adapter(service as never)).toThrow(
        expect.objectContaining({
          code: "invalid_option",
          field: "service",
          message: expect.stringMatching(`^${name}: `),
        }),
      );
    }
  });
});

describe("hosts with settings of their own", () => {
  const hosts: RunningHost[] = [];
  afterEach(async () => {
    for (const host of hosts.splice(0)) await host.close();
  });
  async function originOf(listener: RequestListener): Promise<string> {
    const host = await listen(createServer(listener));
    hosts.push(host);
    return host.origin;
  }
  const forwarded = { "x-forwarded-proto": "https", "x-forwarded-host": "api.example.com" };

  it("without a next, node:http answers what is nobody's with 404 and a broken service with 500", async () => {
    const origin = await originOf(nodeAdapter(echoService(), { prefix: "/api/" }));
    expect((await send(origin, "/api/things/a")).status).toBe(200);
    const missing = await Promise.all(["/api/nothing", "/", "/apix"].map((path) => send(origin, path)));
    expect(missing.map(({ status, text }) => [status, text])).toEqual(Array(3).fill([404, "Not Found"]));
    const broken = await send(origin, "/api/broken");
    expect([broken.status, broken.text]).toEqual([500, "Internal Server Error"]);
    await expect(send(origin, "/api/cut-short")).rejects.toMatchObject({ code: "ECONNRESET" });
  });

  it("an answer with a header that cannot be sent is a 500 with nothing of it", async () => {
    const headers = { "x-first": "1", "x-bad": "a\r\nb" };
    const origin = await originOf(
      nodeAdapter({ handle: async () => ({ status: 200, headers, body: "secret" }) }),
    );
    const reply = await send(origin, "/");
    expect([reply.status, reply.text, reply.headers["x-first"]]).toEqual([
      500,
      "Internal Server Error",
      undefined,
    ]);
  });

  it("a request target in absolute form reaches the same route", async () => {
    const origin = await originOf(nodeAdapter(echoService(), { prefix: "/api" }));
    const reply = await send(origin, "http://elsewhere.example/api/things/a?x");
    expect(reply.json).toMatchObject({ path: "/things/a", query: "x" });
  });

  it("HTTP/1.0 without a Host header is served too", async () => {
    const origin = await originOf(nodeAdapter(echoService()));
    const socket = await dial(origin);
    socket.write("GET /things/a HTTP/1.0\r\n\r\n");
    expect(await untilClosed(socket)).toMatch(/200 OK[\s\S]*"baseUrl":"http:\/\/localhost"/);
  });

  it("a header that the host has changed arrives as the host left it", async () => {
    const handle = nodeAdapter(echoService());
    const origin = await originOf((req, res) => {
      req.headers.authorization = "Bearer of the host";
      delete req.headers["x-spoofed"];
      handle(req, res);
    });
    const headers = { authorization: ["Bearer a", "Bearer b"], "x-spoofed": "1", cookie: ["a=1", "b=2"] };
    const seen = (await send(origin, "/things/a", { headers })).json as { headers: Record<string, string> };
    expect(seen.headers).toMatchObject({ authorization: "Bearer of the host", cookie: "a=1; b=2" });
    expect(seen.headers).not.toHaveProperty("x-spoofed");
  });

  it("node:http inside Express knows the whole mount point", async () => {
    const app = express().use("/outer", nodeAdapter(echoService(), { prefix: "/api" }));
    const origin = await originOf(app);
    expect((await send(origin, "/outer/api/things/a")).json).toMatchObject({
      baseUrl: `${origin}/outer/api`,
    });
  });

  it("Express's own setting decides whether a proxy is believed", async () => {
    const app = express().use("/api", expressAdapter(echoService()));
    const origin = await originOf(app);
    const get = async () => (await send(origin, "/api/things/a", { headers: forwarded })).json;
    expect(await get()).toMatchObject({ baseUrl: `${origin}/api` });
    app.set("trust proxy", true);
    expect(await get()).toMatchObject({ baseUrl: "https://api.example.com/api" });
  });

  it("Koa's own setting decides whether a proxy is believed", async () => {
    const app = new koa();
    app.use(koaAdapter(echoService(), { prefix: "/api" }));
    const handle = app.callback();
    const origin = await originOf((req, res) => void handle(req, res));
    const get = async () => (await send(origin, "/api/things/a", { headers: forwarded })).json;
    expect(await get()).toMatchObject({ baseUrl: `${origin}/api` });
    app.proxy = true;
    expect(await get()).toMatchObject({ baseUrl: "https://api.example.com/api" });
  });

  it("a default type of a Koa host decides nothing about the service's answers", async () => {
    const app = new koa();
    app.use((ctx, next) => {
      ctx.type = "json";
      return next();
    });
    app.use(koaAdapter(echoService()));
    const handle = app.callback();
    const origin = await originOf((req, res) => void handle(req, res));
    const empty = await send(origin, "/empty");
    expect([empty.status, empty.text]).toEqual([200, ""]);
    expect((await send(origin, "/cookies")).headers["content-type"]).toBeUndefined();
    const head = await send(origin, "/stream", { method: "HEAD" });
    expect([head.headers["content-type"], head.headers["content-length"]]).toEqual([
      "application/octet-stream",
      undefined,
    ]);
  });

  it("a stream that fails is reported to the host, a client that leaves is not", async () => {
    const service = echoService();
    const handle = nodeAdapter(service);
    const reported: unknown[] = [];
    const origin = await originOf((req, res) =>
      handle(req, res, (error) => {
        reported.push(error);
        res.destroy();
      }),
    );
    const response = await begin(origin, "/endless");
    await once(response, "readable");
    response.destroy();
    expect(await service.next()).toBe("stream closed");
    await expect(send(origin, "/cut-short")).rejects.toMatchObject({ code: "ECONNRESET" });
    expect(reported).toEqual([expect.objectContaining({ message: "no second half" })]);
  });

  it("after a refused upload the host's log still finds the client's address", async () => {
    const handle = nodeAdapter(echoService());
    const logged: unknown[] = [];
    const origin = await originOf((req, res) => {
      res.once("finish", () => logged.push(res.statusCode, req.socket?.remoteAddress));
      handle(req, res);
    });
    const socket = await dial(origin);
    const closed = untilClosed(socket);
    const size = BODY_LIMIT + 1;
    socket.write("POST /bytes HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n");
    socket.write(`${size.toString(16)}\r\n${"x".repeat(size)}\r\n`);
    await closed;
    expect(logged).toEqual([413, "127.0.0.1"]);
  });

  it("a refused upload is not cancelled in a fetch host, whose connection the answer still needs", async () => {
    let isCancelled = false;
    const body = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(new Uint8Array(64 * 1024)),
      cancel: () => {
        isCancelled = true;
      },
    });
    const handle = fetchAdapter(echoService());
    const reply = await handle(new Request("http://h/bytes", { method: "POST", body, duplex: "half" }));
    expect([reply.status, isCancelled]).toEqual([413, false]);
  });

  it("a value made by express.raw reaches a route that needs the bytes", async () => {
    const app = express().use(express.raw({ type: "*/*" }), expressAdapter(echoService()));
    const reply = await send(await originOf(app), "/bytes", {
      method: "POST",
      body: "abc",
      headers: { "content-type": "a/b" },
    });
    expect([reply.status, reply.text]).toEqual([201, "abc"]);
  });

  it("a fetch handler answers what is nobody's with a plain 404, and knows a body that was read before", async () => {
    const handle = fetchAdapter(echoService(), { prefix: "/api" });
    const missing = await handle(new Request("http://h/other"));
    expect([missing.status, await missing.text()]).toEqual([404, "Not Found"]);
    const used = new Request("http://h/api/bytes", { method: "POST", body: "abc" });
    await used.text();
    expect(await (await handle(used)).json()).toMatchObject({ code: "raw_body_unavailable" });
  });

  it("a JSON route in a fetch host says what to change where the body was read before, and takes a clone", async () => {
    const handle = fetchAdapter(echoService());
    const headers = { "content-type": "application/json" };
    const request = new Request("http://h/json", { method: "POST", headers, body: "[1]" });
    const clone = request.clone();
    await request.json();
    const refused = await handle(request);
    expect([refused.status, await refused.json()]).toMatchObject([
      500,
      { code: "raw_body_unavailable", message: expect.stringContaining("clone") },
    ]);
    expect(await (await handle(clone)).json()).toEqual([1]);
  });
});
