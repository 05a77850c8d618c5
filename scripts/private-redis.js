// A Redis server for programs that are not tests: benchmarks, and the cases of the content
// interface.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** A port of the loopback that nobody listens on, now at least. */
export async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

/**
 * A Redis server of this process's own, without persistence unless `appendfsync` names a policy. It
 * ends with this process, however that ends.
 */
export async function startRedis(appendfsync) {
  const port = await freePort();
  const dir = mkdtempSync(join(tmpdir(), "postbell-redis-"));
  const persistence = appendfsync ? ["--appendonly", "yes", "--appendfsync", appendfsync] : [];
  const child = spawn(
    "redis-server",
    ["--port", `${port}`, "--bind", "127.0.0.1", "--dir", dir, "--save", "", ...persistence],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  const end = () => {
    // Nothing of it is to be kept.
    child.kill("SIGKILL");
    rmSync(dir, { recursive: true, force: true });
  };
  process.once("exit", end);
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, () => process.exit(1));
  await new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", () => reject(new Error("redis-server did not start")));
    createInterface(child.stdout).on("line", (line) => {
      if (line.includes("Ready to accept connections")) resolve();
    });
  });
  return { url: `redis://127.0.0.1:${port}`, stop: end };
}
