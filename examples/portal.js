// An Express host with the portal behind its own session, and a subscriber whose endpoint is down. `node examples/portal.js` serves the page;
// with `--once` it repairs the endpoint the way the page does, and ends with exit code 0 if the event came, and 1 if not.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import express from "express";
import { createWebhooks } from "postbell";
import { expressAdapter } from "postbell/express";
import { memoryStorage } from "postbell/memory";
import { createPortal } from "postbell/portal";
import { startSubscriber } from "./support/subscriber.js";

const once = process.argv.includes("--once");
const say = (...words) => console.log(...words);
const account = { id: "portal", account: "clinic" };

const subscriber = await startSubscriber();
const webhooks = createWebhooks({
  storage: memoryStorage(),
  access: { authenticate: () => null, canRead: () => true },
  // The subscriber of this example lives on this machine, behind its own certificate.
  destinations: { allowPrivateNetworks: true, ca: subscriber.ca },
});

// 1. The host's own sessions decide who may look. Here, whoever opens /login is Ada of the clinic.
const sessions = new Map();
const sessionOf = (cookies = "") => sessions.get(/(?:^|; )session=([\w-]+)/.exec(cookies)?.[1]);
const portal = createPortal({
  webhooks,
  title: "Webhooks of the clinic",
  authorize: ({ headers }) => sessionOf(headers.cookie) ?? null,
});

const app = express();
app.get("/login", (_request, response) => {
  const id = randomUUID();
  sessions.set(id, { name: "Ada", subscriber: account });
  response.cookie("session", id, { httpOnly: true, sameSite: "lax" }).redirect("/portal/");
});
app.use("/portal", expressAdapter(portal));
const server = createServer(app);
await new Promise((resolve, reject) => {
  server.once("error", reject);
  server.listen(once ? 0 : Number(process.env.PORT ?? 3000), "127.0.0.1", resolve);
});
const base = `http://127.0.0.1:${server.address().port}`;
await webhooks.start();

// 2. An event meets an endpoint that is down.
const { webhook, secret } = await webhooks.registrations.create(account, { url: subscriber.url });
let isUp = false;
let arrived = () => {};
const arrival = new Promise((resolve) => {
  arrived = resolve;
});
subscriber.receive(secret, () => {
  if (!isUp) throw new Error("the database is away, say");
  arrived(true);
});
const resource = { resourceType: "Patient", id: "p1" };
await webhooks.emit({ type: "patient.updated", account: account.account, resource });
await webhooks.idle();

async function close() {
  await webhooks.stop({ graceMs: 1_000 });
  server.close();
  server.closeAllConnections();
  subscriber.close();
}

if (once) {
  // 3. What the page does when an operator opens it, finds the delivery and presses "Send again".
  const stranger = await fetch(`${base}/portal/`);
  say(`Without a session: ${stranger.status}`);
  const login = await fetch(`${base}/login`, { redirect: "manual" });
  const cookie = login.headers.get("set-cookie").split(";")[0];
  const page = await fetch(`${base}/portal/`, { headers: { cookie } });
  say(`With a session: ${page.status} ${page.headers.get("content-type")}`);
  const path = `${base}/portal/api/webhooks/${webhook.id}/deliveries`;
  const { deliveries } = await (await fetch(`${path}?state=pending`, { headers: { cookie } })).json();
  const [{ id, attempts }] = deliveries;
  say(`Pending: ${id}, the last attempt: HTTP ${attempts.at(-1).status}`);
  isUp = true;
  const resent = await fetch(`${path}/${id}/resend`, {
    method: "POST",
    headers: { cookie, "x-postbell-portal": "1" },
  });
  say(`Sent again: ${resent.status}`);
  const deadline = setTimeout(() => arrived(false), 10_000);
  const ok = stranger.status === 401 && page.ok && (await arrival);
  clearTimeout(deadline);
  await close();
  say(ok ? "Done: repaired through the portal." : "Failed: the event did not come.");
  process.exitCode = ok ? 0 : 1;
} else {
  isUp = true;
  process.once("SIGINT", () => void close());
  process.once("SIGTERM", () => void close());
  say(`Open ${base}/login`);
}
