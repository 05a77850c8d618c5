/**
 * The hosts of the adapter contract: each puts a service between routes, a not-found answer and an
 * error answer of its own.
 */

import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import express5, { type ErrorRequestHandler, type RequestHandler } from "express";
import express4 from "express4";
import fastify from "fastify";
import koa3, { type Middleware } from "koa";
import bodyParser from "koa-bodyparser";
import koa2 from "koa2";
import { expressAdapter } from "../../adapters/express.js";
import { fastifyAdapter } from "../../adapters/fastify.js";
import { fetchAdapter } from "../../adapters/fetch.js";
import { koaAdapter } from "../../adapters/koa.js";
import { nodeAdapter } from "../../adapters/node.js";
import type { AdapterCase, MountHost, RunningHost } from "../contracts/adapter.js";
import { serveFetch } from "./serve-fetch.js";

export async function listen(server: Server): Promise<RunningHost> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

const messageOf = (error: unknown): string => `host error: ${(error as Error).message}`;

const expressHost =
  (express: typeof express5, mountedBy: "path" | "prefix" = "path"): MountHost =>
  async ({ service, prefix, parser }) => {
    const app = express();
    const keep = (req: IncomingMessage, _res: ServerResponse, bytes: Buffer): void => {
      Object.assign(req, { rawBody: bytes });
    };
    const text =
      (body: string): RequestHandler =>
      (_req, res) =>
        void res.send(body);
    app.get("/before", text("before"));
    if (parser === "consuming") app.use(express.json({ limit: "1mb" }));
    if (parser === "keeping") app.use(express.json({ limit: "1mb", verify: keep }));
    if (parser === "of other media") app.use(express.urlencoded({ extended: false }), express.text());
    if (mountedBy === "prefix") app.use(expressAdapter(service, { prefix }));
    else app.use(prefix || "/", expressAdapter(service));
    app.get("/after", text("after"));
    app.use((_req, res) => void res.status(404).send("host not found"));
    const onError: ErrorRequestHandler = (error, _req, res, next) => {
      if (res.headersSent) next(error);
      else res.status(500).send(messageOf(error));
    };
    app.use(onError);
    // Keeps Express from printing the errors it ends connections with.
    app.set("env", "test");
    return listen(createServer(app));
  };

const koaHost =
  (Koa: typeof koa3): MountHost =>
  async ({ service, prefix, parser }) => {
    const app = new Koa({ env: "test" });
    app.silent = true;
    const text =
      (path: string, body: string): Middleware =>
      async (ctx, next) => {
        if (ctx.path === path) ctx.body = body;
        else await next();
      };
    app.use(async (ctx, next) => {
      try {
        await next();
      } catch (error) {
        ctx.status = 500;
        ctx.body = messageOf(error);
      }
    });
    app.use(text("/before", "before"));
    if (parser !== "none") app.use(bodyParser({ jsonLimit: "1mb" }));
    if (parser === "consuming") {
      app.use((ctx, next) => {
        Object.assign(ctx.request, { rawBody: undefined });
        return next();
      });
    }
    app.use(koaAdapter(service, { prefix }));
    app.use(text("/after", "after"));
    app.use((ctx) => {
      ctx.status = 404;
      ctx.body = "host not found";
    });
    const handle = app.callback();
    return listen(createServer((req, res) => void handle(req, res)));
  };

const fastifyHost: MountHost = async ({ service, prefix, parser }) => {
  const app = fastify({ forceCloseConnections: true });
  if (parser === "keeping") {
    app.addHook("preParsing", async (request, _reply, payload) => {
      Object.assign(request, { rawBody: await buffer(payload) });
    });
  }
  // Fastify asks no parser of the host about the service's requests.
  if (parser === "of other media") {
    const types = ["application/json", "application/x-www-form-urlencoded", "text/plain"];
    app.addContentTypeParser(types, { parseAs: "string" }, (_request, body, done) => done(null, { body }));
  }
  app.get("/before", async () => "before");
  app.setNotFoundHandler((_request, reply) => reply.code(404).send("host not found"));
  app.setErrorHandler((error, _request, reply) => reply.code(500).send(messageOf(error)));
  app.register(fastifyAdapter, { service, prefix });
  app.get("/after", async () => "after");
  const origin = await app.listen({ host: "127.0.0.1", port: 0 });
  return { origin, close: () => app.close() };
};

const answerOf = (path: string | undefined): [number, string] =>
  path === "/before" || path === "/after" ? [200, path.slice(1)] : [404, "host not found"];

const nodeHost: MountHost = async ({ service, prefix, parser }) => {
  const handle = nodeAdapter(service, { prefix });
  /** As connect's body parsers do it. */
  const parse = async (req: IncomingMessage): Promise<void> => {
    if (parser === "none" || req.headers["content-type"] !== "application/json") return;
    const rawBody = await buffer(req);
    Object.assign(req, { body: JSON.parse(rawBody.toString()) as unknown });
    if (parser === "keeping") Object.assign(req, { rawBody });
  };
  const answer = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    await parse(req);
    handle(req, res, (error) => {
      if (res.headersSent) {
        res.destroy();
        return;
      }
      const [status, body] = error === undefined ? answerOf(req.url) : [500, messageOf(error)];
      res.writeHead(status).end(body);
    });
  };
  return listen(createServer((req, res) => void answer(req, res)));
};

const fetchHost: MountHost = async ({ service, prefix, parser }) => {
  const handle = fetchAdapter(service, {
    prefix,
    notFound: (request) => {
      const [status, body] = answerOf(new URL(request.url).pathname);
      return new Response(body, { status });
    },
  });
  const respond = serveFetch(async (request: Request) => {
    if (parser === "keeping") await request.clone().text();
    return handle(request);
  });
  return listen(createServer(respond));
};

const ALL = ["none", "consuming", "keeping"] as const;
const EXPRESS = [...ALL, "of other media"] as const;

export const HOSTS: readonly AdapterCase[] = [
  { name: "Express 4", mount: expressHost(express4), parsers: EXPRESS },
  { name: "Express 5", mount: expressHost(express5), parsers: EXPRESS },
  { name: "Express 5 with the option prefix", mount: expressHost(express5, "prefix"), parsers: ["none"] },
  { name: "Koa 2", mount: koaHost(koa2), parsers: ALL },
  { name: "Koa 3", mount: koaHost(koa3), parsers: ALL },
  {
    name: "Fastify 5",
    mount: fastifyHost,
    parsers: ["none", "keeping", "of other media"],
    leavesOptionsAtRoot: true,
    answersItself: {
      methods: ["PROPFIND", "SEARCH", "MKCOL", "LOCK", "PURGE", "M-SEARCH"],
      undecodable: true,
    },
  },
  { name: "node:http", mount: nodeHost, parsers: ALL },
  { name: "fetch", mount: fetchHost, parsers: ["none", "keeping"] },
];
