/**
 * The REST server: takes requests through the stages of its pipeline, over HTTP and in the process.
 *
 * An HTTP request passes these stages, each in a file of its own: authenticate → cache → match →
 * validate → authorise → execute → render. A cached response leaves after the second one, without a
 * promise.
 */

import type { Logger } from "../../core/logger.js";
import type { BodyPace } from "../../http/body-chunks.js";
import type { DirectHandler, HttpRequest, HttpResponse } from "../../http/types.js";
import type { JsonObject } from "../../schema/types.js";
import type { Caller } from "../auth/caller.js";
import { type Authenticate, createAuthenticationStage } from "./authenticate.js";
import { batchRoute } from "./batch.js";
import { evaluateConditional } from "./conditional-response.js";
import { type CorsOptions, createCors, isPreflight } from "./cors.js";
import { createRouteDispatcher } from "./dispatch.js";
import { createRequestExecutor } from "./execute-request.js";
import { createEmbeddedFetcher } from "./fetch-embedded.js";
import { createInProcessServer, type InternalRequest, type InternalResponse } from "./in-process.js";
import { openApiRoute, withIndex } from "./index-routes.js";
import type { ListLimits } from "./list-limits.js";
import { createOwnPaths } from "./own-paths.js";
import { createCallReader } from "./read-call.js";
import { createRenderer } from "./render.js";
import { createResponseCache } from "./response-cache.js";
import { createResponseCacheKeys } from "./response-cache-key.js";
import { PLAIN_VIEW } from "./response-view.js";
import { createRouteTable } from "./route-table.js";
import type { RestRoute } from "./types.js";

export interface RestServerOptions {
  /**
   * Every route except the index, the roots of the namespaces and the batch route, which are added.
   */
  readonly routes: readonly RestRoute[];
  /**
   * Returns the OpenAPI document of all routes, mounted at `baseUrl`. Called for each request for
   * it.
   */
  readonly openApi: (baseUrl: string) => JsonObject;
  /** Returns the members of the index that describe the site. */
  readonly describeSite: () => JsonObject;
  /**
   * Returns the caller of a request. If it throws, the response is 401; a RestError and an error of
   * the storage keep their own status.
   */
  readonly authenticate: Authenticate;
  /**
   * Brings the content up to date before a request, and before each item of a batch. Content for a
   * method that only reads may be slightly older.
   */
  readonly ready: (method: string) => void | Promise<void>;
  /**
   * Returns another number whenever the response to an anonymous GET may have changed; called after
   * `ready`. Cached responses may depend only on the path, the query and the base URL.
   */
  readonly stamp: () => number;
  readonly cors: CorsOptions;
  /** How fast a body must arrive. A route that receives its body itself has its own pace. */
  readonly bodyPace: BodyPace;
  readonly limits: {
    /** The largest body of a request. */
    readonly bodyBytes: number;
    /** The size of the response cache; 0 turns it off. */
    readonly cacheBytes: number;
  };
  readonly lists: ListLimits;
  /** `pass`: for a path that is not of the service, `handle` returns `undefined`. */
  readonly unknownPaths: "pass" | "answer";
  readonly logger: Logger;
  /** Called for each look-up in the response cache. */
  readonly onCacheLookUp?: ((isHit: boolean) => void) | undefined;
}

export interface RestServer {
  /** All routes, with those that were added. */
  readonly routes: readonly RestRoute[];
  /** Returns a cached response without a promise. Never throws or rejects. */
  readonly handle: DirectHandler;
  /**
   * Handles a request for a caller that the process knows; nothing in the request says who calls.
   * If `caller` rejects, the response is the same as for an error of `authenticate`.
   */
  readonly handleAs: (
    request: HttpRequest,
    caller: () => Promise<Caller>,
  ) => Promise<HttpResponse | undefined>;
  /**
   * Returns the response of `handle` without body limit, envelope, JSONP, validator or cache. Never
   * rejects for what the request holds.
   */
  readonly dispatch: (request: InternalRequest) => Promise<InternalResponse>;
  /** Returns the path of the route for a path, such as `/core/v2/posts/:id`, or `undefined`. */
  readonly findRoutePath: (path: string) => string | undefined;
}

/** @throws Error if two routes have the same path */
export function createRestServer(options: RestServerOptions): RestServer {
  const { ready, limits, lists, unknownPaths, logger } = options;
  const batch = batchRoute({ dispatcher: () => dispatcher, ready: () => ready("POST"), lists });
  const routes: readonly RestRoute[] = [
    ...withIndex([batch, ...options.routes], options.describeSite),
    openApiRoute(options.openApi),
  ];
  const table = createRouteTable(routes);
  const isOwn = createOwnPaths(routes, unknownPaths);
  const dispatcher = createRouteDispatcher(table, { logger });
  const cors = createCors(options.cors);
  const readCall = createCallReader({
    find: table.find,
    bodyBytes: limits.bodyBytes,
    bodyPace: options.bodyPace,
  });
  const execute = createRequestExecutor(dispatcher, readCall);
  const { renderJson, renderResponse } = createRenderer(cors, createEmbeddedFetcher(dispatcher, lists));

  const serveCached = createResponseCache({
    bytes: limits.cacheBytes,
    buildKey: createResponseCacheKeys(table.find),
    classOf: cors.classOf,
    stamp: options.stamp,
    async render(request, caller) {
      const { outcome, view, hasSecret } = await execute(request, caller);
      const response = await renderResponse(request, { outcome, view, caller, baseUrl: request.baseUrl });
      return { response, isShareable: outcome.status === 200 && !hasSecret };
    },
    onLookUp: options.onCacheLookUp,
  });

  const respond = (request: HttpRequest, caller: Caller): HttpResponse | Promise<HttpResponse> => {
    const whole = serveCached(request, caller);
    return whole instanceof Promise
      ? whole.then((rendered) => evaluateConditional(request, rendered))
      : evaluateConditional(request, whole);
  };

  const refuse = async (
    request: HttpRequest,
    error: unknown,
    caller: Caller | undefined,
  ): Promise<HttpResponse> => {
    const rendering = { outcome: dispatcher.fail(error), view: PLAIN_VIEW, caller, baseUrl: request.baseUrl };
    return evaluateConditional(request, await renderResponse(request, rendering));
  };

  const authenticateAnd = createAuthenticationStage({ ready, proceed: respond, refuse });

  const handle = (request: HttpRequest, authenticate: Authenticate): ReturnType<DirectHandler> => {
    if (!isOwn(request.path)) return undefined;
    if (isPreflight(request)) return cors.preflight(request);
    const fail = (error: unknown): Promise<HttpResponse> => refuse(request, error, undefined);
    try {
      const response = authenticateAnd(request, authenticate);
      return response instanceof Promise ? response.catch(fail) : response;
    } catch (error) {
      return fail(error);
    }
  };

  return {
    routes,
    handle: (request) => handle(request, options.authenticate),
    handleAs: async (request, caller) => handle(request, caller),
    dispatch: createInProcessServer({ dispatcher, ready, renderJson }),
    findRoutePath: table.findRoutePath,
  };
}
