// Hono, here on Node. `prefix` is the full path, also in an app that is mounted below another.
import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { bearer, createWebhooks } from "postbell";
import { fetchAdapter } from "postbell/fetch";
import { memoryStorage } from "postbell/memory";
import { createReceiver } from "postbell/receiver";

const { API_KEY, WEBHOOK_SECRET, PORT = 3000 } = process.env;
const authenticate = (request) => (bearer(request) === API_KEY ? { id: "key-1", account: "shop" } : null);
const storage = memoryStorage();
const webhooks = createWebhooks({
  storage,
  events: { "order.paid": { description: "An order was paid." } },
  access: { authenticate, canRead: () => true },
  destinations: { allowHttp: true, allowPrivateNetworks: true }, // for development
});
const receiver = createReceiver({
  body: "plain",
  secrets: WEBHOOK_SECRET,
  onEvent: ({ type }) => console.log("received", type),
});
const api = fetchAdapter(webhooks, { prefix: "/api" });
const hooks = fetchAdapter(receiver, { prefix: "/hooks" });

const app = new Hono();
app.all("/api/*", (c) => api(c.req.raw));
app.post("/hooks", (c) => hooks(c.req.raw));
app.post("/orders/:id/paid", async (c) => {
  const data = { order: c.req.param("id"), total: (await c.req.json()).total };
  const { id } = await webhooks.emit({ type: "order.paid", account: "shop", data });
  return c.json({ event: id }, 202);
});

const server = serve({ fetch: app.fetch, hostname: "127.0.0.1", port: Number(PORT) });
await webhooks.start();
process.once("SIGTERM", () => server.close(() => webhooks.stop().then(() => storage.close())));
