/**
 * Mounts a service in a `node:http` server, alone or in a connect-style chain.
 *
 * @module postbell/node
 */

import type { IncomingMessage, ServerResponse } from "node:http";
import type { TLSSocket } from "node:tls";
import type { Service } from "../src/http/types.js";
import { serve } from "./bridge.js";
import { checkService, type MountOptions, mountAt, readPrefix } from "./mount.js";

export type { MountOptions } from "./mount.js";

/** What {@link nodeAdapter} takes beside the service. */
export type NodeAdapterOptions = MountOptions;

/** A listener for `node:http`, or, with `next`, middleware for connect. */
export type NodeHandler = (
  req: IncomingMessage,
  res: ServerResponse,
  next?: (error?: unknown) => void,
) => void;

/** What connect-style hosts and body parsers put on a request. */
type ConnectRequest = IncomingMessage & {
  readonly originalUrl?: string;
  readonly body?: unknown;
  readonly rawBody?: unknown;
};

/**
 * A request listener for `http.createServer`. With `next`, as connect passes it, a path that is not the service's and every error
 * go there; without it they are answered with a plain 404 and 500.
 *
 * Errors: PostbellError `invalid_option`.
 */
export function nodeAdapter(service: Service, options?: NodeAdapterOptions): NodeHandler {
  checkService("nodeAdapter", service);
  const prefix = readPrefix("nodeAdapter", options);
  return (req, res, next = (error) => conclude(res, error)) => {
    const { url = "/", originalUrl, body, rawBody } = req as ConnectRequest;
    const mount = mountAt(prefix, url, originalUrl);
    if (mount === undefined) {
      next();
      return;
    }
    const protocol = (req.socket as Partial<TLSSocket>).encrypted === true ? "https" : "http";
    serve(service, req, res, { mount, protocol, host: req.headers.host, body, rawBody }, next);
  };
}

function conclude(res: ServerResponse, error: unknown): void {
  if (res.headersSent) {
    res.destroy();
    return;
  }
  for (const name of res.getHeaderNames()) res.removeHeader(name);
  res.statusCode = error === undefined ? 404 : 500;
  res.setHeader("content-type", "text/plain; charset=utf-8");
  res.end(error === undefined ? "Not Found" : "Internal Server Error");
}
