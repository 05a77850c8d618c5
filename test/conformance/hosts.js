// The hosts through which the cases are played: one for each adapter and version of its framework.
// Each answers the requests of `server` with `service`, mounted at `prefix`.

import express5 from "express";
import express4 from "express4";
import fastify from "fastify";
import koa3 from "koa";
import koa2 from "koa2";
import { expressAdapter } from "postbell/express";
import { fastifyAdapter } from "postbell/fastify";
import { fetchAdapter } from "postbell/fetch";
import { koaAdapter } from "postbell/koa";
import { nodeAdapter } from "postbell/node";
import { serveFetch } from "../support/serve-fetch.js";

const expressHost =
  (express) =>
  ({ server, service, prefix }) => {
    const app = express();
    app.use(prefix, expressAdapter(service));
    server.on("request", app);
  };

const koaHost =
  (Koa) =>
  ({ server, service, prefix }) => {
    const app = new Koa();
    app.use(koaAdapter(service, { prefix }));
    server.on("request", app.callback());
  };

async function fastifyHost({ server, service, prefix }) {
  const app = fastify({ serverFactory: (handler) => server.on("request", handler) });
  app.register(fastifyAdapter, { service, prefix });
  await app.ready();
}

export const HOSTS = {
  "node:http": ({ server, service, prefix }) => server.on("request", nodeAdapter(service, { prefix })),
  "Express 4": expressHost(express4),
  "Express 5": expressHost(express5),
  "Koa 2": koaHost(koa2),
  "Koa 3": koaHost(koa3),
  "Fastify 5": fastifyHost,
  fetch: ({ server, service, prefix }) => server.on("request", serveFetch(fetchAdapter(service, { prefix }))),
};
