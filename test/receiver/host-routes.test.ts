/**
 * A receiver that the host mounts as its own routes are mounted, on the whole path, as the manuals
 * of other senders show it.
 */

import { createServer, type RequestListener } from "node:http";
import Router from "@koa/router";
import express5 from "express";
import express4 from "express4";
import fastify from "fastify";
import koa3 from "koa";
import koa2 from "koa2";
import { afterEach, describe, expect, it } from "vitest";
import { expressAdapter } from "../../adapters/express.js";
import { fastifyAdapter } from "../../adapters/fastify.js";
import { fetchAdapter } from "../../adapters/fetch.js";
import { type KoaContext, koaAdapter } from "../../adapters/koa.js";
import { nodeAdapter } from "../../adapters/node.js";
import { createReceiver, type Receiver, type ReceiverOptions } from "../../src/receiver/index.js";
import { newSecret, signatureHeader } from "../../src/signature/signature.js";
import { manualClock } from "../../src/testing/manual-clock.js";
import { readPayload } from "../../src/webhooks/events/notification.js";
import type { RunningHost } from "../contracts/adapter.js";
import { build, EVENT_ID, OCCURRED_AT, TOPIC } from "../support/clinic.js";
import { listen } from "../support/hosts.js";
import { send } from "../support/http-client.js";
import { recordingLogger } from "../support/registration-api.js";
import { serveFetch } from "../support/serve-fetch.js";

const PATH = "/webhooks/in";
const secret = newSecret();
const { payload } = await build({ eventId: EVENT_ID });
const body = readPayload(payload).body({
  form: "notification",
  topic: TOPIC,
  allowed: null,
  eventIdField: false,
});

const running: RunningHost[] = [];
afterEach(() => Promise.all(running.splice(0).map((host) => host.close())));
const serve = async (listener: RequestListener): Promise<string> => {
  const host = await listen(createServer(listener));
  running.push(host);
  return host.origin;
};

function receiverOf(changes: Partial<ReceiverOptions> = {}) {
  const { logger, log } = recordingLogger();
  const ids: string[] = [];
  const onEvent = ({ id }: { id: string }): void => void ids.push(id);
  const clock = manualClock(OCCURRED_AT);
  const receiver = createReceiver({ secrets: secret, onEvent, clock, logger, ...changes });
  return { receiver, ids, log };
}

const deliver = async (origin: string, path = PATH): Promise<number> => {
  const signature = signatureHeader({ secret, timestamp: Math.floor(OCCURRED_AT / 1000), body });
  const headers = { "content-type": "application/json", "x-service-signature": signature };
  return (await send(origin, path, { method: "POST", headers, body })).status;
};

type Mount = (receiver: Receiver) => RequestListener;

const koaApp = (Koa: typeof koa3, router: Router): RequestListener => {
  const app = new Koa({ env: "test" }).use(router.routes());
  const handle = app.callback();
  return (req, res) => void handle(req, res);
};

const inExpress = (name: string, express: typeof express5): readonly [string, Mount][] => [
  [`${name}, app.post`, (receiver) => express().post(PATH, expressAdapter(receiver))],
  [
    `${name}, app.post behind express.raw`,
    (receiver) => express().post(PATH, express.raw({ type: "*/*" }), expressAdapter(receiver)),
  ],
  [
    `${name}, post of a router below a path`,
    (receiver) => express().use("/webhooks", express.Router().post("/in", expressAdapter(receiver))),
  ],
];

const inKoa = (name: string, Koa: typeof koa3): readonly [string, Mount][] => [
  [`${name}, post of a router`, (receiver) => koaApp(Koa, new Router().post(PATH, koaAdapter(receiver)))],
  [
    `${name}, post of a router inside another`,
    (receiver) => {
      const inner = new Router().post("/in", koaAdapter(receiver));
      return koaApp(Koa, new Router().use("/webhooks", inner.routes()));
    },
  ],
];

describe("a receiver in a route of the host", () => {
  it.each([
    ...inExpress("Express 4", express4),
    ...inExpress("Express 5", express5),
    ...inKoa("Koa 2", koa2),
    ...inKoa("Koa 3", koa3),
  ])("of %s gets the deliveries to that path, and no others", async (_, mount) => {
    const { receiver, ids, log } = receiverOf();
    const origin = await serve(mount(receiver));
    expect([await deliver(origin), ids, log]).toEqual([204, [EVENT_ID], []]);
    expect(await deliver(origin, `${PATH}/more`)).toBe(404);
    expect(await deliver(origin, "/other")).toBe(404);
  });

  it("of Fastify is the option prefix of the plugin", async () => {
    const { receiver, ids, log } = receiverOf();
    const app = fastify({ forceCloseConnections: true });
    app.register(fastifyAdapter, { service: receiver, prefix: PATH });
    running.push({ origin: "", close: () => app.close() });
    const origin = await app.listen({ host: "127.0.0.1", port: 0 });
    expect([await deliver(origin), ids, log]).toEqual([204, [EVENT_ID], []]);
    expect(await deliver(origin, "/other")).toBe(404);
  });

  it("follows its option path if that is set", async () => {
    const { receiver, ids } = receiverOf({ path: "/in" });
    const origin = await serve(express5().post(/./, expressAdapter(receiver)));
    expect([await deliver(origin), await deliver(origin, "/in"), ids]).toEqual([404, 204, [EVENT_ID]]);
  });

  it.each([
    ["Express 4", express4, "*"],
    ["Express 5", express5, /./],
  ] as const)("of %s takes nothing that another route passed on to app.use", async (_, express, all) => {
    const { receiver } = receiverOf();
    const app = express()
      .all(all, (_req, _res, next) => next())
      .use(expressAdapter(receiver))
      .get("/page", (_req, res) => void res.send("the host's"));
    const origin = await serve(app);
    expect((await send(origin, "/page")).text).toBe("the host's");
  });

  it("of Koa takes nothing of the routes beside router.use", async () => {
    const { receiver } = receiverOf();
    const router = new Router().use(koaAdapter(receiver)).get("/page", (ctx) => {
      ctx.body = "the host's";
    });
    expect((await send(await serve(koaApp(koa3, router)), "/page")).text).toBe("the host's");
  });
});

const WHOLE_PATHS: [string, Mount][] = [
  ["node:http", (receiver) => nodeAdapter(receiver)],
  ["a fetch host", (receiver) => serveFetch(fetchAdapter(receiver))],
  ["app.use of Express", (receiver) => express5().use(expressAdapter(receiver))],
  [
    "a function in a route of Express",
    (receiver) => {
      const handle = expressAdapter(receiver);
      return express5().post(PATH, async (req, res, next) => handle(req, res, next));
    },
  ],
  [
    "a function in a route of Koa",
    (receiver) => {
      const handle = koaAdapter(receiver);
      return koaApp(
        koa3,
        new Router().post(PATH, (ctx, next) => handle(ctx as KoaContext, next)),
      );
    },
  ],
];

describe("a receiver without a path in a host that hands over whole paths", () => {
  it.each(WHOLE_PATHS)("gets the signed requests of %s, and no others", async (_, mount) => {
    const { receiver, ids, log } = receiverOf();
    const origin = await serve(mount(receiver));
    expect((await send(origin, PATH, { method: "POST", body })).status).toBe(404);
    const headers = { "x-service-signature": `t=1, s=${"0".repeat(64)}` };
    expect((await send(origin, PATH, { headers })).status).toBe(404);
    expect([ids, log]).toEqual([[], []]);
    expect([await deliver(origin), ids, log]).toEqual([204, [EVENT_ID], []]);
  });

  it("tells deliveries of Standard Webhooks by their header", async () => {
    const key = "whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";
    const { receiver } = receiverOf({ secrets: undefined, publicKeys: key });
    const origin = await serve(nodeAdapter(receiver));
    const headers = { "webhook-signature": "v1a,x" };
    expect((await send(origin, PATH, { method: "POST", headers, body })).status).toBe(400);
    expect(await deliver(origin)).toBe(404);
  });

  it.each<[string, Mount, Partial<ReceiverOptions>]>([
    ["below a prefix", (receiver) => nodeAdapter(receiver, { prefix: "/webhooks" }), {}],
    ["below a path", (receiver) => express5().use("/webhooks", expressAdapter(receiver)), {}],
    ["with the option path", (receiver) => nodeAdapter(receiver), { path: "/webhooks" }],
  ])("but mounted %s leaves the rest to other receivers without a word", async (_, mount, changes) => {
    const { receiver, log } = receiverOf(changes);
    const origin = await serve(mount(receiver));
    expect([await deliver(origin), log]).toEqual([404, []]);
    expect([await deliver(origin, "/webhooks"), log]).toEqual([204, []]);
  });

  it("takes deliveries at the root only if its path is set to the root", async () => {
    const { receiver } = receiverOf({ path: "/" });
    const origin = await serve(nodeAdapter(receiver));
    expect([await deliver(origin), await deliver(origin, "/")]).toEqual([404, 204]);
  });
});

it("fastifyAdapter in place of a route's handler says at once what to write", () => {
  const { receiver } = receiverOf();
  const misused = fastifyAdapter as unknown as (service: Receiver) => RequestListener;
  expect(() => misused(receiver)).toThrow(/is a plugin.*app\.register\(fastifyAdapter, \{ service, prefix/);
});
