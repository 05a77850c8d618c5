/**
 * Mounts a service in Fastify 5, as a plugin that ties it to the server's life.
 *
 * @module postbell/fastify
 */

import { Readable } from "node:stream";
import type {
  FastifyInstance,
  FastifyPluginAsync,
  FastifyReply,
  FastifyRequest,
  RouteOptions,
} from "fastify";
import fastifyPlugin from "fastify-plugin";
import { PostbellError } from "../src/core/errors.js";
import { readOptions, value } from "../src/core/options.js";
import { isPromiseLike } from "../src/core/promise-like.js";
import type { HttpResponse, Service } from "../src/http/types.js";
import { type AdapterContext, readable, sendResponse, toBuffer } from "./bridge.js";
import {
  checkService,
  type Mount,
  type MountOptions,
  prefixOption,
  splitTarget,
  withoutTrailingSlash,
} from "./mount.js";

export type { MountOptions } from "./mount.js";

/** What `register(fastifyAdapter, …)` takes. */
export interface FastifyAdapterOptions extends MountOptions {
  /** Started when the server is ready, stopped when it closes. */
  readonly service: Service;
  /** The name under which the service is found on the instance: with `"webhooks"`, `app.webhooks`. Default: no decoration. */
  readonly decorate?: string | undefined;
}

const OPTIONS = {
  // `checkService` says what it has to be, as in every adapter.
  service: value<Service | undefined>("a service", () => true, undefined),
  prefix: prefixOption,
  decorate: value<string | undefined>(
    "a name",
    (given) => typeof given === "string" && given !== "",
    undefined,
  ),
};

/** The services mounted by one instance, by prefix: two of them may share one, and Fastify takes each route once. */
const mounted = new WeakMap<FastifyInstance, Map<string, Service[]>>();

const plugin: FastifyPluginAsync<FastifyAdapterOptions> = async (app, options) => {
  const { service, prefix, decorate } = readOptions("fastifyAdapter", OPTIONS, options);
  checkService("fastifyAdapter", service);
  if (decorate !== undefined) app.decorate(decorate, service);
  app.addHook("onReady", async () => service.start?.());
  app.addHook("onClose", async () => service.stop?.());

  const root = withoutTrailingSlash(prefix);
  const byPrefix = mounted.get(app) ?? new Map<string, Service[]>();
  mounted.set(app, byPrefix);
  const others = byPrefix.get(root);
  if (others !== undefined) {
    others.push(service);
    return;
  }
  const services = [service];
  byPrefix.set(root, services);
  await app.register(async (scope) => mount(scope, root, services), { prefix: root });
};

/** The routes, in a scope of their own: what is set here stays here. */
function mount(scope: FastifyInstance, root: string, services: readonly Service[]): void {
  scope.removeAllContentTypeParsers();
  // Fastify refuses some requests by their content type before it looks for a parser. Whether they are right is the service's to say.
  const asSent = new WeakMap<FastifyRequest, FastifyRequest["headers"]>();
  const putBack = (request: FastifyRequest): void => {
    const headers = asSent.get(request);
    if (headers !== undefined) request.headers = headers;
  };
  scope.addHook("preParsing", (request, _reply, payload, done) => {
    const { headers } = request;
    // Fastify parses no body of these, so that nothing would put the header back.
    const isBodyless = BODYLESS.has(request.method);
    if (!isBodyless && isRefused(request.method, headers["content-type"])) {
      asSent.set(request, headers);
      request.headers = { ...headers, "content-type": OPAQUE };
    }
    done(null, payload);
  });
  // Hands the stream on unread, as a `preParsing` hook of the host may have replaced it.
  scope.addContentTypeParser("*", (request, payload, done) => {
    putBack(request);
    done(null, payload);
  });
  scope.addHook("preValidation", (request, _reply, done) => {
    putBack(request);
    done();
  });

  const handler = (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> | undefined => {
    const view = viewOf(request, scope.prefix);
    const ask: Ask = (service) => sendResponse(service, request.raw, reply.raw, view);
    for (const [place, service] of services.entries()) {
      const answered = ask(service);
      if (isPromiseLike(answered)) {
        const others = services.slice(place + 1);
        return firstOf(answered, others, ask).then((response) => finish(request, reply, response));
      }
      if (answered === undefined) continue;
      respond(reply, answered);
      // Fastify would wait for a reply that is returned, since it has a `then`.
      return undefined;
    }
    finish(request, reply, undefined);
    return undefined;
  };
  const isRoot = root === "";
  // At the root the wildcard of OPTIONS is the host's: @fastify/cors, for one, has it.
  const method = scope.supportedMethods.filter((name) => !isRoot || name !== "OPTIONS");
  // There it also stands for "/", which the host may have as a route of its own.
  for (const url of isRoot ? ["/*"] : ["/*", ""])
    claim(scope, { method, url, exposeHeadRoute: false, handler });
}

/** Fastify's own list. A method that the host has added without a body is put right before validation. */
const BODYLESS: ReadonlySet<string> = new Set(["GET", "HEAD", "TRACE"]);

const OPAQUE = "application/octet-stream";

/** Whether Fastify itself would refuse it: a media type it cannot read, or a QUERY without one. */
const isRefused = (method: string, contentType: string | undefined): boolean =>
  contentType === undefined
    ? method === "QUERY"
    : !/^[\w!#$%&'*+.^`|~-]+\/[\w!#$%&'*+.^`|~-]+(?:;|$)/.test(contentType);

function claim(scope: FastifyInstance, route: RouteOptions): void {
  try {
    scope.route(route);
  } catch (cause) {
    if ((cause as { code?: unknown }).code !== "FST_ERR_DUPLICATED_ROUTE") throw cause;
    const where = scope.prefix || "the root";
    throw new PostbellError(
      "invalid_option",
      `fastifyAdapter: the host has a route of its own for all of ${where}: give a prefix that is the service's alone.`,
      { field: "prefix", cause },
    );
  }
}

/** Fastify has matched the prefix, by its own rules for case, encoding and parameters: only its segments are counted off. */
function mountOf(prefix: string, target: string): Mount {
  const { path, query } = splitTarget(target);
  let cut = 0;
  for (let at = prefix.indexOf("/"); at >= 0; at = prefix.indexOf("/", at + 1)) {
    const next = path.indexOf("/", cut + 1);
    cut = next < 0 ? path.length : next;
  }
  return { path: path.slice(cut) || "/", query, basePath: path.slice(0, cut) };
}

type Ask = (service: Service) => ReturnType<typeof sendResponse>;

/** The response that is waited for, or, where that service has none, the first one of `others`. */
async function firstOf(
  answered: ReturnType<typeof sendResponse>,
  others: readonly Service[],
  ask: Ask,
): Promise<HttpResponse | undefined> {
  let response = await answered;
  for (const service of others) response ??= await ask(service);
  return response;
}

function viewOf(request: FastifyRequest, prefix: string): AdapterContext {
  const { raw, protocol, host, body } = request;
  const stream = body instanceof Readable ? body : undefined;
  const { rawBody } = request as { readonly rawBody?: unknown };
  return { mount: mountOf(prefix, raw.url ?? "/"), protocol, host, stream, body: undefined, rawBody };
}

function finish(
  request: FastifyRequest,
  reply: FastifyReply,
  response: HttpResponse | undefined,
): FastifyReply {
  if (response !== undefined) return respond(reply, response);
  request.body = undefined;
  reply.callNotFound();
  return reply;
}

function respond(reply: FastifyReply, { status, headers, body }: HttpResponse): FastifyReply {
  reply.code(status);
  reply.headers(headers as Record<string, string | string[]>);
  // To Fastify, `null` is a JSON value.
  if (body === null) return reply.send();
  return reply.send(typeof body === "string" || body instanceof Uint8Array ? toBuffer(body) : readable(body));
}

/**
 * A plugin: `app.register(fastifyAdapter, { service, prefix: "/api", decorate: "webhooks" })`.
 *
 * The host keeps its own content-type parsers, hooks and not-found handler; its hooks do run for the service's requests.
 * Fastify itself answers 404 for methods that it does not know (`app.addHttpMethod("PROPFIND")`, called before, adds one) and 400 for
 * a path whose percent-encoding cannot be decoded. At the root OPTIONS is left to the host; below a prefix it is answered with `Allow`.
 * Errors: PostbellError `invalid_option`, also when the host has a wildcard route at the same prefix (Fastify's own where that comes later).
 */
export const fastifyAdapter = fastifyPlugin(plugin, { fastify: "5.x", name: "postbell" });
