// An Express host with Postbell mounted, and a subscriber with a server of its own. `npm start`
// shows one event arrive and goes on serving; `npm start -- --once` ends after it, with exit code 0
// if the verified notification came, and 1 if not.
import { createHash } from "node:crypto";
import { createServer } from "node:http";
import express from "express";
import { bearer, createWebhooks } from "postbell";
import { createContent } from "postbell/content";
import { expressAdapter } from "postbell/express";
import { memoryStorage } from "postbell/memory";
import { nodeAdapter } from "postbell/node";
import { createReceiver } from "postbell/receiver";
import { users, writeSample } from "./support/sample-content.js";

const once = process.argv.includes("--once");
const apiKey = "demo-key";
const editorKey = "editor-key";
const say = (...words) => console.log(...words);

// 1. The host: its own application, with the registration API and the content interface of its
// website under /api.
const keys = new Map([
  [createHash("sha256").update(apiKey).digest("hex"), { id: "key-1", account: "clinic" }],
]);
const patients = new Map([["p1", { resourceType: "Patient", id: "p1", name: [{ family: "Chalmers" }] }]]);

const webhooks = createWebhooks({
  storage: memoryStorage(),
  access: {
    authenticate: (request) =>
      keys.get(
        createHash("sha256")
          .update(bearer(request) ?? "")
          .digest("hex"),
      ),
    canRead: () => true,
  },
  // Development only: the subscriber of this example is on this machine, without TLS.
  destinations: { allowHttp: true, allowPrivateNetworks: true },
  // Three days in under a minute, for the show: leave `retry` out for the real schedule.
  retry: { intervalsMs: [2_000, 4_000], everyMs: 8_000, windowMs: 40_000 },
});

const content = createContent({
  storage: memoryStorage(),
  site: { url: "http://localhost:3000", name: "A clinic by the sea" },
  authenticate: ({ headers }) => (headers.authorization === `Bearer ${editorKey}` ? { id: 2 } : null),
  users,
});
await writeSample(content);

const app = express();
app.use("/api", expressAdapter(webhooks), expressAdapter(content));
app.put("/patients/:id", express.json(), async (request, response) => {
  const resource = { ...request.body, resourceType: "Patient", id: request.params.id };
  patients.set(resource.id, resource);
  const emitted = await webhooks.emit({ type: "patient.updated", account: "clinic", resource });
  response.json({ patient: resource, event: emitted.id, deliveries: emitted.deliveries.length });
});

// 2. The subscriber: somebody else's server.
const subscriber = createServer();

const listen = (server, port) =>
  new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", () => resolve(server.address().port));
  });

const endpoint = `http://127.0.0.1:${await listen(subscriber, 0)}/`;
const hostServer = createServer(app);
const base = `http://127.0.0.1:${await listen(hostServer, once ? 0 : Number(process.env.PORT ?? 3000))}`;
await webhooks.start();

// 3. The subscriber registers over REST, and verifies with the secret that it gets.
const registration = await fetch(`${base}/api/v1/webhooks`, {
  method: "POST",
  headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
  body: JSON.stringify({ url: endpoint, event_types: ["patient.*"] }),
});
const created = await registration.json();
if (!registration.ok)
  throw new Error(`The registration was refused: ${registration.status} ${JSON.stringify(created)}`);
say(`Registered: ${registration.status}`, created.webhook);

let requests = 0;
let arrived = () => {};
const firstArrival = new Promise((resolve) => {
  arrived = resolve;
});
const receiver = createReceiver({
  secrets: created.secret,
  // Fails on the first notification, to show the retry.
  onEvent: (notification) => {
    requests += 1;
    if (requests === 1) {
      say("  subscriber: signature verified, but fails on purpose: answers 500");
      throw new Error("the database is away, say");
    }
    say("  subscriber: notification verified and accepted:");
    say(JSON.stringify(notification, null, 2).replace(/^/gm, "    "));
    arrived(true);
  },
});
subscriber.on("request", nodeAdapter(receiver));

// 4. Something changes in the host.
const { id } = await webhooks.emit({
  type: "patient.updated",
  account: "clinic",
  resource: patients.get("p1"),
});
say(
  `Emitted patient.updated, event ${id}. A failed attempt is repeated after 2 s here (15 min by default; this schedule is compressed).`,
);

const deadline = setTimeout(() => arrived(false), 30_000);
const ok = await firstArrival;
clearTimeout(deadline);
await webhooks.idle();
const { items: deliveries } = await webhooks.deliveries.list({ webhookId: created.webhook.id });
say("Delivery log:");
for (const { at, kind, status, durationMs } of deliveries[0]?.attempts ?? []) {
  say(`  ${at.toISOString()}  ${kind}  HTTP ${status}  ${durationMs} ms`);
}

async function close() {
  await webhooks.stop({ graceMs: 1_000 });
  for (const server of [hostServer, subscriber]) {
    server.close();
    server.closeAllConnections();
  }
}

if (once || !ok) {
  await close();
  say(ok ? "Done: delivered and verified." : "Failed: no verified notification within 30 s.");
  process.exitCode = ok ? 0 : 1;
} else {
  process.once("SIGINT", () => void close());
  process.once("SIGTERM", () => void close());
  say(`
Still serving on ${base}. Try:

  curl -s ${base}/api/v1/webhooks -H 'Authorization: Bearer ${apiKey}'
  curl -s '${base}/api/core/v2/posts?search=doctor&_fields=id,title,content'
  curl -s ${base}/api/core/v2/posts -H 'Authorization: Bearer ${editorKey}' -H 'Content-Type: application/json' -d '{"title":"Closed on Monday","status":"publish"}'
  curl -s -X PUT ${base}/patients/p1 -H 'Content-Type: application/json' -d '{"name":[{"family":"Windsor"}]}'
  curl -s -X PUT ${base}/api/v1/webhooks/${created.webhook.id} -H 'Authorization: Bearer ${apiKey}' -H 'Content-Type: application/json' -d '{"url":"${endpoint}","status":"DISABLED"}'
  curl -s -X DELETE ${base}/api/v1/webhooks/${created.webhook.id} -H 'Authorization: Bearer ${apiKey}'
`);
}
