/**
 * Mounts a service in Express 4 and 5.
 *
 * @module postbell/express
 */

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Service } from "../src/http/types.js";
import { serve } from "./bridge.js";
import { checkService, mountAt } from "./mount.js";

/** What the adapter needs of Express's request; kept free of Express's types, whose versions 4 and 5 differ. */
export interface ExpressRequest extends IncomingMessage {
  readonly protocol: string;
  readonly hostname: string;
  readonly originalUrl: string;
  readonly body?: unknown;
  readonly rawBody?: unknown;
}

/** What Express takes as middleware. */
export type ExpressHandler = (
  req: ExpressRequest,
  res: ServerResponse,
  next: (error?: unknown) => void,
) => void;

/**
 * A middleware: `app.use("/api", expressAdapter(service))`. A path that is not the service's goes to `next()`, an error to
 * `next(error)`. `baseUrl` follows Express's `trust proxy`. Express matches the mount path without regard to case, unless
 * `case sensitive routing` is set; everything below it arrives as the client sent it.
 *
 * Errors: PostbellError `invalid_option`.
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
    serve(service, req, res, { mount, protocol, host: hostOf(req), body, rawBody }, next);
  };
}

/** `hostname` obeys `trust proxy` in both versions but has no port: the header gives it, unless a proxy renamed the host. */
function hostOf({ hostname, headers: { host } }: ExpressRequest): string | undefined {
  return host?.startsWith(`${hostname}:`) ? host : hostname;
}
