// Servers that a program may hurt: Redis, its cluster, Postgres, a proxy that loses bytes. Those
// of the tests are written in TypeScript, which Node 20 does not load.
import { once } from "node:events";
import { createServer } from "node:net";
import { build } from "esbuild";

const { outputFiles } = await build({
  stdin: {
    contents: [
      'export { startCluster, startRedis } from "./redis-server.ts";',
      'export { startProxy } from "./tcp-proxy.ts";',
      'export { startDatabase } from "../databases/support/database-server.ts";',
    ].join("\n"),
    resolveDir: new URL("../test/support", import.meta.url).pathname,
  },
  bundle: true,
  platform: "node",
  format: "esm",
  write: false,
});
const [{ contents }] = outputFiles;
const code = Buffer.from(contents).toString("base64");

/**
 * @type {typeof import("../test/support/redis-server.js") &
 *   typeof import("../test/support/tcp-proxy.js") &
 *   typeof import("../test/databases/support/database-server.js")}
 */
export const { startCluster, startDatabase, startProxy, startRedis } = await import(
  `data:text/javascript;base64,${code}`
);

/** Accepts connections and swallows what comes, as a balancer does without a server behind it. */
export async function startSink() {
  const sockets = new Set();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.resume();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: server.address().port,
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
