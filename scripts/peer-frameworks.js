// A host in each framework, with spans of OpenTelemetry: registers a webhook over HTTP, emits an
// event and prints how its delivery ended. Then prints a metric as Prometheus reads it.
// scripts/peer-versions.js runs it with the oldest versions of the peers.
import { once } from "node:events";
import { createServer } from "node:http";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import express from "express";
import fastify from "fastify";
import Koa from "koa";
import { bearer, createWebhooks } from "postbell";
import { expressAdapter } from "postbell/express";
import { fastifyAdapter } from "postbell/fastify";
import { koaAdapter } from "postbell/koa";
import { memoryStorage } from "postbell/memory";
import { openTelemetry } from "postbell/opentelemetry";
import { prometheus } from "postbell/prometheus";

/** Each resolves to a server that listens on the loopback. */
const FRAMEWORKS = {
  express: (service) => listen(express().use("/api", expressAdapter(service))),
  koa: (service) => listen(new Koa().use(koaAdapter(service, { prefix: "/api" })).callback()),
  async fastify(service) {
    const app = fastify();
    await app.register(fastifyAdapter, { service, prefix: "/api" });
    await app.listen({ host: "127.0.0.1", port: 0 });
    return app.server;
  },
};

async function listen(handler) {
  const server = createServer(handler).listen(0, "127.0.0.1");
  await once(server, "listening");
  return server;
}

async function deliver(mount) {
  const spans = new InMemorySpanExporter();
  const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] });
  const webhooks = createWebhooks({
    storage: memoryStorage(),
    access: {
      authenticate: (request) => (bearer(request) === "s3cret" ? { id: "key-1", account: "clinic" } : null),
      canRead: () => true,
    },
    delivery: {
      send: async () => ({
        kind: "response",
        status: 200,
        headers: {},
        body: new Uint8Array(0),
        complete: true,
      }),
    },
    telemetry: openTelemetry({ tracerProvider }),
  });
  const server = await mount(webhooks);
  await webhooks.start();
  const response = await fetch(`http://127.0.0.1:${server.address().port}/api/v1/webhooks`, {
    method: "POST",
    headers: { authorization: "Bearer s3cret", "content-type": "application/json" },
    body: JSON.stringify({ url: "https://hooks.example.com/in" }),
  });
  const { webhook } = await response.json();
  await webhooks.emit({ type: "patient.created", account: "clinic", resource: { resourceType: "Patient" } });
  await webhooks.idle();
  const { items: deliveries } = await webhooks.deliveries.list({ webhookId: webhook.id });
  await webhooks.stop();
  server.close();
  const names = new Set(spans.getFinishedSpans().map(({ name }) => name));
  return [response.status, ...deliveries.map(({ state }) => state), ...[...names].sort()].join(" ");
}

async function scrape() {
  const { telemetry, service } = prometheus();
  telemetry.record("emitDuration", 0.2, { outcome: "stored" });
  telemetry.observe(async () => [{ metric: "deliveriesPending", labels: {}, value: 3 }]);
  const request = { method: "GET", path: "/metrics", query: "", headers: {}, body: null, baseUrl: "" };
  const { body } = await service.handle(request);
  return body.match(/^postbell_(?:emit_duration_seconds_count|deliveries_pending)\b.*$/gm).join(", ");
}

for (const [name, mount] of Object.entries(FRAMEWORKS)) console.log(`${name}: ${await deliver(mount)}`);
console.log(`prometheus: ${await scrape()}`);
process.exit();
