/**
 * Mounts a service in Fastify 5, as a plugin that starts and stops it with the server.
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
import { isPromiseLike } from "../src/core/next-turn.js";
import { readOptions, value } from "../src/core/options.js";
import type { HttpRequest, HttpResponse, Service } from "../src/http/types.js";
import { callService, readable, toBuffer } from "./bridge.js";
import { readHostRequest } from "./host-request.js";
import { checkService, cutSegments, type MountOptions, prefixOption, withoutTrailingSlash } from "./mount.js";
import type { AdapterContext } from "./node-request.js";

export type { MountOptions } from "./mount.js";

/** The options of `register(fastifyAdapter, …)`. */
export interface FastifyAdapterOptions extends MountOptions {
  /** The service. It starts when the server is ready and stops when the server closes. */
  service: Service;
  /**
   * The name of a property of the instance that holds the service: `"webhooks"` sets
   * `app.webhooks`. Default: no property. Set it if your routes call the service.
   */
  decorate?: string | undefined;
}

const OPTIONS = {
  // `checkService` checks it, as in every adapter.
  service: value<Service | undefined>("a service", () => true, undefined),
  prefix: prefixOption,
  decorate: value<string | undefined>(
    "a name",
    (value) => typeof value === "string" && value !== "",
    undefined,
  ),
};

/**
 * The services of an instance by prefix. Several may share one, but Fastify takes each route once.
 */
const mounted = new WeakMap<FastifyInstance, Map<string, Service[]>>();

/** Throws at once, so that `app.post(path, fastifyAdapter(service))` says what to write instead. */
const plugin: FastifyPluginAsync<FastifyAdapterOptions> = (app, options) => {
  if (typeof (app as Partial<FastifyInstance>).register === "function") return register(app, options);
  throw new PostbellError(
    "invalid_option",
    "fastifyAdapter is a plugin, not the handler of a route: app.register(fastifyAdapter, { service, prefix: '/webhooks/in' }).",
    { field: "service" },
  );
};

const register: FastifyPluginAsync<FastifyAdapterOptions> = async (app, options) => {
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

/** Adds the routes in a separate scope, so that its settings stay inside. */
function mount(scope: FastifyInstance, root: string, services: Service[]): void {
  passContentTypes(scope);
  const handler = createHandler(scope, services);
  const isRoot = root === "";
  // At the root, the wildcard of OPTIONS belongs to the host: @fastify/cors, for one, has it.
  const method = scope.supportedMethods.filter((name) => !isRoot || name !== "OPTIONS");
  // At the root, the wildcard also covers "/", which the host may have as a separate route.
  for (const url of isRoot ? ["/*"] : ["/*", ""])
    addRoute(scope, { method, url, exposeHeadRoute: false, handler });
}

/**
 * Lets every content type through to the service. Fastify refuses some before it looks for a
 * parser, so they get another type until the parser is chosen.
 */
function passContentTypes(scope: FastifyInstance): void {
  scope.removeAllContentTypeParsers();
  const asSent = new WeakMap<FastifyRequest, FastifyRequest["headers"]>();
  const restore = (request: FastifyRequest): void => {
    const headers = asSent.get(request);
    if (headers !== undefined) request.headers = headers;
  };
  scope.addHook("preParsing", (request, _reply, payload, done) => {
    const { headers } = request;
    // Fastify parses no body of these methods, so nothing would restore the header.
    const isBodyless = BODYLESS.has(request.method);
    if (!isBodyless && isRefused(request.method, headers["content-type"])) {
      asSent.set(request, headers);
      request.headers = { ...headers, "content-type": OPAQUE };
    }
    done(null, payload);
  });
  // Passes the stream on unread, since a `preParsing` hook of the host may have replaced it.
  scope.addContentTypeParser("*", (request, payload, done) => {
    restore(request);
    done(null, payload);
  });
  scope.addHook("preValidation", (request, _reply, done) => {
    restore(request);
    done();
  });
}

function createHandler(scope: FastifyInstance, services: Service[]) {
  return (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> | undefined => {
    const context = buildContext(request, scope.prefix);
    const call: Call = (service) => callService(service, request.raw, reply.raw, context);
    for (const [place, service] of services.entries()) {
      const pending = call(service);
      if (isPromiseLike(pending)) {
        const others = services.slice(place + 1);
        return findResponse(pending, others, call).then((response) => finish(request, reply, response));
      }
      if (pending === undefined) continue;
      respond(reply, pending);
      // Fastify would wait for a reply that is returned, since it has a `then`.
      return undefined;
    }
    finish(request, reply, undefined);
    return undefined;
  };
}

/** Fastify's list. `preValidation` restores the header for a bodyless method of the host. */
const BODYLESS: Set<string> = new Set(["GET", "HEAD", "TRACE"]);

const OPAQUE = "application/octet-stream";

/** True if Fastify would refuse the request: an invalid media type, or a QUERY without one. */
const isRefused = (method: string, contentType: string | undefined): boolean =>
  contentType === undefined
    ? method === "QUERY"
    : !/^[\w!#$%&'*+.^`|~-]+\/[\w!#$%&'*+.^`|~-]+(?:;|$)/.test(contentType);

function addRoute(scope: FastifyInstance, route: RouteOptions): void {
  try {
    scope.route(route);
  } catch (cause) {
    if ((cause as { code?: unknown }).code !== "FST_ERR_DUPLICATED_ROUTE") throw cause;
    const where = scope.prefix || "the root";
    throw new PostbellError(
      "invalid_option",
      `fastifyAdapter: the host has a wildcard route at ${where}; choose a prefix that only the service uses.`,
      { field: "prefix", cause },
    );
  }
}

type Call = (service: Service) => ReturnType<typeof callService>;

/** Returns the pending response, or the first one of the other services. */
async function findResponse(
  pending: ReturnType<Call>,
  others: Service[],
  call: Call,
): Promise<HttpResponse | undefined> {
  let response = await pending;
  for (const service of others) response ??= await call(service);
  return response;
}

function buildContext(request: FastifyRequest, prefix: string): AdapterContext {
  const { raw, protocol, host, body } = request;
  const stream = body instanceof Readable ? body : undefined;
  const { rawBody } = request as { rawBody?: unknown };
  const mount = cutSegments(prefix, raw.url ?? "/");
  return { mount, protocol, host, stream, body: undefined, rawBody, hostRequest: request };
}

/**
 * Returns Fastify's request, with what plugins and hooks before the service added to it. For
 * hooks such as `authenticate` of `createContent` and `authorize` of `createPortal`.
 *
 * @example
 * ```ts
 * const authenticate = (request: HttpRequest) => fastifyRequest(request).session.user;
 * ```
 *
 * @throws PostbellError `invalid_argument` if the request did not come through an adapter
 */
export const fastifyRequest = <T extends FastifyRequest = FastifyRequest>(request: HttpRequest): T =>
  readHostRequest("fastifyRequest", request);

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
 * A Fastify plugin that mounts a service.
 *
 * The host keeps its content-type parsers, hooks and not-found handler; its hooks run for the
 * service's requests too. Fastify itself responds with 404 to a method it does not know, unless
 * `app.addHttpMethod("PROPFIND")` added it before, and with 400 to a path that it cannot decode.
 * OPTIONS belongs to the host at the root, and to the service below a prefix.
 *
 * @example
 * ```ts
 * await app.register(fastifyAdapter, { service: webhooks, prefix: "/api", decorate: "webhooks" });
 * ```
 *
 * @throws PostbellError `invalid_option`, also if the host has a wildcard route at the same prefix
 *   (if that route comes later, Fastify throws a separate error)
 */
export const fastifyAdapter = fastifyPlugin(plugin, { fastify: "5.x", name: "postbell" });
