// Postbell on a Redis Cluster: accounts are spread over sixteen partitions, and so over all
// masters. `node examples/cluster.js --once` ends by itself, with exit code 0 if every notification
// came, verified, and 1 if not. Takes the Cluster of REDIS_CLUSTER ("host:port,host:port"), or
// starts one of three masters.
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { Cluster } from "ioredis";
import { bearer, createWebhooks } from "postbell";
import { nodeAdapter } from "postbell/node";
import { redisStorage } from "postbell/redis";
import { localCluster } from "./support/local-redis.js";
import { startSubscriber } from "./support/subscriber.js";

const isOnce = process.argv.includes("--once");
const say = (...words) => console.log(...words);

// 1. The Cluster, and the host's own client of it.
const { REDIS_CLUSTER } = process.env;
const redis = REDIS_CLUSTER ? undefined : await localCluster();
const nodes = redis?.nodes ?? REDIS_CLUSTER.split(",").map((address) => `redis://${address}`);
const client = new Cluster(nodes);

// 2. The host: six clinics, each with a key of its own.
const subscriber = await startSubscriber();
const storage = redisStorage({ client, prefix: `example-${randomUUID()}`, partitions: 16 });
const keys = new Map(["a", "b", "c", "d", "e", "f"].map((name) => [`key-${name}`, `clinic-${name}`]));
const webhooks = createWebhooks({
  storage,
  access: {
    authenticate(request) {
      const key = bearer(request);
      return keys.has(key) ? { id: key.replace("key", "id"), account: keys.get(key) } : null;
    },
    canRead: () => true,
  },
  // The subscriber of this example lives on this machine, behind its own certificate.
  destinations: { allowPrivateNetworks: true, ca: subscriber.ca },
});
const server = createServer(nodeAdapter(webhooks, { prefix: "/api" })).listen(0, "127.0.0.1");
await once(server, "listening");
await webhooks.start();
const base = `http://127.0.0.1:${server.address().port}`;

// 3. One registration for each clinic, over REST.
const api = async (method, key, path = "", body) => {
  const response = await fetch(`${base}/api/v1/webhooks${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, ...(body && { "content-type": "application/json" }) },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${method} was refused: ${response.status} ${await response.text()}`);
  return response.json();
};
const created = new Map();
for (const key of keys.keys()) created.set(key, await api("POST", key, "", { url: subscriber.url }));
const arrived = new Set();
subscriber.receive(
  [...created.values()].map(({ secret }) => secret),
  ({ event }) => {
    const { id } = event.context[0].resource.entry[0].resource;
    say(`  subscriber: patient of ${id} verified and accepted`);
    arrived.add(id);
  },
);

// 4. An event in each clinic.
for (const account of keys.values()) {
  const resource = { resourceType: "Patient", id: account };
  await webhooks.emit({ type: "patient.created", account, resource });
}
say(`Emitted an event in each of ${keys.size} clinics.`);
const deadline = Date.now() + 30_000;
while (arrived.size < keys.size && Date.now() < deadline) await sleep(20);
await webhooks.idle();

for (const node of client.nodes("master"))
  say(`  master on port ${node.options.port}: ${await node.dbsize()} keys`);
const { ok: isSound, version, warnings } = await storage.check();
say(`Redis ${version}: ${isSound ? "nothing to warn of" : warnings.join(" ")}`);
const ok = arrived.size === keys.size;
say(ok ? "Done: delivered and verified." : "Failed: not all notifications came within 30 s.");
process.exitCode = ok ? 0 : 1;

if (ok && !isOnce) {
  say(`\nStill serving on ${base} until Ctrl-C. Try:\n`);
  say(`  curl -s ${base}/api/v1/webhooks -H 'Authorization: Bearer key-a'\n`);
  await once(process, "SIGINT");
}

// 5. The end.
for (const [key, { webhook }] of created) await api("DELETE", key, `/${webhook.id}`);
await webhooks.stop({ graceMs: 1_000 });
server.close();
server.closeAllConnections();
await storage.close();
await client.quit();
subscriber.close();
await redis?.stop();
