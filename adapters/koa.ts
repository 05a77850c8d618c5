/**
 * Mounts a service in Koa 2 and 3.
 *
 * @module postbell/koa
 */

import type { IncomingMessage, ServerResponse } from "node:http";
import { isPromiseLike } from "../src/core/promise-like.js";
import type { HttpResponse, Service } from "../src/http/types.js";
import { readable, sendResponse, toBuffer } from "./bridge.js";
import { checkService, type MountOptions, mountAt, readPrefix } from "./mount.js";

export type { MountOptions } from "./mount.js";

/** What {@link koaAdapter} takes beside the service. */
export type KoaAdapterOptions = MountOptions;

/** What the adapter needs of Koa's context; kept free of Koa's types, whose versions 2 and 3 differ. */
export interface KoaContext {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly request: { readonly body?: unknown; readonly rawBody?: unknown };
  readonly originalUrl: string;
  readonly protocol: string;
  readonly host: string;
  status: number;
  body: unknown;
  /** Sets headers of the response. */
  set(headers: { readonly [name: string]: unknown }): void;
  /** Takes a header of the answer away. */
  remove(name: string): void;
}

/** What Koa takes as middleware. */
export type KoaMiddleware = (ctx: KoaContext, next: () => Promise<unknown>) => Promise<void>;

/**
 * A middleware: `app.use(koaAdapter(service, { prefix: "/api" }))`. A path that is not the service's goes to `next()`; an error
 * rejects, as Koa expects it. `baseUrl` follows Koa's `app.proxy`.
 *
 * Errors: PostbellError `invalid_option`.
 */
export function koaAdapter(service: Service, options?: KoaAdapterOptions): KoaMiddleware {
  checkService("koaAdapter", service);
  const prefix = readPrefix("koaAdapter", options);
  return async (ctx, next) => {
    const { req, res, request, protocol, host } = ctx;
    const mount = mountAt(prefix, req.url ?? "/", ctx.originalUrl);
    const view = mount && { mount, protocol, host, body: request.body, rawBody: request.rawBody };
    const answered = view && sendResponse(service, req, res, view);
    const response = isPromiseLike(answered) ? await answered : answered;
    if (response === undefined) await next();
    else respond(ctx, response);
  };
}

function respond(ctx: KoaContext, response: HttpResponse): void {
  const { body } = response;
  // A default type of the host would make Koa take no body for the JSON value `null`.
  ctx.remove("content-type");
  if (typeof body === "string" || body instanceof Uint8Array) {
    setHead(ctx, response);
    const hasType = ctx.res.hasHeader("content-type");
    ctx.body = toBuffer(body);
    // Koa guesses a type where there is none.
    if (!hasType) ctx.remove("content-type");
    return;
  }
  if (body === null) {
    ctx.body = null;
  } else {
    const stream = readable(body);
    // Koa 2 would leave a response open whose body fails half-way.
    stream.once("error", () => ctx.res.headersSent && ctx.res.destroy());
    ctx.body = stream;
  }
  // To Koa, no body means 204, and it takes the stream for binary data.
  ctx.remove("content-type");
  setHead(ctx, response);
}

function setHead(ctx: KoaContext, { status, headers }: HttpResponse): void {
  ctx.status = status;
  ctx.set(headers);
}
