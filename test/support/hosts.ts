/** The hosts of the adapter contract: each puts a service between routes, a not-found answer and an error answer of its own. */

import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
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
import type { HostOptions, MountHost, RunningHost } from "../contracts/adapter.js";

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
  (express: typeof express5): MountHost =>
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
    if (parser === "consuming") app.use(express.json());
    if (parser === "keeping") app.use(express.json({ verify: keep }));
    app.use(prefix || "/", expressAdapter(service));
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
    if (parser !== "none") app.use(bodyParser());
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

const fastifyHost: MountHost = async ({ service, prefix }) => {
  const app = fastify({ forceCloseConnections: true });
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

const nodeHost: MountHost = async ({ service, prefix }) => {
  const handle = nodeAdapter(service, { prefix });
  return listen(
    createServer((req, res) =>
      handle(req, res, (error) => {
        if (res.headersSent) {
          res.destroy();
          return;
        }
        const [status, body] = error === undefined ? answerOf(req.url) : [500, messageOf(error)];
        res.writeHead(status).end(body);
      }),
    ),
  );
};

const fetchHost: MountHost = async ({ service, prefix }) =>
  listen(
    serveFetch(
      fetchAdapter(service, {
        prefix,
        notFound: (request) => {
          const [status, body] = answerOf(new URL(request.url).pathname);
          return new Response(body, { status });
        },
      }),
    ),
  );

/** A server for a fetch handler, as small as it can be. */
function serveFetch(handler: (request: Request) => Promise<Response>): Server {
  const answer = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    const controller = new AbortController();
    res.once("close", () => controller.abort());
    const { method = "GET" } = req;
    const request = new Request(`http://${req.headers.host}${req.url}`, {
      method,
      headers: Object.entries(req.headersDistinct).flatMap(([name, values = []]) =>
        values.map((one): [string, string] => [name, one]),
      ),
      body: method === "GET" || method === "HEAD" ? null : Readable.toWeb(req),
      duplex: "half",
      signal: controller.signal,
    });
    try {
      const response = await handler(request);
      if (!req.complete) res.setHeader("connection", "close");
      res.statusCode = response.status;
      res.setHeaders(response.headers);
      if (response.body === null) res.end();
      else await pipeline(Readable.fromWeb(response.body), res);
    } catch (error) {
      if (res.headersSent) res.destroy();
      else res.writeHead(500).end(messageOf(error));
    }
  };
  return createServer((req, res) => void answer(req, res));
}

export interface NamedHost {
  readonly name: string;
  readonly mount: MountHost;
  readonly parsers: readonly HostOptions["parser"][];
}

const ALL = ["none", "consuming", "keeping"] as const;

export const HOSTS: readonly NamedHost[] = [
  { name: "Express 4", mount: expressHost(express4), parsers: ALL },
  { name: "Express 5", mount: expressHost(express5), parsers: ALL },
  { name: "Koa 2", mount: koaHost(koa2), parsers: ALL },
  { name: "Koa 3", mount: koaHost(koa3), parsers: ALL },
  { name: "Fastify 5", mount: fastifyHost, parsers: ["none"] },
  { name: "node:http", mount: nodeHost, parsers: ["none"] },
  { name: "fetch", mount: fetchHost, parsers: ["none"] },
];
