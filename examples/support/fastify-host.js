// One process of a Fastify host whose webhooks live in Redis. Any number of them may run, and
// nothing in here knows of the others.
import fastify from "fastify";
import { bearer, createWebhooks } from "postbell";
import { fastifyAdapter } from "postbell/fastify";
import { redisStorage } from "postbell/redis";

const { REDIS_URL, REDIS_PREFIX, API_KEY, SUBSCRIBER_CA } = process.env;

const storage = redisStorage({ url: REDIS_URL, prefix: REDIS_PREFIX });
const service = createWebhooks({
  storage,
  access: {
    authenticate: (request) => (bearer(request) === API_KEY ? { id: "key-1", account: "clinic" } : null),
    // Asked by the process that is about to make an attempt: so the example can tell which one that
    // is.
    canRead: (_subscriber, { id }) => {
      process.send({ attempting: id });
      return true;
    },
  },
  // The subscriber of this example lives on this machine, behind its own certificate.
  destinations: { allowPrivateNetworks: true, ca: SUBSCRIBER_CA },
  // For the show: one attempt at a time keeps a process busy, and a retry is due after 3 s instead
  // of 15 min.
  delivery: { concurrency: 1, slowConcurrency: 1 },
  retry: { intervalsMs: [3_000], everyMs: 8_000, windowMs: 60_000 },
});

const app = fastify();
await app.register(fastifyAdapter, { service, prefix: "/api", decorate: "webhooks" });
app.post("/patients", async ({ body: ids }) => {
  const emitted = await app.webhooks.emit(
    ids.map((id) => ({
      type: "patient.created",
      account: "clinic",
      resource: { resourceType: "Patient", id },
    })),
  );
  return { process: process.pid, events: emitted.map(({ id }) => id) };
});
app.get("/log/:webhookId", ({ params: { webhookId } }) => app.webhooks.deliveries.list({ webhookId }));
// Processes of one `node:cluster` share the port that the first of them gets.
await app.listen({ host: "127.0.0.1", port: 0 });

async function close() {
  await app.close();
  await storage.close();
  process.disconnect();
}
process.once("SIGTERM", () => void close());
// Ctrl-C reaches all processes at once; the first one says when to end.
process.on("SIGINT", () => {});
