/** Delivers and serves while another library has extended `Object.prototype`, and prints what came of it: `node extended-prototype.mjs plain|extended REDIS PREFIX`. */

import { once } from "node:events";
import http from "node:http";
import express from "express";
import fastify from "fastify";
import { bearer, createWebhooks } from "postbell";
import { createContent } from "postbell/content";
import { expressAdapter } from "postbell/express";
import { fastifyAdapter } from "postbell/fastify";
import { fetchAdapter } from "postbell/fetch";
import { memoryStorage } from "postbell/memory";
import { nodeAdapter } from "postbell/node";
import { createReceiver } from "postbell/receiver";
import { redisStorage } from "postbell/redis";
import { sqliteStorage } from "postbell/sqlite";

const [, , state, url, prefix] = process.argv;
if (state === "extended") {
  Object.prototype.inheritedText = "inherited";
  Object.prototype.inheritedFunction = () => {};
}

const listen = async (server) => {
  await once(server.listen(0, "127.0.0.1"), "listening");
  return `http://127.0.0.1:${server.address().port}`;
};
/** Leaves out values that differ between two runs. */
const describeHeaders = (headers) =>
  [...headers].map(([name, value]) => (/content-type|user-agent/i.test(name) ? `${name}: ${value}` : name));
const describeResponse = async (response) => ({
  status: response.status,
  headers: describeHeaders(response.headers).sort((a, b) => a.localeCompare(b)),
  body: (await response.text()).replace(
    /[0-9a-f]{8}-[0-9a-f-]{27}|whsec_[^"]*|\d{4}-\d\d-\d\dT[^"]*|127[^"]*/g,
    "…",
  ),
});

const printed = {};
const received = [];
let receiver;
const endpoint = http.createServer((request, response) => void take(request, response));
async function take(request, response) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = Buffer.concat(chunks);
  const headers = request.rawHeaders.flatMap((name, at) =>
    at % 2 ? [] : [[name, request.rawHeaders[at + 1]]],
  );
  const path = "/in";
  const answer = await receiver.handle({
    method: "POST",
    path,
    query: "",
    headers: request.headers,
    body,
    baseUrl: "",
  });
  received.push({
    headers: describeHeaders(headers),
    keys: Object.keys(JSON.parse(body)),
    answer: answer?.status,
  });
  response.writeHead(answer?.status ?? 500).end();
}
const target = `${await listen(endpoint)}/in`;

const access = {
  authenticate: (request) => (bearer(request) === "key" ? { id: "key-1", account: "clinic" } : null),
  canRead: () => true,
};
const destinations = { allowHttp: true, allowPrivateNetworks: true };
const storages = {
  memory: () => memoryStorage(),
  sqlite: () => sqliteStorage({ file: ":memory:" }),
  redis: () => redisStorage({ url, prefix }),
};
const delivery = { headers: () => ({ "x-tenant": "a" }) };
for (const [name, open] of Object.entries(storages)) {
  const storage = open();
  const webhooks = createWebhooks({ storage, access, destinations, delivery, logger: false });
  const { secret } = await webhooks.registrations.create({
    subscriber: { id: "key-1", account: "clinic" },
    url: target,
  });
  receiver = createReceiver({ path: "/in", secrets: [secret], onEvent: () => {} });
  await webhooks.start();
  const resource = { resourceType: "Patient", id: "p" };
  const { deliveries } = await webhooks.emit({ type: "patient.updated", account: "clinic", resource });
  await webhooks.idle();
  const { state: outcome, attempts } = await webhooks.deliveries.get(deliveries[0].id);
  printed[name] = { outcome, codes: attempts.map(({ code }) => code), received: received.splice(0) };

  const fastifyApp = fastify();
  await fastifyApp.register(fastifyAdapter, { service: webhooks, prefix: "/api" });
  const hosts = {
    express: http.createServer(express().use("/api", expressAdapter(webhooks))),
    node: http.createServer(nodeAdapter(webhooks, { prefix: "/api" })),
  };
  const origins = { fastify: await fastifyApp.listen({ port: 0, host: "127.0.0.1" }) };
  for (const [host, server] of Object.entries(hosts)) origins[host] = await listen(server);
  const ask = (origin, path, more) =>
    fetch(`${origin}/api${path}`, {
      headers: { authorization: "Bearer key", "content-type": "application/json" },
      ...more,
    });
  for (const [host, origin] of Object.entries(origins)) {
    const body = JSON.stringify({ url: `${target}/${host}` });
    printed[name][host] = [
      await describeResponse(await ask(origin, "/v1/webhooks", { method: "POST", body })),
      await describeResponse(await ask(origin, "/v1/webhooks?limit=1")),
      await describeResponse(await ask(origin, "/v1/webhooks?inheritedText=1")),
      await describeResponse(await ask(origin, "/v1/event-types")),
    ];
  }
  const handle = fetchAdapter(webhooks, { prefix: "/api" });
  const request = new Request("http://host/api/v1/webhooks", { headers: { authorization: "Bearer key" } });
  printed[name].fetch = await describeResponse(await handle(request));
  await webhooks.stop();
  await storage.close();
}

const content = createContent({
  storage: memoryStorage(),
  site: { url: "https://site.test", name: "Site" },
  authenticate: () => ({ id: 1 }),
  users: [{ id: 1, slug: "ada", name: "Ada", roles: ["administrator"] }],
  logger: false,
});
const site = await listen(http.createServer(nodeAdapter(content)));
const json = { "content-type": "application/json" };
const post = { title: "A", content: "<p class='a'>b</p>", status: "publish", inheritedText: "x" };
printed.content = [];
for (const { path, more } of [
  { path: "posts", more: { method: "POST", headers: json, body: JSON.stringify(post) } },
  { path: "posts?_fields=id,title,content,inheritedText&_embed=1" },
  { path: "types" },
])
  printed.content.push(await describeResponse(await fetch(`${site}/core/v2/${path}`, more)));

process.stdout.write(JSON.stringify(printed));
process.exit();
