// Two processes of one Fastify host (support/fastify-host.js) behind one port, with one Redis
// between them. Either delivers what any of them emits, and when one is killed, the other goes on.
// `node examples/two-processes.js --once` ends by itself, with exit code 0 if all of that came
// true, and 1 if not. Takes the Redis of REDIS_URL, or starts one.
import cluster from "node:cluster";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { localRedis } from "./support/local-redis.js";
import { startSubscriber } from "./support/subscriber.js";

const apiKey = "demo-key";
const say = (...words) => console.log(...words);

const until = async (what, condition) => {
  const deadline = Date.now() + 30_000;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`Failed: not ${what} within 30 s.`);
    await sleep(20);
  }
};

// 1. A Redis, a subscriber, and two processes of the host that know nothing but the Redis.
const redis = process.env.REDIS_URL
  ? { url: process.env.REDIS_URL, stop: async () => {} }
  : await localRedis();
const subscriber = await startSubscriber();
cluster.setupPrimary({ exec: `${import.meta.dirname}/support/fastify-host.js` });
const environment = {
  REDIS_URL: redis.url,
  REDIS_PREFIX: `example-${randomUUID()}`,
  API_KEY: apiKey,
  SUBSCRIBER_CA: subscriber.ca,
};
const attempts = [];
const lastTriedBy = (patient) => attempts.findLast((attempt) => attempt.patient === patient)?.worker;

async function startHost() {
  const worker = cluster.fork(environment);
  worker.on("message", ({ attempting: patient }) => attempts.push({ patient, worker }));
  const [{ port }] = await once(worker, "listening");
  return port;
}
const [port] = await Promise.all([startHost(), startHost()]);
const base = `http://127.0.0.1:${port}`;

async function ask(method, path, body) {
  const headers = { authorization: `Bearer ${apiKey}`, ...(body && { "content-type": "application/json" }) };
  const response = await fetch(base + path, { method, headers, body: JSON.stringify(body) });
  if (!response.ok)
    throw new Error(`${method} ${path} was refused: ${response.status} ${await response.text()}`);
  return response.json();
}

// 2. The subscriber registers. It takes its time, and fails on purpose once.
const { webhook, secret } = await ask("POST", "/api/v1/webhooks", { url: subscriber.url });
const verified = new Set();
let hasFailed = false;
subscriber.receive(secret, async ({ event }) => {
  const { id } = event.context[0].resource.entry[0].resource;
  await sleep(250);
  if (id === "retried" && !hasFailed) {
    hasFailed = true;
    throw new Error("the database is away, say");
  }
  verified.add(id);
});

// 3. One process emits; whichever is free delivers.
const patients = Array.from({ length: 12 }, (_, index) => `p${index + 1}`);
const emitted = await ask("POST", "/patients", patients);
say(`Process ${emitted.process} emitted ${patients.length} events.`);
await until("delivered", () => patients.every((id) => verified.has(id)));
for (const id of patients) say(`  ${id}: verified, delivered by process ${lastTriedBy(id)?.process.pid}`);

// 4. A process is killed between its first attempt, which failed, and the retry.
await ask("POST", "/patients", ["retried"]);
const log = () => ask("GET", `/log/${webhook.id}`);
await until("attempted", async () => (await log()).items[0].attempts.length === 1);
const victim = lastTriedBy("retried");
victim.process.kill("SIGKILL");
say(`Process ${victim.process.pid} tried another event, was answered 500, and was killed.`);
await until("delivered after the kill", () => verified.has("retried"));
say(`  retried: verified, delivered by process ${lastTriedBy("retried").process.pid}`);

const ok = new Set(patients.map(lastTriedBy)).size === 2 && lastTriedBy("retried") !== victim;
say(ok ? "Done: both delivered, and one took over from the other." : "Failed: one process did it all.");
process.exitCode = ok ? 0 : 1;

if (ok && !process.argv.includes("--once")) {
  say(`
Still serving on ${base}, with one process, until Ctrl-C. Try:

  curl -s ${base}/patients -H 'Content-Type: application/json' -d '["p13"]'
  curl -s ${base}/log/${webhook.id}
`);
  await once(process, "SIGINT");
}

// 5. The end.
await ask("DELETE", `/api/v1/webhooks/${webhook.id}`);
const hosts = Object.values(cluster.workers);
for (const { process: host } of hosts) host.kill("SIGTERM");
await Promise.all(hosts.map((host) => once(host, "exit")));
subscriber.close();
await redis.stop();
