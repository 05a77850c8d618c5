// One server of the content benchmark, in a process of its own: `content-server.js <fastify|express|koa>`, then a message with
// `constants` to send, or without, to mount the content interface on the storage that
// `openContentStorage` opens, with that `consistency`. Answers with its origin, and to "cpu" with
// what it has used.
import { once } from "node:events";
import { createServer } from "node:http";
import express from "express";
import fastify from "fastify";
import Koa from "koa";
import { expressAdapter } from "postbell/express";
import { fastifyAdapter } from "postbell/fastify";
import { koaAdapter } from "postbell/koa";
import { openContentStorage } from "./content-address.js";
import { makeSite } from "./content-site.js";

const PREFIX = "/api";
const POSTS = 200;

const serve = async (listener) => {
  const server = createServer(listener).listen(0, "127.0.0.1");
  server.keepAliveTimeout = 60_000;
  await once(server, "listening");
  return `http://127.0.0.1:${server.address().port}`;
};

/** `constants`: path → { headers, body }. Each as its framework's documentation has it. */
const hosts = {
  async fastify(service, constants) {
    const app = fastify({ keepAliveTimeout: 60_000 });
    if (service) app.register(fastifyAdapter, { service, prefix: PREFIX });
    for (const [path, { headers, body }] of constants) {
      app.get(path, (_request, reply) => reply.headers(headers).send(body));
    }
    return app.listen({ host: "127.0.0.1", port: 0 });
  },
  async express(service, constants) {
    const app = express();
    if (service) app.use(PREFIX, expressAdapter(service));
    for (const [path, { headers, body }] of constants) {
      app.get(path, (_request, response) => response.set(headers).send(body));
    }
    return serve(app);
  },
  async koa(service, constants) {
    const app = new Koa();
    if (service) app.use(koaAdapter(service, { prefix: PREFIX }));
    app.use((context) => {
      const { headers, body } = constants.get(context.path);
      context.set(headers);
      context.body = body;
    });
    return serve(app.callback());
  },
};

const [{ constants, consistency, ...address }] = await once(process, "message");
process.once("disconnect", () => process.exit(0));
const storage = await openContentStorage(address);
const service =
  constants === undefined ? (await makeSite(POSTS, { storage, consistency })).content : undefined;
await service?.start();
const answers = constants?.map(([path, { headers, body }]) => [path, { headers, body: Buffer.from(body) }]);
const origin = await hosts[process.argv[2]](service, new Map(answers));
process.on("message", () => process.send?.({ cpu: process.cpuUsage() }));
process.send?.({ origin });
