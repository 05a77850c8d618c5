// An Express host with the portal behind its own session, and three endpoints: one healthy, one
// failing and one that was disabled. `node examples/portal.js` serves the page; with `--once` it
// repairs both endpoints the way the page does, and ends with exit code 0 if all their events came,
// and 1 if not.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import express from "express";
import { createWebhooks } from "postbell";
import { createContent } from "postbell/content";
import { expressAdapter } from "postbell/express";
import { memoryFiles } from "postbell/files";
import { memoryStorage } from "postbell/memory";
import { createPortal } from "postbell/portal";
import { manualClock } from "postbell/testing";
import { users, writeSample } from "./support/sample-content.js";
import { startEndpoints } from "./support/three-endpoints.js";

const once = process.argv.includes("--once");
const say = (...words) => console.log(...words);
const account = { id: "portal", account: "clinic" };
const HOUR = 3_600_000;

// For the show alone: this clock is moved by hand, so that the last four days pass in a second.
// Leave `clock` out in earnest.
const clock = manualClock(Date.now() - 100 * HOUR);
const endpoints = await startEndpoints({
  clock,
  onArrival: ({ path, type }) => say(`${path} received ${type}`),
});
const webhooks = createWebhooks({
  storage: memoryStorage(),
  access: { authenticate: () => null, canRead: () => true },
  // So that the portal shows how an answer began. Off by default: an endpoint may quote the record
  // that it refuses.
  delivery: { excerptCharacters: 200 },
  limits: { auditEntries: 1_000 }, // for the page Activity
  notify: {
    warning: ({ webhook, disableAt }) => say(`${webhook.url} fails; disabled at ${disableAt.toISOString()}`),
    disabled: ({ webhook }) => say(`${webhook.url} was disabled`),
  },
  // The endpoints of this example live on this machine, behind their own certificate.
  destinations: { allowPrivateNetworks: true, ca: endpoints.ca },
  clock,
});
const content = createContent({
  storage: memoryStorage(),
  files: memoryFiles(),
  site: { name: "A clinic by the sea", url: "https://www.example.org" },
  authenticate: () => null,
  users,
});
await writeSample(content);

// 1. The host's own sessions decide who may look. Here, whoever opens /login is Ada of the clinic.
const sessions = new Map();
const sessionOf = (cookies = "") => sessions.get(/(?:^|; )session=([\w-]+)/.exec(cookies)?.[1]);
const portal = createPortal({
  webhooks,
  content,
  title: "A clinic by the sea",
  authorize: ({ headers }) => sessionOf(headers.cookie) ?? null,
});

const app = express();
app.get("/login", (_request, response) => {
  const id = randomUUID();
  sessions.set(id, { name: "Ada", subscriber: account, userId: 1, canReadRecords: true });
  response.cookie("session", id, { httpOnly: true, sameSite: "lax" }).redirect("/portal/");
});
app.use("/portal", expressAdapter(portal));

// 2. The subscribers' side, on a page of its own.
const emit = () =>
  webhooks.emit({
    type: "patient.updated",
    account: account.account,
    resource: { resourceType: "Patient", id: "p1" },
  });
app.get("/endpoints", (_request, response) => response.send(endpoints.page()));
app.post("/endpoints/repair", (_request, response) => {
  endpoints.repairLab();
  response.redirect("/endpoints");
});
app.post("/endpoints/emit", async (_request, response) => {
  await emit();
  response.redirect("/endpoints");
});
const server = createServer(app);
await new Promise((resolve, reject) => {
  server.once("error", reject);
  server.listen(once ? 0 : Number(process.env.PORT ?? 3000), "127.0.0.1", resolve);
});
const base = `http://127.0.0.1:${server.address().port}`;
await webhooks.start();

// 3. Four days: the archive has moved and told nobody, and for two hours now the lab has failed.
async function passHours(hours) {
  const until = clock.now() + hours * HOUR;
  while (clock.now() < until) {
    await webhooks.idle();
    await clock.advance(Math.min(clock.nextTimerAt() ?? until, until) - clock.now());
  }
  await webhooks.idle();
}
const webhookIds = {};
for (const [path, listensAt] of [
  ["/ward", "/ward"],
  ["/lab", "/lab"],
  ["/old-archive", "/archive"],
]) {
  const { webhook, secret } = await webhooks.registrations.create({
    subscriber: account,
    url: endpoints.url(path),
  });
  webhookIds[path] = webhook.id;
  endpoints.receive(listensAt, secret);
}
await emit();
await passHours(97);
await emit();
await passHours(1);
endpoints.breakLab();
await emit();
await passHours(1);
await emit();
await passHours(1);

let isOpen = true;
/** From here on the clock is right. */
async function followTheTime() {
  while (isOpen) {
    await clock.advance(Math.max(0, Date.now() - clock.now()));
    await sleep(50);
  }
}
const followed = followTheTime();

async function close() {
  isOpen = false;
  await followed;
  await webhooks.stop();
  await content.stop();
  server.close();
  server.closeAllConnections();
  endpoints.close();
}

if (once) {
  // 4. What the page does when an operator repairs both.
  const stranger = await fetch(`${base}/portal/`);
  say(`Without a session: ${stranger.status}`);
  const login = await fetch(`${base}/login`, { redirect: "manual" });
  const cookie = login.headers.get("set-cookie").split(";")[0];
  const page = await fetch(`${base}/portal/`, { headers: { cookie } });
  say(`With a session: ${page.status} ${page.headers.get("content-type")}`);
  const ask = async (path, method = "GET", body) => {
    const headers = { cookie, "x-postbell-portal": "1", "content-type": "application/json" };
    const answer = await fetch(`${base}/portal/api/v1/webhooks/${path}`, {
      method,
      headers,
      body: body && JSON.stringify(body),
    });
    return { status: answer.status, body: await answer.json() };
  };

  const lab = webhookIds["/lab"];
  const { deliveries } = (await ask(`${lab}/deliveries?state=pending`)).body;
  const { attempts } = (await ask(`${lab}/deliveries/${deliveries[0].id}`)).body;
  const { status, excerpt } = attempts.at(-1);
  say(`The lab: ${deliveries.length} wait, the last attempt: HTTP ${status}: ${excerpt}`);
  await fetch(`${base}/endpoints/repair`, { method: "POST" });
  for (const { id } of deliveries)
    say(`Sent again: ${(await ask(`${lab}/deliveries/${id}/resend`, "POST")).status}`);

  const archive = webhookIds["/old-archive"];
  const change = { url: endpoints.url("/archive"), status: "ENABLED" };
  say(`The archive, at its new address: ${(await ask(archive, "PUT", change)).body.status}`);
  const since = new Date(clock.now() - 101 * HOUR).toISOString();
  const { count } = (await ask(`${archive}/recover`, "POST", { since })).body;
  say(`Recovered: ${count}`);

  const arrivedAt = (wanted) => endpoints.arrivals().filter(({ path }) => path === wanted).length;
  const deadline = Date.now() + 10_000;
  const isWhole = () => ["/ward", "/lab", "/archive"].every((path) => arrivedAt(path) === 4);
  while (!isWhole() && Date.now() < deadline) await sleep(50);
  const ok = stranger.status === 401 && page.ok && isWhole();
  await close();
  say(ok ? "Done: repaired through the portal." : "Failed: not all events came.");
  process.exitCode = ok ? 0 : 1;
} else {
  process.once("SIGINT", () => void close());
  process.once("SIGTERM", () => void close());
  say(`
One endpoint fails, one has been disabled. Find out why, repair both, and get them the events that they lost:

  the portal              ${base}/login
  the subscribers' side   ${base}/endpoints   (repair the lab here, and see what arrives)
`);
}
