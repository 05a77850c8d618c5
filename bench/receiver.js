// The other side of the benchmark, in a process of its own: answers 200 to every POST at once, and never to one whose path is /hang.
import { createServer } from "node:http";
import { createServer as createTlsServer } from "node:https";

function answer(request, response) {
  request.resume();
  request.on("end", () => {
    if (request.url !== "/hang") response.writeHead(200, { "content-length": "0" }).end();
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
process.send?.({ plain: `http://localhost:${plain}`, tls: `https://localhost:${tls}` });
