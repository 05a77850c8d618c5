// One Express host with both services: what is published over the content interface reaches the
// webhooks' subscribers as an event of the host's own type. `node examples/content-and-webhooks.js
// --once` ends with exit code 0 if the verified notification came, and 1 if not.
import { createServer } from "node:http";
import express from "express";
import { bearer, createWebhooks } from "postbell";
import { createContent } from "postbell/content";
import { expressAdapter } from "postbell/express";
import { memoryStorage } from "postbell/memory";
import { users, writeSample } from "./support/sample-content.js";
import { startSubscriber } from "./support/subscriber.js";

const once = process.argv.includes("--once");
const apiKey = "demo-key";
const editorKey = "editor-key";
const say = (...words) => console.log(...words);

// 1. The host: both services below one path.
const subscriber = await startSubscriber();
const app = express();
const server = createServer(app);
await new Promise((resolve, reject) => {
  server.once("error", reject);
  server.listen(once ? 0 : Number(process.env.PORT ?? 3000), "127.0.0.1", resolve);
});
const base = `http://127.0.0.1:${server.address().port}`;

const webhooks = createWebhooks({
  storage: memoryStorage(),
  access: {
    authenticate: (request) => (bearer(request) === apiKey ? { id: "key-1", account: "website" } : null),
    canRead: () => true,
  },
  events: { "post.published": "Post" },
  // The subscriber of this example lives on this machine, behind its own certificate.
  destinations: { allowPrivateNetworks: true, ca: subscriber.ca },
});
const content = createContent({
  storage: memoryStorage(),
  site: { url: base, name: "A clinic by the sea" },
  authenticate: ({ headers }) => (headers.authorization === `Bearer ${editorKey}` ? { id: 2 } : null),
  users,
  changed: ({ collection, id, status }) => {
    if (collection !== "posts" || status.before === "publish" || status.after !== "publish") return;
    emitPublished(id).catch((error) => say(`Post ${id} was not announced:`, error));
  },
});
app.use("/api", expressAdapter(webhooks), expressAdapter(content));
await writeSample(content);
await webhooks.start();

// 2. A change of content becomes an event. It carries what anybody may read.
async function emitPublished(id) {
  const { body } = await content.request({ method: "GET", path: `/core/v2/posts/${id}`, as: null });
  const resource = { resourceType: "Post", id: `${id}`, title: body.title.rendered, link: body.link };
  await webhooks.emit({ type: "post.published", account: "website", resource });
}

async function ask(method, path, key, body) {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const response = await fetch(base + path, { method, headers, body: JSON.stringify(body) });
  if (!response.ok)
    throw new Error(`${method} ${path} was refused: ${response.status} ${await response.text()}`);
  return response.json();
}

// 3. Somebody subscribes.
const { webhook, secret } = await ask("POST", "/api/v1/webhooks", apiKey, {
  url: subscriber.url,
  event_types: ["post.published"],
});
let arrived = () => {};
const arrival = new Promise((resolve) => {
  arrived = resolve;
});
subscriber.receive(secret, ({ event }) => {
  const { resource } = event.context[0].resource.entry[0];
  say(`  subscriber: verified ${event["hub.event"]}: ${resource.title}, ${resource.link}`);
  arrived(true);
});

// 4. An editor writes a draft, which is nobody's business, and publishes it.
const draft = await ask("POST", "/api/core/v2/posts", editorKey, { title: "Closed on Monday" });
say(`Draft ${draft.id} written.`);
await ask("PUT", `/api/core/v2/posts/${draft.id}`, editorKey, { status: "publish" });
say(`Post ${draft.id} published.`);

const deadline = setTimeout(() => arrived(false), 30_000);
const ok = await arrival;
clearTimeout(deadline);
await webhooks.idle();

async function close() {
  await webhooks.stop({ graceMs: 1_000 });
  subscriber.close();
  server.close();
  server.closeAllConnections();
}

if (once || !ok) {
  await close();
  say(ok ? "Done: published, delivered and verified." : "Failed: no verified notification within 30 s.");
  process.exitCode = ok ? 0 : 1;
} else {
  process.once("SIGINT", () => void close());
  say(`
Still serving on ${base}. Try:

  curl -s ${base}/api/core/v2/posts
  curl -s ${base}/api/core/v2/posts -H 'Authorization: Bearer ${editorKey}' -H 'Content-Type: application/json' -d '{"title":"Another one","status":"publish"}'
  curl -s ${base}/api/v1/webhooks/${webhook.id} -H 'Authorization: Bearer ${apiKey}'
`);
}
