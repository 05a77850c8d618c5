/**
 * Mounts a service in Express 4 and 5.
 *
 * @module postbell/express
 */

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Service } from "../src/http/types.js";
import { serve } from "./bridge.js";
import { checkService, mountAt } from "./mount.js";

/**
 * The part of Express's request that the adapter needs. Express's own types differ between 4 and 5.
 */
export interface ExpressRequest extends IncomingMessage {
  readonly protocol: string;
  readonly hostname: string;
  readonly originalUrl: string;
  readonly body?: unknown;
  readonly rawBody?: unknown;
}

/** Middleware for Express. */
export type ExpressHandler = (
  req: ExpressRequest,
  res: ServerResponse,
  next: (error?: unknown) => void,
) => void;

/**
 * Creates Express middleware for a service. A path that is not the service's goes to `next()`, an
 * error to `next(error)`.
 *
 * `baseUrl` follows Express's `trust proxy`. Express ignores the case of the mount path, unless
 * `case sensitive routing` is set; the path below it arrives as the client sent it.
 *
 * @example
 * ```ts
 * const app = express();
 * app.use("/api", expressAdapter(webhooks));
 * ```
 *
 * @throws PostbellError `invalid_option` if `service` is not a service
 */
export function expressAdapter(service: Service): ExpressHandler {
  checkService("expressAdapter", service);
  return (req, res, next) => {
    const mount = mountAt("", req.url ?? "/", req.originalUrl);
    if (mount === undefined) {
      next();
      return;
    }
    const { protocol, body, rawBody } = req;
    serve(service, { req, res, next }, { mount, protocol, host: readHost(req), body, rawBody });
  };
}

/**
 * `hostname` follows `trust proxy` in both versions but has no port. The header has the port,
 * unless a proxy changed the host.
 */
function readHost({ hostname, headers: { host } }: ExpressRequest): string | undefined {
  return host?.startsWith(`${hostname}:`) ? host : hostname;
}
