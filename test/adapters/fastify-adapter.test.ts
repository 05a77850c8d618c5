import { text } from "node:stream/consumers";
import { createGunzip, gzipSync } from "node:zlib";
import fastify, { type FastifyInstance, type FastifyServerOptions } from "fastify";
import { afterEach, describe, expect, it } from "vitest";
import { fastifyAdapter } from "../../adapters/fastify.js";
import { type EchoService, echoService } from "../support/echo-service.js";
import { json, send } from "../support/http-client.js";

declare module "fastify" {
  interface FastifyInstance {
    webhooks: EchoService;
  }
}

const apps: FastifyInstance[] = [];
afterEach(async () => {
  for (const app of apps.splice(0)) await app.close();
});

function host(options: FastifyServerOptions = {}): FastifyInstance {
  const app = fastify({ forceCloseConnections: true, ...options });
  apps.push(app);
  return app;
}

const listen = (app: FastifyInstance): Promise<string> => app.listen({ host: "127.0.0.1", port: 0 });

describe("the Fastify adapter", () => {
  it("puts the service on the host's own instance, under the name that was asked for", async () => {
    const app = host();
    const service = echoService();
    app.register(fastifyAdapter, { service, prefix: "/api", decorate: "webhooks" });
    app.get("/life", async function () {
      return this.webhooks.life;
    });
    await app.ready();
    expect(app.webhooks).toBe(service);
    expect((await app.inject("/life")).json()).toEqual(["start"]);
  });

  it("decorates nothing unless it is asked to", async () => {
    const app = host();
    app.register(fastifyAdapter, { service: echoService() });
    await app.ready();
    expect(app.hasDecorator("webhooks")).toBe(false);
  });

  it("starts the service once when the server is ready, and stops it once when it closes", async () => {
    const app = host();
    const service = echoService();
    app.register(fastifyAdapter, { service });
    expect(service.life).toEqual([]);
    await app.ready();
    await listen(app);
    expect(service.life).toEqual(["start"]);
    await app.close();
    await app.close();
    expect(service.life).toEqual(["start", "stop"]);
  });

  it("fails the host's start when the service does not start", async () => {
    const app = host();
    const service = { ...echoService(), start: () => Promise.reject(new Error("no storage")) };
    app.register(fastifyAdapter, { service });
    await expect(app.ready()).rejects.toThrow("no storage");
  });

  it("leaves the host's content-type parsing, body limit and hooks as they were", async () => {
    const app = host({ bodyLimit: 100 });
    app.addContentTypeParser("text/csv", { parseAs: "string" }, (_request, body, done) =>
      done(null, { csv: body }),
    );
    app.register(fastifyAdapter, { service: echoService() });
    app.post("/host", async (request) => request.body);
    const origin = await listen(app);

    expect((await send(origin, "/host", json({ a: 1 }))).json).toEqual({ a: 1 });
    const csv = { method: "POST", headers: { "content-type": "text/csv" }, body: "a;b" };
    expect((await send(origin, "/host", csv)).json).toEqual({ csv: "a;b" });
    const other = { method: "POST", headers: { "content-type": "application/x-other" }, body: "a" };
    expect((await send(origin, "/host", other)).status).toBe(415);
    expect((await send(origin, "/host", json("x".repeat(200)))).status).toBe(413);
    // The service reads csv as the bytes it is, and by its own limit.
    const long = { ...csv, body: "x".repeat(200) };
    expect((await send(origin, "/bytes", long)).text).toBe(long.body);
  });

  it("shows the host's hooks the content type as it came, and lets the host's own routes refuse it", async () => {
    const app = host();
    const seen: unknown[] = [];
    app.addHook("onRequest", async ({ headers }) => void seen.push(headers["content-type"]));
    app.addHook("preHandler", async ({ headers }) => void seen.push(headers["content-type"]));
    app.register(fastifyAdapter, { service: echoService(), prefix: "/api" });
    app.post("/own", async ({ body }) => body);
    const origin = await listen(app);
    const sent = { method: "POST", headers: { "content-type": "nonsense" }, body: "abc" };
    expect((await send(origin, "/api/bytes", sent)).text).toBe("abc");
    expect(seen).toEqual(["nonsense", "nonsense"]);
    expect((await send(origin, "/own", sent)).status).toBe(415);
    expect((await send(origin, "/own", { ...sent, headers: {} })).status).toBe(415);
    expect((await send(origin, "/own", json({ a: 1 }))).json).toEqual({ a: 1 });
  });

  it.each(["GET", "HEAD", "POST", "QUERY"])(
    "shows the host the content type of a %s as it came, at paths of the service and at others",
    async (method) => {
      const app = host();
      const seen: unknown[] = [];
      for (const hook of ["onRequest", "preValidation", "preHandler"] as const)
        app.addHook(hook, async ({ headers }) => void seen.push(headers["content-type"]));
      app.setNotFoundHandler(async ({ headers }, reply) => {
        seen.push(headers["content-type"]);
        return reply.code(404).send("of the host");
      });
      app.register(fastifyAdapter, { service: echoService(), prefix: "/api" });
      const origin = await listen(app);
      for (const path of ["/api/things/a", "/api/nothing/of/the/service"])
        await send(origin, path, { method, headers: { "content-type": "nonsense" } });
      expect(seen.length).toBeGreaterThanOrEqual(6);
      expect(new Set(seen)).toEqual(new Set(["nonsense"]));
    },
  );

  it("hands a method on that the host has added", async () => {
    const app = host();
    app.addHttpMethod("PROPFIND", { hasBody: true });
    app.register(fastifyAdapter, { service: echoService(), prefix: "/api" });
    const reply = await send(await listen(app), "/api/things/a", { method: "PROPFIND", body: "abc" });
    expect(reply.status).toBe(405);
  });

  it("runs the host's hooks for the service's requests, and keeps what they set", async () => {
    const app = host();
    app.addHook("onRequest", async (request, reply) => {
      reply.header("x-host", "seen");
      if (request.headers["x-blocked"]) return reply.code(403).send("blocked by the host");
    });
    app.register(fastifyAdapter, { service: echoService(), prefix: "/api" });
    const origin = await listen(app);
    expect((await send(origin, "/api/things/a")).headers["x-host"]).toBe("seen");
    const blocked = await send(origin, "/api/things/a", { headers: { "x-blocked": "1" } });
    expect([blocked.status, blocked.text]).toEqual([403, "blocked by the host"]);
  });

  it("reads the body that a preParsing hook of the host has put in place of the sent one", async () => {
    const app = host();
    app.addHook("preParsing", async (_request, _reply, payload) => payload.pipe(createGunzip()));
    app.register(fastifyAdapter, { service: echoService() });
    const zipped = {
      method: "POST",
      headers: { "content-type": "a/b" },
      body: gzipSync("unzipped by the host"),
    };
    expect((await send(await listen(app), "/bytes", zipped)).text).toBe("unzipped by the host");
  });

  it("says what to change where a preParsing hook of the host has used up the body", async () => {
    const app = host();
    app.addHook("preParsing", async (_request, _reply, payload) => {
      await text(payload);
    });
    app.register(fastifyAdapter, { service: echoService() });
    const reply = await send(await listen(app), "/json", json({ a: 1 }));
    expect([reply.status, reply.json]).toMatchObject([
      500,
      { code: "raw_body_unavailable", message: expect.stringContaining("req.rawBody") },
    ]);
  });

  it.each(["before", "after"])(
    "leaves OPTIONS at the root to a host that answers it everywhere, as @fastify/cors does, %s the service",
    async (order) => {
      const app = host();
      const cors = (): unknown => app.options("*", async () => "preflight of the host");
      if (order === "before") cors();
      await app.register(fastifyAdapter, { service: echoService() });
      if (order === "after") cors();
      const origin = await listen(app);
      for (const path of ["/", "/things/a", "/elsewhere"]) {
        const reply = await send(origin, path, { method: "OPTIONS" });
        expect([path, reply.status, reply.text]).toEqual([path, 200, "preflight of the host"]);
      }
      expect((await send(origin, "/things/a")).status).toBe(200);
      expect((await send(origin, "/things/a", { method: "PUT" })).status).toBe(405);
    },
  );

  it("answers OPTIONS below its prefix beside a host that answers it everywhere", async () => {
    const app = host();
    app.options("*", async () => "preflight of the host");
    app.register(fastifyAdapter, { service: echoService(), prefix: "/api" });
    const origin = await listen(app);
    const own = await send(origin, "/api/things/a", { method: "OPTIONS" });
    expect([own.status, own.headers.allow]).toEqual([204, "GET, HEAD, DELETE, OPTIONS"]);
    expect((await send(origin, "/other", { method: "OPTIONS" })).text).toBe("preflight of the host");
  });

  it.each(["", "/api"])(
    "asks for another prefix if the host has a wildcard route at '%s'",
    async (prefix) => {
      const app = host();
      app.get(`${prefix}/*`, async () => "a file of the host");
      app.register(fastifyAdapter, { service: echoService(), prefix });
      await expect(app.ready()).rejects.toMatchObject({
        code: "invalid_option",
        field: "prefix",
        message: expect.stringContaining("choose a prefix that only the service uses"),
      });
      const other = host();
      other.get(`${prefix}/*`, async () => "a file of the host");
      other.register(fastifyAdapter, { service: echoService(), prefix: "/hooks" });
      const origin = await listen(other);
      expect((await send(origin, `${prefix}/a`)).text).toBe("a file of the host");
      expect((await send(origin, "/hooks/things/a")).status).toBe(200);
    },
  );

  it("passes on what a hook of the host for new routes throws", async () => {
    const app = host();
    app.addHook("onRoute", ({ url }) => {
      if (url.startsWith("/api")) throw new Error("routes need a schema here");
    });
    app.register(fastifyAdapter, { service: echoService(), prefix: "/api" });
    await expect(app.ready()).rejects.toThrow("routes need a schema here");
  });

  it("leaves the host's default not-found answer as it was", async () => {
    const app = host();
    app.register(fastifyAdapter, { service: echoService() });
    const origin = await listen(app);
    const plain = host();
    const reference = await send(await listen(plain), "/nothing", json({}));
    const reply = await send(origin, "/nothing", json({}));
    expect([reply.status, reply.text]).toEqual([404, reference.text]);
  });

  it("shows the host's not-found handler no body of its own making", async () => {
    const app = host();
    app.register(fastifyAdapter, { service: echoService() });
    app.setNotFoundHandler((request, reply) => reply.code(404).send(`body: ${String(request.body)}`));
    expect((await send(await listen(app), "/nothing", json({}))).text).toBe("body: undefined");
  });

  it("takes two services side by side, under one prefix or two", async () => {
    const app = host();
    const [first, second, third] = [echoService("/first"), echoService("/second"), echoService("/third")];
    app.register(fastifyAdapter, { service: first, prefix: "/api" });
    app.register(fastifyAdapter, { service: second, prefix: "/api/" });
    app.register(fastifyAdapter, { service: third, prefix: "/other" });
    app.setNotFoundHandler((_request, reply) => reply.code(404).send("host not found"));
    const origin = await listen(app);
    for (const path of ["/api/first/things/a", "/api/second/things/a", "/other/third/things/a"]) {
      expect([path, (await send(origin, path)).status]).toEqual([path, 200]);
    }
    expect((await send(origin, "/api/second/bytes", json([1]))).text).toBe("[1]");
    for (const path of ["/api/third/things/a", "/other/first/things/a", "/api", "/api/"]) {
      expect([path, (await send(origin, path)).text]).toEqual([path, "host not found"]);
    }
    await app.close();
    expect([first, second, third].map((service) => service.life)).toEqual(Array(3).fill(["start", "stop"]));
  });

  it("works inside a plugin of the host, below its prefix and its parameters", async () => {
    const app = host();
    app.register(
      (scope, _options, done) => {
        scope.register(fastifyAdapter, { service: echoService(), prefix: "/hooks" });
        done();
      },
      { prefix: "/:tenant" },
    );
    const origin = await listen(app);
    const reply = await send(origin, "/acme%20inc/hooks/things/a%2Fb?q=1");
    expect(reply.json).toMatchObject({
      path: "/things/a%2Fb",
      name: "a/b",
      query: "q=1",
      baseUrl: `${origin}/acme%20inc/hooks`,
    });
  });

  it("answers requests that the host injects, without a socket", async () => {
    const app = host();
    app.register(fastifyAdapter, { service: echoService(), prefix: "/api" });
    const reply = await app.inject({ method: "POST", url: "/api/json", payload: { a: 1 } });
    expect([reply.statusCode, reply.json()]).toEqual([200, { a: 1 }]);
    expect((await app.inject({ method: "HEAD", url: "/api/things/a" })).statusCode).toBe(200);
  });

  it("takes scheme and host from a proxy that the host trusts", async () => {
    const app = host({ trustProxy: true });
    app.register(fastifyAdapter, { service: echoService(), prefix: "/api" });
    const headers = { "x-forwarded-proto": "https", "x-forwarded-host": "api.example.com" };
    const reply = await send(await listen(app), "/api/things/a", { headers });
    expect(reply.json).toMatchObject({ baseUrl: "https://api.example.com/api" });
  });

  it.each([
    [{ service: echoService(), prefx: "/api" }, "prefx"],
    [{ service: echoService(), prefix: "api" }, "prefix"],
    [{ service: echoService(), decorate: "" }, "decorate"],
    [{ service: {} }, "service"],
    [{ service: { handle: true } }, "service"],
    [{}, "service"],
  ])("refuses the options of case %#", async (options, field) => {
    const app = host();
    app.register(fastifyAdapter, options as unknown as { service: EchoService });
    await expect(app.ready()).rejects.toMatchObject({ code: "invalid_option", field });
  });
});
