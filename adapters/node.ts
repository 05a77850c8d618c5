/**
 * Mounts a service in a `node:http` server, alone or in a connect-style chain.
 *
 * @module postbell/node
 */

import type { IncomingMessage, ServerResponse } from "node:http";
import type { TLSSocket } from "node:tls";
import type { HttpRequest, Service } from "../src/http/types.js";
import { serve } from "./bridge.js";
import { readHostRequest } from "./host-request.js";
import { checkService, type MountOptions, mountAt, readPrefix } from "./mount.js";

export type { MountOptions } from "./mount.js";

/** The options of {@link nodeAdapter}. */
export type NodeAdapterOptions = MountOptions;

/** A listener for `node:http`, or, with `next`, middleware for connect. */
export type NodeHandler = (
  req: IncomingMessage,
  res: ServerResponse,
  next?: (error?: unknown) => void,
) => void;

/** A request with the members that connect-style hosts and body parsers add. */
type ConnectRequest = IncomingMessage & {
  originalUrl?: string;
  body?: unknown;
  rawBody?: unknown;
};

/**
 * Creates a request listener for `http.createServer`, or middleware for connect.
 *
 * Called with `next`, as connect does, it passes on a path that is not the service's and every
 * error. Without `next` it responds to them with a plain 404 and 500.
 *
 * @example
 * ```ts
 * http.createServer(nodeAdapter(webhooks, { prefix: "/api" })).listen(3000);
 * ```
 *
 * @throws PostbellError `invalid_option` for an unknown or invalid option
 */
export function nodeAdapter(service: Service, options?: NodeAdapterOptions): NodeHandler {
  checkService("nodeAdapter", service);
  const prefix = readPrefix("nodeAdapter", options);
  return (req, res, next = (error) => respondPlain(res, error)) => {
    const { url = "/", originalUrl, body, rawBody } = req as ConnectRequest;
    const mount = mountAt(prefix, url, originalUrl);
    if (mount === undefined) {
      next();
      return;
    }
    const protocol = (req.socket as Partial<TLSSocket>).encrypted === true ? "https" : "http";
    const context = { mount, protocol, host: req.headers.host, body, rawBody, hostRequest: req };
    serve(service, { req, res, next }, context);
  };
}

/**
 * Returns Node's request, with what middleware before the service added to it. For hooks such
 * as `authenticate` of `createContent` and `authorize` of `createPortal`.
 *
 * @example
 * ```ts
 * const isLocal = (request: HttpRequest) => nodeRequest(request).socket.remoteAddress === "::1";
 * ```
 *
 * @throws PostbellError `invalid_argument` if the request did not come through an adapter
 */
export const nodeRequest = <T extends IncomingMessage = IncomingMessage>(request: HttpRequest): T =>
  readHostRequest("nodeRequest", request);

function respondPlain(res: ServerResponse, error: unknown): void {
  if (res.headersSent) {
    res.destroy();
    return;
  }
  for (const name of res.getHeaderNames()) res.removeHeader(name);
  res.statusCode = error === undefined ? 404 : 500;
  res.setHeader("content-type", "text/plain; charset=utf-8");
  res.end(error === undefined ? "Not Found" : "Internal Server Error");
}
