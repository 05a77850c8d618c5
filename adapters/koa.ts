/**
 * Mounts a service in Koa 2 and 3.
 *
 * @module postbell/koa
 */

import type { IncomingMessage, ServerResponse } from "node:http";
import { isPromiseLike } from "../src/core/next-turn.js";
import type { HttpRequest, HttpResponse, Service } from "../src/http/types.js";
import { callService, readable, toBuffer } from "./bridge.js";
import { readHostRequest } from "./host-request.js";
import { checkService, type MountOptions, mountAt, readPrefix } from "./mount.js";

export type { MountOptions } from "./mount.js";

/** The options of {@link koaAdapter}. */
export type KoaAdapterOptions = MountOptions;

/** The part of Koa's context that the adapter needs. Koa's types differ between 2 and 3. */
export interface KoaContext {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly request: { readonly body?: unknown; readonly rawBody?: unknown };
  readonly originalUrl: string;
  readonly protocol: string;
  readonly host: string;
  /** The routes of `@koa/router` whose path matches. Those of `router.use` have no methods. */
  readonly matched?: readonly { readonly methods: readonly string[]; readonly stack: readonly unknown[] }[];
  status: number;
  body: unknown;
  /** Sets headers of the response. */
  set(headers: { readonly [name: string]: unknown }): void;
  /** Removes a header of the response. */
  remove(name: string): void;
}

/** Middleware for Koa. */
export type KoaMiddleware = (ctx: KoaContext, next: () => Promise<unknown>) => Promise<void>;

/**
 * Creates Koa middleware for a service. A path that is not the service's goes to `next()`; an error
 * rejects, as Koa expects. `baseUrl` follows Koa's `app.proxy`.
 *
 * @example
 * ```ts
 * const app = new Koa();
 * app.use(koaAdapter(webhooks, { prefix: "/api" }));
 * ```
 *
 * @throws PostbellError `invalid_option` for an unknown or invalid option
 */
export function koaAdapter(service: Service, options?: KoaAdapterOptions): KoaMiddleware {
  checkService("koaAdapter", service);
  const prefix = readPrefix("koaAdapter", options);
  const middleware: KoaMiddleware = async (ctx, next) => {
    const { req, res, request, protocol, host } = ctx;
    const mount = mountAt(prefix, req.url ?? "/", ctx.originalUrl);
    const { body, rawBody } = request;
    const isRouted = ctx.matched?.some(
      ({ methods, stack }) => methods.length > 0 && stack.includes(middleware),
    );
    const context = mount && { mount, protocol, host, body, rawBody, isRouted, hostRequest: ctx };
    const pending = context && callService(service, req, res, context);
    const response = isPromiseLike(pending) ? await pending : pending;
    if (response === undefined) await next();
    else respond(ctx, response);
  };
  return middleware;
}

/**
 * Returns Koa's context, with what middleware before the service added to it. For hooks such as
 * `authenticate` of `createContent` and `authorize` of `createPortal`.
 *
 * @example
 * ```ts
 * const authenticate = (request: HttpRequest) => koaContext<Koa.Context>(request).state.user;
 * ```
 *
 * @throws PostbellError `invalid_argument` if the request did not come through an adapter
 */
export const koaContext = <T = KoaContext>(request: HttpRequest): T => readHostRequest("koaContext", request);

function respond(ctx: KoaContext, response: HttpResponse): void {
  const { body } = response;
  // With a default type of the host, Koa would send the JSON value `null` for no body.
  ctx.remove("content-type");
  if (typeof body === "string" || body instanceof Uint8Array) {
    setHead(ctx, response);
    const hasType = ctx.res.hasHeader("content-type");
    ctx.body = toBuffer(body);
    // Koa guesses a missing type.
    if (!hasType) ctx.remove("content-type");
    return;
  }
  if (body === null) {
    ctx.body = null;
  } else {
    const stream = readable(body);
    // Koa 2 would leave the response open if its body fails half-way.
    stream.once("error", () => ctx.res.headersSent && ctx.res.destroy());
    ctx.body = stream;
  }
  // Koa turns an empty body into a 204 and gives a stream a binary type.
  ctx.remove("content-type");
  setHead(ctx, response);
}

function setHead(ctx: KoaContext, { status, headers }: HttpResponse): void {
  ctx.status = status;
  ctx.set(headers);
}
