// Redis (or Valkey) servers for the examples, from the PATH, on free ports of this machine. They go
// with the example, and so does what they stored.
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const host = "127.0.0.1";
const brand = ["redis", "valkey"].find((name) => !spawnSync(`${name}-server`, ["--version"]).error);

/** Durable as in earnest: every write is on its way to the disk within a second. */
export async function localRedis(args = [], triesLeft = 10) {
  if (!brand)
    throw new Error(
      "This example needs redis-server or valkey-server on the PATH, or else REDIS_URL or REDIS_CLUSTER.",
    );
  const folder = mkdtempSync(join(tmpdir(), "postbell-example-"));
  // Out of reach of the ports that the system hands out, also the bus of a Cluster, 10 000 above.
  const port = 10_000 + Math.floor(Math.random() * 12_000);
  const place = ["--bind", host, "--port", port, "--dir", folder, "--save", "", "--appendonly", "yes"];
  // Detached, so that Ctrl-C ends the example first, which still has something to store.
  const server = spawn(`${brand}-server`, [...place.map(String), ...args], { detached: true });
  const ended = new Promise((resolve) => server.once("close", resolve));
  const end = () => {
    server.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  };
  process.once("exit", end);
  const stop = async () => {
    server.kill();
    await ended;
    process.off("exit", end);
    rmSync(folder, { recursive: true, force: true });
  };

  let log = "";
  const ready = new Promise((resolve) => {
    server.stdout.on("data", (chunk) => {
      log += chunk;
      if (/ready to accept connections/i.test(log)) resolve(true);
    });
  });
  if (await Promise.race([ready, ended.then(() => false)]))
    return { url: `redis://${host}:${port}`, host, port, stop };
  await stop();
  if (triesLeft > 1 && /address already in use/i.test(log)) return localRedis(args, triesLeft - 1);
  throw new Error(`${brand}-server ended at its start:\n${log}`);
}

/** A Cluster of three masters. */
export async function localCluster() {
  const nodes = [];
  const stop = () => Promise.all(nodes.map((node) => node.stop()));
  try {
    while (nodes.length < 3) nodes.push(await localRedis(["--cluster-enabled", "yes"]));
    const addresses = nodes.map(({ port }) => `${host}:${port}`);
    execFileSync(`${brand}-cli`, ["--cluster", "create", ...addresses, "--cluster-yes"]);
  } catch (error) {
    await stop();
    throw error;
  }
  return { nodes: nodes.map(({ port }) => ({ host, port })), stop };
}
