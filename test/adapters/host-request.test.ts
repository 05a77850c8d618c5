/** Hooks of a host find its own request, with the session that its middleware put there. */

import { createServer, type IncomingMessage } from "node:http";
import express5 from "express";
import express4 from "express4";
import fastify, { type FastifyRequest } from "fastify";
import koa3 from "koa";
import koa2 from "koa2";
import { afterEach, describe, expect, it } from "vitest";
import { type ExpressRequest, expressAdapter, expressRequest } from "../../adapters/express.js";
import { fastifyAdapter, fastifyRequest } from "../../adapters/fastify.js";
import { fetchAdapter, fetchRequest } from "../../adapters/fetch.js";
import { type KoaContext, koaAdapter, koaContext } from "../../adapters/koa.js";
import { nodeAdapter, nodeRequest } from "../../adapters/node.js";
import { createContent } from "../../src/content/index.js";
import type { HttpRequest, Service } from "../../src/http/types.js";
import { createPortal } from "../../src/portal/index.js";
import { memoryStorage } from "../../storage/memory/index.js";
import type { RunningHost } from "../contracts/adapter.js";
import { listen } from "../support/hosts.js";

interface Session {
  readonly userId: number;
}
type WithSession<T> = T & { session?: Session | undefined };

type ReadSession = (request: HttpRequest) => Session | undefined;
/** A host whose own middleware finds the session, mounted with `service` behind it. */
type SessionHost = (createService: (readSession: ReadSession) => Service) => Promise<RunningHost>;

const findSession = (cookie: string | undefined): Session | undefined =>
  cookie === "sid=ada" ? { userId: 1 } : undefined;

const expressHost =
  (express: typeof express5): SessionHost =>
  (createService) => {
    const app = express();
    app.use((req: WithSession<IncomingMessage>, _res, next) => {
      req.session = findSession(req.headers.cookie);
      next();
    });
    const read: ReadSession = (request) => expressRequest<WithSession<ExpressRequest>>(request).session;
    app.use(expressAdapter(createService(read)));
    return listen(createServer(app));
  };

const koaHost =
  (Koa: typeof koa3): SessionHost =>
  (createService) => {
    const app = new Koa();
    app.use((ctx, next) => {
      ctx["session"] = findSession(ctx.get("cookie"));
      return next();
    });
    const read: ReadSession = (request) => koaContext<WithSession<KoaContext>>(request).session;
    app.use(koaAdapter(createService(read)));
    const handle = app.callback();
    return listen(createServer((req, res) => void handle(req, res)));
  };

const fastifyHost: SessionHost = async (createService) => {
  const app = fastify({ forceCloseConnections: true });
  app.decorateRequest("session", undefined);
  app.addHook("onRequest", async (request: WithSession<FastifyRequest>) => {
    request.session = findSession(request.headers.cookie);
  });
  const read: ReadSession = (request) => fastifyRequest<WithSession<FastifyRequest>>(request).session;
  app.register(fastifyAdapter, { service: createService(read) });
  const origin = await app.listen({ host: "127.0.0.1", port: 0 });
  return { origin, close: () => app.close() };
};

const nodeHost: SessionHost = (createService) => {
  const handle = nodeAdapter(
    createService((request) => nodeRequest<WithSession<IncomingMessage>>(request).session),
  );
  return listen(
    createServer((req, res) => {
      Object.assign(req, { session: findSession(req.headers.cookie) });
      handle(req, res);
    }),
  );
};

const HOSTS: readonly (readonly [string, SessionHost])[] = [
  ["Express 4", expressHost(express4)],
  ["Express 5", expressHost(express5)],
  ["Koa 2", koaHost(koa2)],
  ["Koa 3", koaHost(koa3)],
  ["Fastify 5", fastifyHost],
  ["node:http", nodeHost],
];

let host: RunningHost | undefined;

afterEach(() => host?.close());

const ask = (path: string, cookie: string): Promise<Response> =>
  fetch((host?.origin ?? "") + path, { headers: { cookie } });

describe.each(HOSTS)("behind %s", (_name, start) => {
  it("`authenticate` of the content service reads the session of the host", async () => {
    host = await start((readSession) =>
      createContent({
        storage: memoryStorage(),
        site: { name: "Clinic", url: "https://www.example.org" },
        authenticate: (request) => {
          const session = readSession(request);
          return session ? { id: session.userId } : null;
        },
        users: [{ id: 1, slug: "ada", name: "Ada", roles: ["editor"] }],
      }),
    );
    const known = await ask("/core/v2/users/me", "sid=ada");
    expect([known.status, ((await known.json()) as { name: string }).name]).toEqual([200, "Ada"]);
    expect((await ask("/core/v2/users/me", "sid=eve")).status).toBe(401);
  });

  it("`authorize` of the portal reads it too", async () => {
    host = await start((readSession) =>
      createPortal({
        content: createContent({
          storage: memoryStorage(),
          site: { name: "Clinic", url: "https://www.example.org" },
          authenticate: () => null,
          users: [],
        }),
        authorize: (request) => (readSession(request) ? { name: "Ada" } : null),
      }),
    );
    expect((await ask("/api/session", "sid=ada")).status).toBe(200);
    expect((await ask("/api/session", "sid=eve")).status).toBe(401);
  });
});

describe("the request of the host", () => {
  it("is the Request itself behind fetch, and stays in a copy of the service's request", async () => {
    const seen: unknown[] = [];
    const request = new Request("http://localhost/a");
    await fetchAdapter({
      handle: (passed) => {
        seen.push(fetchRequest(passed), fetchRequest({ ...passed }));
        return { status: 204, headers: {}, body: null };
      },
    })(request);
    expect(seen[0]).toBe(request);
    expect(seen[1]).toBe(request);
  });

  it("is missed with a message that names the function", () => {
    const request = { method: "GET", path: "/", query: "", headers: {}, body: null, baseUrl: "" };
    const readers: readonly ((passed: HttpRequest) => unknown)[] = [
      expressRequest,
      koaContext,
      fastifyRequest,
      nodeRequest,
      fetchRequest,
    ];
    for (const read of readers) {
      expect(() => read(request)).toThrow(
        expect.objectContaining({
          code: "invalid_argument",
          message: expect.stringContaining(`${read.name}: the request did not come through an adapter`),
        }),
      );
    }
  });
});
