// Somebody else's HTTPS server that receives notifications, with a certificate for localhost that
// nobody trusts unless told to.
import { createServer } from "node:https";
import { nodeAdapter } from "postbell/node";
import { createReceiver } from "postbell/receiver";
import { generate } from "selfsigned";

export async function startSubscriber() {
  const certificate = await generate([{ name: "commonName", value: "localhost" }], {
    keySize: 2048,
    extensions: [{ name: "subjectAltName", altNames: [{ type: 2, value: "localhost" }] }],
  });
  const server = createServer({ key: certificate.private, cert: certificate.cert });
  await new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  return {
    url: `https://localhost:${server.address().port}/`,
    ca: certificate.cert,
    /** From here on every request is answered by `listener`. */
    answer(listener) {
      server.on("request", listener);
    },
    /** From here on, what is signed with one of the secrets is handed to `onEvent`, once. */
    receive(secrets, onEvent) {
      server.on("request", nodeAdapter(createReceiver({ secrets, onEvent })));
    },
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
