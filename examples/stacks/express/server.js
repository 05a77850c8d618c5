// Express 4 and 5. Postbell stands in front of the body parser: a receiver needs the raw bytes.
import express from "express";
import { bearer, createWebhooks } from "postbell";
import { expressAdapter } from "postbell/express";
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

const app = express();
app.use("/api", expressAdapter(webhooks));
app.use("/hooks", expressAdapter(receiver));
app.use(express.json());
app.post("/orders/:id/paid", async (request, response) => {
  const data = { order: request.params.id, total: request.body.total };
  const { id } = await webhooks.emit({ type: "order.paid", account: "shop", data });
  response.status(202).json({ event: id });
});

const server = app.listen(PORT, "127.0.0.1");
await webhooks.start();
process.once("SIGTERM", () => server.close(() => webhooks.stop().then(() => storage.close())));
