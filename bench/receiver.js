// The other side of the benchmark, in a process of its own: answers 200 to every POST at once, and
// never to one whose path is /hang.
import { createServer } from "node:http";
import { createServer as createTlsServer } from "node:https";

/** The monotonic clock of the machine, in ms: the sender's process reads the same one. */
const clockMs = () => Number(process.hrtime.bigint()) / 1e6;

const nothing = () => ({ count: 0, lastAt: 0, receipts: [] });
let seen = nothing();

function answer(request, response) {
  const chunks = [];
  if (request.url.startsWith("/timed")) request.on("data", (chunk) => chunks.push(chunk));
  else request.resume();
  request.on("end", () => {
    if (request.url === "/hang") return;
    seen.count++;
    seen.lastAt = clockMs();
    if (chunks.length > 0) {
      const [, id] = /"id":"([^"]+)"/.exec(Buffer.concat(chunks).toString("latin1", 0, 100)) ?? [];
      seen.receipts.push([id, seen.lastAt]);
    }
    response.writeHead(200, { "content-length": "0" }).end();
  });
}

const listen = (server) =>
  new Promise((resolve) => {
    server.keepAliveTimeout = 60_000;
    server.listen(0, "127.0.0.1", () => resolve(server.address().port));
  });

const { key, cert } = await new Promise((resolve) => {
  process.once("message", resolve);
});
process.once("disconnect", () => process.exit(0));
const [plain, tls] = await Promise.all([
  listen(createServer(answer)),
  listen(createTlsServer({ key, cert }, answer)),
]);
process.on("message", (message) => {
  if (message !== "collect") return;
  process.send?.(seen);
  seen = nothing();
});
process.send?.({ plain: `http://localhost:${plain}`, tls: `https://localhost:${tls}` });
