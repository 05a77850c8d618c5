// The other side of the benchmark, in a process of its own: answers 200 to every POST at once, and never to one whose path is /hang.
import { createServer } from "node:http";

const server = createServer((request, response) => {
  request.resume();
  request.on("end", () => {
    if (request.url !== "/hang") response.writeHead(200, { "content-length": "0" }).end();
  });
});
server.keepAliveTimeout = 60_000;
server.listen(0, "127.0.0.1", () => process.send?.({ port: server.address().port }));
process.on("disconnect", () => process.exit(0));
