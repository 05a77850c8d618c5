// Koa 2 and 3. Postbell stands in front of the body parser: a receiver needs the raw bytes.
import Koa from "koa";
import bodyParser from "koa-bodyparser";
import { bearer, createWebhooks } from "postbell";
import { koaAdapter } from "postbell/koa";
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

const app = new Koa();
app.use(koaAdapter(webhooks, { prefix: "/api" }));
app.use(koaAdapter(receiver, { prefix: "/hooks" }));
app.use(bodyParser());
app.use(async (ctx) => {
  const order = /^\/orders\/([^/]+)\/paid$/.exec(ctx.path)?.[1];
  if (order === undefined) return;
  const data = { order, total: ctx.request.body.total };
  const { id } = await webhooks.emit({ type: "order.paid", account: "shop", data });
  Object.assign(ctx, { status: 202, body: { event: id } });
});

const server = app.listen(PORT, "127.0.0.1");
await webhooks.start();
process.once("SIGTERM", () => server.close(() => webhooks.stop().then(() => storage.close())));
