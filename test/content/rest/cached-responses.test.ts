/**
 * Cached responses are shared by all requests: they come without a promise, and no host can change
 * them.
 */

import { createServer, type ServerResponse } from "node:http";
import express5 from "express";
import fastify from "fastify";
import koa3 from "koa";
import koa2 from "koa2";
import { afterEach, describe, expect, it } from "vitest";
import { expressAdapter } from "../../../adapters/express.js";
import { fastifyAdapter } from "../../../adapters/fastify.js";
import { fetchAdapter } from "../../../adapters/fetch.js";
import { koaAdapter } from "../../../adapters/koa.js";
import { nodeAdapter } from "../../../adapters/node.js";
import type { HttpResponse, Service } from "../../../src/http/types.js";
import type { RunningHost } from "../../contracts/adapter.js";
import { callsOf } from "../../support/content-call.js";
import { contentSite } from "../../support/content-site.js";
import { listen } from "../../support/hosts.js";

const PATHS = ["/core/v2/posts", "/core/v2/posts/1"];

async function siteWithPost() {
  const site = contentSite();
  const body = { title: "Shared", status: "publish" };
  expect((await callsOf(site)("POST /posts", { as: "administrator", body })).status).toBe(201);
  return site;
}

/**
 * The service, and all that it has answered: a cached response as it is, a promise as `"promise"`.
 */
function watched(service: Service): { readonly service: Service; readonly answered: unknown[] } {
  const answered: unknown[] = [];
  const handle: Service["handle"] = (request) => {
    const response = service.handle(request);
    answered.push(response instanceof Promise ? "promise" : response);
    return response;
  };
  return { service: { handle }, answered };
}

/** As middleware for compression, sessions or CSP does it: just before the head is sent. */
function changeBeforeHead(res: ServerResponse): void {
  const writeHead = res.writeHead.bind(res);
  res.writeHead = ((status: number) => {
    res.setHeader("Vary", `${String(res.getHeader("vary"))}, Cookie`);
    res.removeHeader("link");
    return writeHead(status);
  }) as typeof res.writeHead;
}

type Mount = (service: Service) => Promise<RunningHost>;

const koaHost =
  (Koa: typeof koa3): Mount =>
  (service) => {
    const app = new Koa();
    app.use(async (ctx, next) => {
      await next();
      ctx.append("Vary", "Cookie");
      ctx.remove("Link");
    });
    app.use(koaAdapter(service));
    const handle = app.callback();
    return listen(createServer((req, res) => void handle(req, res)));
  };

/** Hosts that add to one header of every response and take another away. */
const CHANGING_HOSTS: { readonly [name: string]: Mount } = {
  async "Express 5"(service) {
    const app = express5();
    app.use((_req, res, next) => {
      changeBeforeHead(res);
      next();
    });
    app.use(expressAdapter(service));
    return listen(createServer(app));
  },
  "Koa 2": koaHost(koa2),
  "Koa 3": koaHost(koa3),
  async "Fastify 5"(service) {
    const app = fastify();
    app.addHook("onSend", async (_request, reply) => {
      const headers = reply.getHeaders();
      reply.header("Vary", `${String(headers["vary"])}, Cookie`);
      reply.removeHeader("Link");
    });
    app.register(fastifyAdapter, { service });
    return { origin: await app.listen({ host: "127.0.0.1", port: 0 }), close: () => app.close() };
  },
  async "node:http"(service) {
    const handle = nodeAdapter(service);
    return listen(
      createServer((req, res) => {
        changeBeforeHead(res);
        handle(req, res);
      }),
    );
  },
};

let running: RunningHost | undefined;
afterEach(async () => {
  await running?.close();
  running = undefined;
});

async function read(origin: string, path: string) {
  const response = await fetch(origin + path);
  const { date: _, ...headers } = Object.fromEntries(response.headers);
  return { status: response.status, headers, text: await response.text() };
}

describe("a cached response", () => {
  it.each(PATHS)("comes without a promise, the same frozen object each time: %s", async (path) => {
    const { service, answered } = watched(await siteWithPost());
    const request = { method: "GET", path, query: "", headers: {}, body: null, baseUrl: "http://localhost" };
    for (let times = 0; times < 3; times += 1) await service.handle(request);
    const [first, second, third] = answered as [unknown, HttpResponse, HttpResponse];
    expect(first).toBe("promise");
    expect(second.status).toBe(200);
    expect(third).toBe(second);
    expect(Object.isFrozen(second) && Object.isFrozen(second.headers)).toBe(true);
  });

  it.each(Object.entries(CHANGING_HOSTS))(
    "is the same for the next request where %s changes the headers of every response",
    async (_, mount) => {
      const { service, answered } = watched(await siteWithPost());
      running = await mount(service);
      for (const path of PATHS) {
        const first = await read(running.origin, path);
        const next = [await read(running.origin, path), await read(running.origin, path)];
        expect(first.status).toBe(200);
        expect(first.headers).toMatchObject({ vary: "Origin, Authorization, Cookie" });
        expect(first.headers["link"]).toBeUndefined();
        expect(next).toEqual([first, first]);
      }
      const cached = answered.filter((response): response is HttpResponse => response !== "promise");
      expect(cached.length).toBe(4);
      for (const { headers } of cached) {
        expect(headers["vary"]).toBe("Origin, Authorization");
        expect(headers["link"]).toContain("https://api.w.org/");
      }
    },
  );

  it("is the same for the next request where a fetch host changes its Response", async () => {
    const { service, answered } = watched(await siteWithPost());
    const handle = fetchAdapter(service);
    for (let times = 0; times < 3; times += 1) {
      const { headers } = await handle(new Request(`http://localhost${PATHS[0]}`));
      expect(headers.get("vary")).toBe("Origin, Authorization");
      headers.append("vary", "Cookie");
    }
    expect(answered[2]).toBe(answered[1]);
  });

  it("leaves the connection open, for a request without a body is complete", async () => {
    const { service } = watched(await siteWithPost());
    running = await listen(createServer(nodeAdapter(service)));
    for (let times = 0; times < 2; times += 1) {
      const response = await fetch(running.origin + PATHS[0]);
      expect(response.headers.get("connection")).toBe("keep-alive");
      await response.text();
    }
  });
});
