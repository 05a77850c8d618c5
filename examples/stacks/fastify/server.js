// Fastify 5. The plugin starts the service with the server, and stops it when the server closes.
import fastify from "fastify";
import { bearer, createWebhooks } from "postbell";
import { fastifyAdapter } from "postbell/fastify";
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

const app = fastify();
await app.register(fastifyAdapter, { service: webhooks, prefix: "/api" });
await app.register(fastifyAdapter, { service: receiver, prefix: "/hooks" });
app.addHook("onClose", () => storage.close());
app.post("/orders/:id/paid", async (request, reply) => {
  const data = { order: request.params.id, total: request.body.total };
  const { id } = await webhooks.emit({ type: "order.paid", account: "shop", data });
  return reply.code(202).send({ event: id });
});

await app.listen({ port: Number(PORT) });
process.once("SIGTERM", () => void app.close());
