/**
 * The REST server: the entry for requests, over HTTP and in the process.
 *
 * An HTTP request is authenticated, waits until the content is current, and asks the cache. A
 * cached response needs no promise. Other requests go through the stages in `pipeline.ts`.
 */

import { isPostbellError } from "../../core/errors.js";
import type { Logger } from "../../core/logger.js";
import type { BodyPace } from "../../http/body-chunks.js";
import { isMatch } from "../../http/entity-tag.js";
import type { DirectHandler, HttpRequest, HttpResponse } from "../../http/types.js";
import type { Json, JsonObject } from "../../schema/types.js";
import type { Caller } from "../auth/caller.js";
import { batchRoute } from "./batch.js";
import { createCors, isPreflight } from "./cors.js";
import { RestError } from "./error.js";
import { openApiRoute, withIndex } from "./index-routes.js";
import type { ListLimits } from "./lists.js";
import { createPipeline, type Pipeline } from "./pipeline.js";
import { PLAIN_VIEW, parseView } from "./render.js";
import { mergeParameters, readJsonBody, readObject, readQuery } from "./request-input.js";
import {
  type CacheSlot,
  createResponseCache,
  createResponseCacheKeys,
  knownQuery,
  type RenderedResponse,
} from "./response-cache.js";
import { toWordPressNames } from "./rest-headers.js";
import { createOwnPaths, createRouteTable, decodeSegments } from "./route-table.js";
import type { RestRoute, RouteCall, RouteOutcome } from "./types.js";

type MaybePromise<T> = T | Promise<T>;

type Authenticate = (request: HttpRequest) => MaybePromise<Caller>;

export interface RestServerOptions {
  /**
   * Every route except the index, the roots of the namespaces and the batch route, which are added.
   */
  routes: readonly RestRoute[];
  /**
   * Returns the OpenAPI document of all routes, mounted at `baseUrl`. Called for each request for
   * it.
   */
  openApi: (baseUrl: string) => JsonObject;
  /** Returns the members of the index that describe the site. */
  describeSite: () => JsonObject;
  /** Returns the member `authentication` of the index. Default: an empty list. */
  describeAuthentication?: (() => Json) | undefined;
  /**
   * Returns the caller of a request. If it throws, the response is 401; a RestError and an error of
   * the storage keep their status.
   */
  authenticate: Authenticate;
  /**
   * Brings the content up to date before a request, and before each item of a batch. Content for a
   * method that only reads may be slightly older.
   */
  ready: (method: string) => void | Promise<void>;
  /**
   * Returns another number whenever the response to an anonymous GET may have changed; called after
   * `ready`. Cached responses may depend only on the path, the query and the base URL.
   */
  stamp: () => number;
  cors: Parameters<typeof createCors>[0];
  /** How fast a body must arrive. A route that receives its body itself sets the pace. */
  bodyPace: BodyPace;
  limits: {
    /** The largest body of a request. */
    requestBytes: number;
    /** The size of the response cache; 0 turns it off. */
    cacheBytes: number;
  };
  lists: ListLimits;
  /** `pass`: for a path that is not of the service, `handle` returns `undefined`. */
  unknownPaths: "pass" | "answer";
  logger: Logger;
  /** Called for each look-up in the response cache. */
  onCacheLookUp?: ((isHit: boolean) => void) | undefined;
}

export interface RestServer {
  /** All routes, with those that were added. */
  routes: RestRoute[];
  /** Returns a cached response without a promise. Never throws or rejects. */
  handle: DirectHandler;
  /**
   * Handles a request for a caller that the process knows; nothing in the request says who calls.
   * If `caller` rejects, the response is the same as for an error of `authenticate`.
   */
  handleAs: (request: HttpRequest, caller: () => Promise<Caller>) => Promise<HttpResponse | undefined>;
  /**
   * Returns the response of `handle` without body limit, envelope, JSONP, validator or cache. Never
   * rejects for what the request holds.
   */
  dispatch: (request: InternalRequest) => Promise<InternalResponse>;
  /** Returns the path of the route for a path, such as `/core/v2/posts/:id`, or `undefined`. */
  findRoutePath: (path: string) => string | undefined;
}

/** @throws Error if two routes have the same path */
export function createRestServer(options: RestServerOptions): RestServer {
  const { ready, limits, lists, unknownPaths, logger } = options;
  const batch = batchRoute({ pipeline: () => pipeline, ready: () => ready("POST"), lists });
  const routes: RestRoute[] = [
    ...withIndex([batch, ...options.routes], options),
    openApiRoute(options.openApi),
  ];
  const { find, findRoutePath } = createRouteTable(routes);
  const isOwn = createOwnPaths(routes, unknownPaths);
  const cors = createCors(options.cors);
  const { requestBytes, cacheBytes } = limits;
  const pipeline = createPipeline({ find, cors, lists, requestBytes, bodyPace: options.bodyPace, logger });
  const findSlot = createResponseCache({
    bytes: cacheBytes,
    buildKey: createResponseCacheKeys(find),
    classOf: cors.classOf,
    stamp: options.stamp,
    onLookUp: options.onCacheLookUp,
  });

  const lookUp = (request: HttpRequest, caller: Caller): MaybePromise<CacheSlot> => {
    const current = ready(request.method);
    return current instanceof Promise
      ? current.then(() => findSlot(request, caller))
      : findSlot(request, caller);
  };

  /** The whole way of a request. What fails on it becomes a response here. */
  const serve = async (
    request: HttpRequest,
    authenticated: MaybePromise<Caller>,
    slot?: MaybePromise<CacheSlot>,
  ): Promise<HttpResponse> => {
    let caller: Caller | undefined;
    try {
      caller = await Promise.resolve(authenticated).catch(refuseCredentials);
      const { cached, store } = await (slot ?? lookUp(request, caller));
      if (cached !== undefined) return evaluateConditional(request, cached);
      const { response, isShareable } = await pipeline.serve(request, caller);
      if (isShareable) store?.(response);
      return evaluateConditional(request, response);
    } catch (error) {
      const rendering = { outcome: pipeline.fail(error), view: PLAIN_VIEW, caller, baseUrl: request.baseUrl };
      return evaluateConditional(request, await pipeline.renderResponse(request, rendering));
    }
  };

  const handle = (request: HttpRequest, authenticate: Authenticate): ReturnType<DirectHandler> => {
    if (!isOwn(request.path)) return undefined;
    if (isPreflight(request)) return cors.preflight(request);
    const authenticated = attempt(() => authenticate(request));
    if (authenticated instanceof Promise) return serve(request, authenticated);
    // A cached response needs no promise where nothing has to be waited for.
    const slot = attempt(() => lookUp(request, authenticated));
    if (slot instanceof Promise || slot.cached === undefined) return serve(request, authenticated, slot);
    return evaluateConditional(request, slot.cached);
  };

  return {
    routes,
    handle: (request) => handle(request, options.authenticate),
    handleAs: async (request, caller) => handle(request, caller),
    dispatch: createInProcessServer(pipeline, ready),
    findRoutePath,
  };
}

/** Calls `start`. What it throws becomes a rejection. */
function attempt<T>(start: () => MaybePromise<T>): MaybePromise<T> {
  try {
    return start();
  } catch (error) {
    return Promise.reject(error);
  }
}

/** The host's error stays hidden behind a 401, but a RestError and an unavailable storage pass. */
function refuseCredentials(error: unknown): never {
  const isStorage = isPostbellError(error, "storage_unavailable") || isPostbellError(error, "storage_full");
  if (error instanceof RestError || isStorage) throw error;
  throw new RestError(401, "rest_not_authenticated", "The credentials of the request are not accepted.");
}

// A whole response is reduced to what the request needs: conditions (RFC 9110 §13) and HEAD.

/**
 * Returns 304 if the client has these bytes, the headers alone for HEAD, otherwise `whole` itself.
 */
function evaluateConditional(request: HttpRequest, whole: RenderedResponse): HttpResponse {
  if (isMatch(request.headers["if-none-match"], whole.headers["etag"])) return notModified(whole);
  return request.method === "HEAD" ? withoutBody(whole) : whole;
}

/** The headers stay, except those that describe a body (RFC 9110 §15.4.5). */
function notModified({ headers }: RenderedResponse): HttpResponse {
  const { "content-type": _, ...others } = headers;
  return { status: 304, headers: others, body: null };
}

const withoutBody = ({ status, headers, body }: RenderedResponse): HttpResponse => ({
  status,
  headers: { ...headers, "content-length": String(body.length) },
  body: null,
});

// Requests from inside the process: the same routes and checks, without what belongs to HTTP.

/** A request from inside the process, on behalf of `caller`. */
interface InternalRequest {
  method: string;
  /** `/core/v2/posts/12`, encoded as in a URL, without a query. */
  path: string;
  query?: string | JsonObject | undefined;
  /** Names in lower case. */
  headers?: Record<string, string> | undefined;
  /** The parameters that a JSON body would have. */
  body?: JsonObject | undefined;
  caller: Caller;
  /** Links in the response begin with it. */
  baseUrl: string;
}

interface InternalResponse {
  status: number;
  /** Names as WordPress writes them: `X-WP-Total`. */
  headers: Record<string, string>;
  /** A copy that belongs to the caller; `null` for HEAD. */
  body: Json;
}

/**
 * The returned function never rejects for what the request holds: that becomes an error response.
 */
function createInProcessServer(
  { find, dispatch, fail, renderJson }: Pipeline,
  ready: (method: string) => void | Promise<void>,
) {
  const readInternal = ({ query = "", body = {}, ...request }: InternalRequest, method: string) => {
    const { path, headers = {}, caller, baseUrl } = request;
    const segments = decodeSegments(path);
    const match = find(segments);
    const sent = typeof query === "string" ? readQuery(query) : readObject(copyJson(query));
    const call: RouteCall = {
      method: method === "HEAD" ? "GET" : method,
      path: `/${segments.join("/")}`,
      match,
      query: knownQuery(sent, match),
      body: readJsonBody(copyJson(body), match?.row.byMethod.get(method)?.noObject),
      headers,
      caller,
      baseUrl,
    };
    return { call, view: parseView(sent, mergeParameters(call.body, sent)["_fields"]) };
  };

  return async (request: InternalRequest): Promise<InternalResponse> => {
    const { caller, baseUrl } = request;
    const method = request.method.toUpperCase();
    let outcome: RouteOutcome;
    let view = PLAIN_VIEW;
    try {
      await ready(method);
      const read = readInternal(request, method);
      view = read.view;
      outcome = await dispatch(read.call);
    } catch (error) {
      outcome = fail(error);
    }
    const json = method === "HEAD" ? null : await renderJson({ outcome, view, caller, baseUrl });
    const headers = toWordPressNames(outcome.headers);
    return { status: outcome.status, headers, body: copyJson(json) };
  };
}

const copyJson = <T extends Json>(json: T): T => JSON.parse(JSON.stringify(json)) as T;
