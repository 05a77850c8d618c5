// Two businesses in one process: a shop with events of its own, and a clinic with the built-in
// clinical events. Each has its API, its portal and a schema in one Postgres database.
//
//   DATABASE_URL=postgres://localhost/demo node examples/shop-and-clinic.js
//
// It shows the bytes that a subscriber of each one gets, then serves until it is stopped. With
// `--once` it ends instead: with exit code 0 if both notifications were verified.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import express from "express";
import { bearer, createWebhooks } from "postbell";
import { expressAdapter } from "postbell/express";
import { createPortal } from "postbell/portal";
import { postgresStorage } from "postbell/postgres";
import { createReceiver } from "postbell/receiver";

const { DATABASE_URL: url, PORT = 3000 } = process.env;
if (!url) throw new Error("Set DATABASE_URL to a Postgres database.");
const isOnce = process.argv.includes("--once");

/** A service on a schema of its own, whose API key is its name. */
async function open(schema, options) {
  const storage = postgresStorage({ url, schema });
  await storage.migrate();
  const subscriber = { id: "key-1", account: schema };
  const webhooks = createWebhooks({
    storage,
    access: {
      authenticate: (request) => (bearer(request) === schema ? subscriber : null),
      canRead: () => true,
    },
    // Development only: the subscribers of this example are on this machine, without TLS.
    destinations: { allowHttp: true, allowPrivateNetworks: true },
    ...options,
  });
  // In earnest: the session of the request. Here, everybody may look.
  const portal = createPortal({ webhooks, title: schema, authorize: () => ({ name: "Ada", subscriber }) });
  return { webhooks, portal, subscriber, storage };
}

const shop = await open("shop", {
  events: {
    "order.paid": {
      description: "A customer has paid an order.",
      schema: {
        type: "object",
        required: ["order", "total"],
        properties: { order: { type: "string" }, total: { type: "number", minimum: 0 } },
      },
      example: { order: "7", total: 42 },
    },
  },
  signature: { standardWebhooks: true },
});
const clinic = await open("clinic", {});

const app = express();
for (const [name, { webhooks, portal }] of Object.entries({ shop, clinic })) {
  app.use(`/${name}/api`, expressAdapter(webhooks));
  app.use(`/${name}/portal`, expressAdapter(portal));
  await webhooks.start();
}

/** Registers an endpoint, emits an event, and resolves with what arrived, verified. */
async function deliver({ webhooks, subscriber }, event, body) {
  const endpoint = createServer().listen(0, "127.0.0.1");
  await once(endpoint, "listening");
  const { webhook, secret } = await webhooks.registrations.create({
    subscriber,
    url: `http://127.0.0.1:${endpoint.address().port}/hooks`,
  });
  const receiver = createReceiver({ secrets: secret, body, onEvent: () => {} });
  const { id } = await webhooks.emit(event);
  const [request, response] = await once(endpoint, "request");
  const bytes = Buffer.concat(await request.toArray());
  const result = await receiver.receive({ body: bytes, headers: request.headers });
  response.writeHead(result.ok ? 204 : result.status).end();
  await webhooks.idle();
  await webhooks.registrations.remove(webhook.id);
  endpoint.close();
  assert.equal(result.ok && result.event.id, id);
  const sent = Object.entries(request.headers).map(([name, value]) => `${name}: ${value}`);
  console.log(`\n--- ${subscriber.account}\nPOST ${request.url}\n${sent.join("\n")}\n\n${bytes.toString()}`);
}

const order = { order: "7", total: 42 };
await deliver(shop, { type: "order.paid", account: "shop", data: order }, "plain");
await assert.rejects(shop.webhooks.emit({ type: "order.paid", account: "shop", data: { total: -1 } }));
const resource = { resourceType: "Patient", id: "p1", name: [{ family: "Chalmers" }] };
await deliver(clinic, { type: "patient.created", account: "clinic", resource });
await assert.rejects(clinic.webhooks.emit({ type: "order.paid", account: "clinic", data: order }));

const stop = async () => {
  await Promise.all(
    [shop, clinic].map(({ webhooks, storage }) => webhooks.stop().then(() => storage.close())),
  );
};
if (isOnce) await stop();
else {
  const server = app.listen(PORT, "127.0.0.1", () =>
    console.log(`\nPortals: http://127.0.0.1:${PORT}/shop/portal/ and …/clinic/portal/`),
  );
  process.once("SIGINT", () => server.close(() => void stop()));
}
