/**
 * Mounts a service in Express 4 and 5.
 *
 * @module postbell/express
 */

import type { IncomingMessage, ServerResponse } from "node:http";
import type { HttpRequest, Service } from "../src/http/types.js";
import { serve } from "./bridge.js";
import { readHostRequest } from "./host-request.js";
import { checkService, type MountOptions, mountAt, readPrefix } from "./mount.js";

export type { MountOptions } from "./mount.js";

/** The options of {@link expressAdapter}. */
export type ExpressAdapterOptions = MountOptions;

/**
 * The part of Express's request that the adapter needs. Express's types differ between 4 and 5.
 */
export interface ExpressRequest extends IncomingMessage {
  readonly protocol: string;
  readonly hostname: string;
  readonly originalUrl: string;
  readonly body?: unknown;
  readonly rawBody?: unknown;
  /** The route that was matched last. The functions of `app.post` are the handles of its stack. */
  readonly route?: { readonly stack?: readonly { readonly handle?: unknown }[] } | undefined;
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
 * Mount it below a path with `app.use`, or give `prefix`. `baseUrl` follows Express's `trust
 * proxy`. Express ignores the case of the mount path, unless `case sensitive routing` is set; the
 * path below it arrives as the client sent it.
 *
 * @example
 * ```ts
 * const app = express();
 * app.use("/api", expressAdapter(webhooks));
 * ```
 *
 * @throws PostbellError `invalid_option` if `service` is not a service, and for an unknown or
 *   invalid option
 */
export function expressAdapter(service: Service, options?: ExpressAdapterOptions): ExpressHandler {
  checkService("expressAdapter", service);
  const prefix = readPrefix("expressAdapter", options);
  const handler: ExpressHandler = (req, res, next) => {
    const mount = mountAt(prefix, req.url ?? "/", req.originalUrl);
    if (mount === undefined) {
      next();
      return;
    }
    const { protocol, body, rawBody } = req;
    // `route` stays when a route calls `next()`, so it may be another one.
    const isRouted = req.route?.stack?.some(({ handle }) => handle === handler);
    const context = { mount, protocol, host: readHost(req), body, rawBody, isRouted, hostRequest: req };
    serve(service, { req, res, next }, context);
  };
  return handler;
}

/**
 * Returns Express's request, with what middleware before the service added to it. For hooks
 * such as `authenticate` of `createContent` and `authorize` of `createPortal`.
 *
 * @example
 * ```ts
 * const authorize = (request: HttpRequest) => {
 *   const { user } = expressRequest<express.Request>(request);
 *   return user ? { name: user.name, userId: user.id } : null;
 * };
 * ```
 *
 * @throws PostbellError `invalid_argument` if the request did not come through an adapter
 */
export const expressRequest = <T extends IncomingMessage = ExpressRequest>(request: HttpRequest): T =>
  readHostRequest("expressRequest", request);

/**
 * `hostname` follows `trust proxy` in both versions but has no port. The header has the port,
 * unless a proxy changed the host.
 */
function readHost({ hostname, headers: { host } }: ExpressRequest): string | undefined {
  return host?.startsWith(`${hostname}:`) ? host : hostname;
}
