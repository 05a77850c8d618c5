// `node scripts/stacks.js [name …]`: installs each host of examples/stacks with the packed package,
// as its reader would, and runs it: registers a webhook, causes an event, receives it verified,
// sends one to the host's own receiver, and ends it during an attempt. Without names, all but
// Next.js, whose dependencies are too large for every run.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { nodeAdapter } from "postbell/node";
import { createReceiver } from "postbell/receiver";

const root = resolve(import.meta.dirname, "..");
const stacks = join(root, "examples/stacks");
const API_KEY = "s3cret";
const WEBHOOK_SECRET = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";
/** Ends what hangs. */
const LIMIT_MS = 120_000;

/** Runs with another major of the framework than its package.json names. */
const FURTHER = { express: [["express", "^4.21.0"]], koa: [["koa", "^2.16.0"]] };

/** Copies a host into `folder` and installs it, with the tarball as `postbell`. */
function install(name, folder, { tarball, versions }) {
  cpSync(join(stacks, name), folder, { recursive: true });
  const file = join(folder, "package.json");
  const manifest = JSON.parse(readFileSync(file, "utf8"));
  Object.assign(manifest.dependencies, { postbell: `file:${tarball}` }, Object.fromEntries(versions));
  writeFileSync(file, JSON.stringify(manifest));
  const npm = (...words) =>
    execFileSync("npm", words, { cwd: folder, stdio: ["ignore", "ignore", "inherit"] });
  npm("install", "--no-audit", "--no-fund", "--loglevel=error");
  if (manifest.scripts.build !== undefined) npm("run", "--silent", "build");
}

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  return port;
}

/**
 * Starts a host as `npm start` does, but without npm, which ends before its child. Resolves once it
 * serves.
 */
async function start(folder) {
  const port = await freePort();
  const words = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")).scripts.start.split(" ");
  const settings = words.filter((word) => word.includes("=")).map((word) => word.split("="));
  const [program, ...args] = words.slice(settings.length);
  const child = spawn(program === "node" ? process.execPath : join("node_modules/.bin", program), args, {
    cwd: folder,
    env: {
      ...{ ...process.env, PORT: String(port), HOSTNAME: "127.0.0.1", API_KEY, WEBHOOK_SECRET },
      ...Object.fromEntries(settings),
    },
    stdio: ["ignore", "pipe", "inherit"],
    detached: true,
  });
  let output = "";
  child.stdout.on("data", (bytes) => {
    output += bytes;
  });
  const base = `http://127.0.0.1:${port}`;
  const until = Date.now() + LIMIT_MS;
  while (child.exitCode === null && Date.now() < until) {
    const response = await fetch(`${base}/api/v1/webhooks`).catch(() => undefined);
    if (response?.status === 401) return { base, child, output: () => output };
    await sleep(100);
  }
  throw new Error(`the host does not serve: ${output}`);
}

const post = (url, body, headers = {}) =>
  fetch(url, { method: "POST", headers: { "content-type": "application/json", ...headers }, body });

/** Registers an endpoint of this process and causes an event. Resolves with it, verified. */
async function receiveEvent(base, server) {
  const { port } = server.address();
  const registered = await post(
    `${base}/api/v1/webhooks`,
    JSON.stringify({ url: `http://127.0.0.1:${port}/`, event_types: ["order.*"] }),
    { authorization: `Bearer ${API_KEY}` },
  );
  assert.equal(registered.status, 201);
  const { secret: secrets } = await registered.json();
  return inTime("an event", (done, fail) => {
    server.once("request", nodeAdapter(createReceiver({ body: "plain", secrets, onEvent: done })));
    void payOrder(base).catch((error) => fail(error));
  });
}

async function payOrder(base) {
  assert.equal((await post(`${base}/orders/7/paid`, '{"total":42}')).status, 202);
}

/** Resolves as `start` decides. Rejects if that takes too long. */
const inTime = (what, start) =>
  new Promise((done, fail) => {
    setTimeout(() => fail(new Error(`waited in vain for ${what}`)), LIMIT_MS).unref();
    start(done, fail);
  });

/** Ends a host during an attempt: it has to wait for the response, and then to exit. */
async function endDuringAttempt(base, child, server) {
  const attempt = inTime("an attempt", (done) => server.once("request", (...both) => done(both)));
  await payOrder(base);
  const [request, response] = await attempt;
  const exit = inTime("the exit", (done) => child.once("exit", done));
  signal(child, "SIGTERM");
  await sleep(500);
  assert.ok(!request.socket.destroyed, "the host did not wait for its attempt");
  response.writeHead(204).end();
  await exit;
}

/** Sends an event to the receiver of the host, as another service of Postbell would. */
async function sendEvent(base) {
  const body = JSON.stringify({
    id: crypto.randomUUID(),
    type: "stock.low",
    timestamp: new Date().toISOString(),
    data: {},
  });
  const send = (secret) => {
    const t = Math.floor(Date.now() / 1000);
    const s = createHmac("sha256", secret).update(`${t}.${body}`).digest("hex");
    return post(`${base}/hooks`, body, { "x-service-signature": `t=${t}, s=${s}` });
  };
  assert.equal((await send("whsec_wrong")).status, 400);
  assert.equal((await send(WEBHOOK_SECRET)).status, 204);
}

/** Sends a signal to a host and what it has started, if they still run. */
function signal({ pid }, name) {
  try {
    if (pid !== undefined) process.kill(-pid, name);
  } catch {
    // It has ended.
  }
}

async function check(folder) {
  const { base, child, output } = await start(folder);
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    const { type, data } = await receiveEvent(base, server);
    assert.deepEqual({ type, data }, { type: "order.paid", data: { order: "7", total: 42 } });
    await sendEvent(base);
    assert.match(output(), /received stock\.low/);
    await endDuringAttempt(base, child, server);
  } finally {
    server.close();
    server.closeAllConnections();
    signal(child, "SIGKILL");
  }
}

const folder = mkdtempSync(join(tmpdir(), "postbell-stacks-"));
try {
  const packed = execFileSync("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", folder], {
    cwd: root,
    encoding: "utf8",
  });
  const tarball = join(folder, JSON.parse(packed)[0].filename);
  const given = process.argv.slice(2);
  const names = given.length > 0 ? given : readdirSync(stacks).filter((name) => name !== "nextjs");
  for (const name of names) {
    for (const versions of [[], ...(FURTHER[name] ?? []).map((version) => [version])]) {
      const copy = mkdtempSync(join(folder, `${name}-`));
      install(name, copy, { tarball, versions });
      await check(copy);
      console.log(`${name} ${versions.flat().at(-1) ?? ""}: delivered, verified, received, ended`);
      rmSync(copy, { recursive: true, force: true });
    }
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
