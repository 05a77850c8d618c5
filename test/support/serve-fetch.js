/** A node:http listener for a fetch handler, as small as it can be. */

import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

/**
 * @param {(request: Request) => Promise<Response>} handler
 * @returns {import("node:http").RequestListener}
 */
export const serveFetch = (handler) => (req, res) => void respond(handler, req, res);

/**
 * @param {(request: Request) => Promise<Response>} handler
 * @param {import("node:http").IncomingMessage} req
 * @param {import("node:http").ServerResponse} res
 */
async function respond(handler, req, res) {
  let request;
  try {
    request = toRequest(req, res);
  } catch {
    // `Request` cannot hold it: a TRACE, or a Host that is no host name.
    res.writeHead(400, { connection: "close" }).end();
    return;
  }
  try {
    const response = await handler(request);
    if (!req.complete) res.setHeader("connection", "close");
    res.statusCode = response.status;
    res.setHeaders(response.headers);
    if (response.body === null) res.end();
    else await pipeline(Readable.fromWeb(/** @type {any} */ (response.body)), res);
  } catch (error) {
    if (res.headersSent) res.destroy();
    else res.writeHead(500).end(`host error: ${/** @type {Error} */ (error).message}`);
  }
}

/**
 * @param {import("node:http").IncomingMessage} req
 * @param {import("node:http").ServerResponse} res
 */
function toRequest(req, res) {
  const controller = new AbortController();
  res.once("close", () => controller.abort());
  const { method = "GET" } = req;
  const headers = Object.entries(req.headersDistinct).flatMap(([name, values = []]) =>
    values.map((value) => /** @type {[string, string]} */ ([name, value])),
  );
  return new Request(`http://${req.headers.host}${req.url}`, {
    method,
    headers,
    body: method === "GET" || method === "HEAD" ? null : /** @type {any} */ (Readable.toWeb(req)),
    duplex: "half",
    signal: controller.signal,
  });
}
