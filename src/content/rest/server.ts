/** The REST server in front of the route table: requests in, answers out, over HTTP and inside the process. Knows no row. */

import { isPostbellError } from "../../core/errors.js";
import type { Logger } from "../../core/logger.js";
import type { BodyPace } from "../../http/body-chunks.js";
import { isMatch } from "../../http/entity-tag.js";
import type { DirectHandler, HttpRequest, HttpResponse } from "../../http/types.js";
import type { Json, JsonObject } from "../../schema/types.js";
import type { Caller } from "../auth/caller.js";
import { batchRoute } from "./batch.js";
import { createCors } from "./cors.js";
import { createRouteDispatcher, type RouteCall, type RouteOutcome } from "./dispatch.js";
import { type FetchEmbedded, fetchOnce, parseEmbed } from "./embed-links.js";
import { RestError } from "./error.js";
import { parseFields, pickFields, refuseLongSelection } from "./field-selection.js";
import { openApiRoute, toRoutePath, withIndex } from "./index-routes.js";
import { estimateSize, type ListLimits } from "./list-limits.js";
import { mergeParameters, readBody, readObject, readQuery, SMALL_BODY_BYTES } from "./request-input.js";
import { type CachedResponse, createResponseCache } from "./response-cache.js";
import { createResponseCacheKeys, knownQuery } from "./response-cache-key.js";
import {
  asScript,
  buildHeaders,
  entityTag,
  isCallback,
  JSON_TYPE,
  JSONP_TYPE,
  notModified,
  withoutBody,
} from "./response-headers.js";
import { decodeSegments, splitPath } from "./route-tree.js";
import { select, toBytes, toJson, toJsonText } from "./serialise.js";
import type { ReceivedBody, RestRoute } from "./types.js";

export interface RestServerOptions {
  /** All but the index, the roots of the namespaces and the batch route, which are added. */
  readonly routes: readonly RestRoute[];
  /** The OpenAPI document of the whole table, mounted at `baseUrl`. Asked for each time it is read. */
  readonly openApi: (baseUrl: string) => JsonObject;
  /** The members of the index that say what the site is. */
  readonly describeSite: () => JsonObject;
  /** What it throws is answered with 401, but for a RestError, which is answered as it is, and a storage that is away. */
  readonly authenticate: (request: HttpRequest) => Caller | Promise<Caller>;
  /** Brings what is read up to date, for a request that only reads perhaps less so. Awaited before every request is answered, and before each item of a batch. */
  readonly ready: (method: string) => void | Promise<void>;
  /**
   * Another number whenever an answer to an anonymous GET might be another one than before; asked after `ready`. Until then such answers are kept whole: they
   * may depend on nothing but the path, the query and the base URL.
   */
  readonly stamp: () => number;
  /** Origins whose pages may send credentials: `https://app.example.org`. */
  readonly origins: readonly string[];
  /** How long a body is waited for; a route that receives its body itself has a pace of its own. */
  readonly bodyPace: BodyPace;
  readonly limits: {
    /** Of a request's body. */
    readonly bodyBytes: number;
    /** Of the whole answers that are kept; 0 keeps none. */
    readonly cacheBytes: number;
  };
  readonly lists: ListLimits;
  /** `pass`: a path whose first segment is none of the table's is not answered, and the host goes on. */
  readonly unknownPaths: "pass" | "answer";
  readonly logger: Logger;
  /** Told of each look-up of a whole answer that may be kept. */
  readonly lookedUp?: ((isHit: boolean) => void) | undefined;
}

/** A request from inside the process, on behalf of somebody. */
export interface InternalRequest {
  readonly method: string;
  /** `/core/v2/posts/12`, encoded as in a URL, without a query. */
  readonly path: string;
  readonly query?: string | JsonObject | undefined;
  /** Names in lower case. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** As JSON would be. */
  readonly body?: JsonObject | undefined;
  readonly caller: Caller;
  /** What links in the answer begin with. */
  readonly baseUrl: string;
}

export interface InternalResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The caller's own copy; `null` for HEAD. */
  readonly body: Json;
}

export interface RestServer {
  /** The whole table, with what was added to it. */
  readonly routes: readonly RestRoute[];
  /** Returns a cached response without a promise. Never throws or rejects. */
  readonly handle: DirectHandler;
  /** The same on behalf of somebody whom the process knows: nothing in the request says who asks. What `caller` rejects with is answered as what `authenticate` throws. */
  readonly handleAs: (
    request: HttpRequest,
    caller: () => Promise<Caller>,
  ) => Promise<HttpResponse | undefined>;
  /** What `handle` would answer, without what belongs to HTTP: no body limit, envelope, JSONP, validator or cache. Never rejects for what the request says. */
  readonly dispatch: (request: InternalRequest) => Promise<InternalResponse>;
  /** The path of the row that answers this one: `/core/v2/posts/:id`; `undefined` where none does. */
  readonly routeOf: (path: string) => string | undefined;
}

/** What the client wants the answer to look like. */
interface View {
  readonly fields: Json | undefined;
  readonly embed: Json | undefined;
  readonly isEnveloped: boolean;
  readonly isPretty: boolean;
  readonly callback: string | undefined;
}

const PLAIN: View = {
  fields: undefined,
  embed: undefined,
  isEnveloped: false,
  isPretty: false,
  callback: undefined,
};

/** Errors: Error for a table that is ambiguous. */
export function createRestServer(options: RestServerOptions): RestServer {
  const { authenticate, ready, stamp, limits, lists, unknownPaths, logger, lookedUp } = options;
  const batch = batchRoute({
    dispatcher: () => dispatcher,
    ready: () => ready("POST"),
    mayGoOn: (characters) => lists.refuseBeyond(characters),
    present: (outcome, fields) => {
      const json = toJson(outcome.body);
      const selection = outcome.isError ? undefined : parseFields(fields);
      return selection === undefined ? json : pickFields(json, selection);
    },
  });
  const routes: readonly RestRoute[] = [
    ...withIndex([batch, ...options.routes], options.describeSite),
    openApiRoute(options.openApi),
  ];
  const dispatcher = createRouteDispatcher(routes, { logger });
  const ownSegments = new Set(routes.map((route) => splitPath(toRoutePath(route))[0]));
  const cors = createCors(options.origins);
  const cache = createResponseCache(limits.cacheBytes);
  const answerKey = createResponseCacheKeys(dispatcher.find);

  /** What a link of an answer leads to, asked for by the same caller. */
  const fetchAs = (caller: Caller, baseUrl: string): FetchEmbedded => {
    let embedded = 0;
    return fetchOnce(async (href) => {
      if (!href.startsWith(`${baseUrl}/`)) return undefined;
      const [path = "", search = ""] = href.slice(baseUrl.length).split("?", 2);
      const segments = decodeSegments(path);
      const match = dispatcher.find(segments);
      // A link may be announced for clients that expect it where this site has nothing, such as comments.
      if (match === undefined) return undefined;
      const given = readQuery(search);
      const most = match.row.byMethod.get("GET")?.args["per_page"]?.maximum;
      const query = mergeParameters(given, {
        context: "embed",
        ...(most === undefined ? {} : { per_page: most }),
      });
      const call = { method: "GET", path, match, query, body: {}, headers: {}, caller, baseUrl };
      const json = toJson((await dispatcher.run(dispatcher.judge(call))).body);
      embedded += estimateSize(json);
      lists.refuseBeyond(embedded);
      return json;
    });
  };

  const jsonOf = (
    outcome: RouteOutcome,
    view: View,
    caller: Caller | undefined,
    baseUrl: string,
  ): Json | Promise<Json> => {
    if (outcome.isError || caller === undefined) return toJson(outcome.body);
    const selection = { fields: parseFields(view.fields), embed: parseEmbed(view.embed) };
    return select(outcome.body, selection, fetchAs(caller, baseUrl));
  };

  const bytesOf = async (
    outcome: RouteOutcome,
    view: View,
    caller: Caller | undefined,
    baseUrl: string,
  ): Promise<Uint8Array> => {
    if (view === PLAIN || isDocument(outcome, view)) return toBytes(outcome.body);
    const answered = await jsonOf(outcome, view, caller, baseUrl);
    const { status, headers } = outcome;
    const json = view.isEnveloped ? { body: answered, status, headers } : answered;
    const text = await toJsonText(json, view.isPretty ? 4 : 0);
    return Buffer.from(view.callback === undefined ? text : asScript(view.callback, text));
  };

  /** The answer to GET, or to whatever the request is but for its method. */
  const respond = async (
    request: HttpRequest,
    outcome: RouteOutcome,
    view: View,
    caller: Caller | undefined,
    type = typeOf(outcome, view),
  ): Promise<CachedResponse> => {
    const { method, baseUrl } = request;
    const isRead = method === "GET" || method === "HEAD";
    const isAnonymous = caller !== undefined && isNobody(caller);
    const own = view.isEnveloped ? {} : outcome.headers;
    const status = view.isEnveloped ? 200 : outcome.status;
    const body = await bytesOf(outcome, view, caller, baseUrl);
    const headers = buildHeaders({
      type,
      baseUrl,
      isPrivate: !isAnonymous || outcome.isError || !(isRead || method === "OPTIONS"),
      cors: cors.headers(cors.classOf(request.headers["origin"]), isRead && isAnonymous),
      headers: own,
    });
    if (isRead && status === 200) headers["ETag"] = entityTag(body, own);
    return Object.freeze({ status, headers: Object.freeze(headers), body });
  };

  const keptOrAnew = (request: HttpRequest, caller: Caller): HttpResponse | Promise<HttpResponse> => {
    const mayBeCached = limits.cacheBytes > 0 && isCacheable(request, caller);
    const named = mayBeCached ? answerKey(request) : undefined;
    const key = named === undefined ? undefined : `${cors.classOf(request.headers["origin"])} ${named}`;
    const current = stamp();
    const kept = key === undefined ? undefined : cache.get(key, current);
    if (key !== undefined) lookedUp?.(kept !== undefined);
    return kept === undefined ? answerAnew(request, caller, key, current) : forMethod(request, kept);
  };

  /** Most requests are answered here, where nobody and nothing has to be waited for. */
  const serve = (
    request: HttpRequest,
    authenticate: RestServerOptions["authenticate"],
  ): HttpResponse | Promise<HttpResponse> => {
    if (isPreflight(request)) {
      const headers = cors.preflight(cors.classOf(request.headers["origin"]));
      return { status: 204, headers, body: null };
    }
    let known: Caller | Promise<Caller>;
    let isReady: void | Promise<void>;
    try {
      known = authenticate(request);
      if (known instanceof Promise) return serveSlowly(request, known, undefined);
    } catch (error) {
      return refuse(request, unauthenticated(error), undefined);
    }
    try {
      isReady = ready(request.method);
      if (isReady !== undefined) return serveSlowly(request, known, isReady);
    } catch (error) {
      return refuse(request, error, known);
    }
    return keptOrAnew(request, known);
  };

  const refuse = async (
    request: HttpRequest,
    error: unknown,
    caller: Caller | undefined,
  ): Promise<HttpResponse> =>
    forMethod(request, await respond(request, dispatcher.failure(error), PLAIN, caller));

  const serveSlowly = async (
    request: HttpRequest,
    known: Caller | Promise<Caller>,
    isReady: void | Promise<void>,
  ): Promise<HttpResponse> => {
    let caller: Caller | undefined;
    try {
      caller = await known;
      await (isReady ?? ready(request.method));
    } catch (error) {
      return refuse(request, caller === undefined ? unauthenticated(error) : error, caller);
    }
    return keptOrAnew(request, caller);
  };

  const answerAnew = async (
    request: HttpRequest,
    caller: Caller,
    key: string | undefined,
    current: number,
  ): Promise<HttpResponse> => {
    const { outcome, view, type, isPersonal } = await answer(request, decodeSegments(request.path), caller);
    const whole = await respond(request, outcome, view, caller, type);
    if (key !== undefined && outcome.status === 200 && isPersonal !== true) cache.set(key, current, whole);
    return forMethod(request, whole);
  };

  const answer = async (
    request: HttpRequest,
    segments: readonly string[],
    caller: Caller,
  ): Promise<{
    readonly outcome: RouteOutcome;
    readonly view: View;
    readonly type?: string;
    /** It was asked for with a secret: it must be asked for again each time, so that attempts are counted. */
    readonly isPersonal?: boolean;
  }> => {
    const { method, baseUrl, headers } = request;
    let view: View = PLAIN;
    try {
      const query = readQuery(request.query);
      view = viewOf(query, query["_fields"]);
      if (view.callback !== undefined) {
        if (!isNobody(caller) || (method !== "GET" && method !== "HEAD")) throw noCallback();
        if (!isCallback(view.callback)) return { outcome: badCallback(), view: PLAIN, type: JSONP_TYPE };
      }
      const match = dispatcher.find(segments);
      const asked = methodOf(request, query);
      const endpoint = match?.row.byMethod.get(asked);
      let received: ReceivedBody | undefined;
      let body: JsonObject = {};
      let fault: unknown;
      if (endpoint !== undefined) {
        try {
          received = await endpoint.receive?.(request, caller);
          const limit = bodyLimit(asked, caller, limits.bodyBytes);
          const { noObject } = endpoint;
          const reading = { limit, pace: options.bodyPace, ...(noObject && { noObject }) };
          body = received?.fields ?? (await readBody(request, reading));
        } catch (error) {
          fault = error;
        }
        if (body["_fields"] !== undefined) view = viewOf(query, body["_fields"]);
      }
      const path = `/${segments.join("/")}`;
      const call: RouteCall = {
        method: asked,
        path,
        match,
        query: knownQuery(query, match),
        body,
        received,
        headers,
        caller,
        baseUrl,
        fault,
      };
      try {
        const outcome = await dispatcher.run(dispatcher.judge(call));
        return { outcome, view, isPersonal: query["password"] !== undefined };
      } finally {
        await received?.release();
      }
    } catch (error) {
      return { outcome: dispatcher.failure(error), view: view.callback === undefined ? view : PLAIN };
    }
  };

  const handle = (
    request: HttpRequest,
    who: RestServerOptions["authenticate"],
  ): ReturnType<DirectHandler> => {
    if (unknownPaths === "pass" && !ownSegments.has(firstSegment(request.path))) return undefined;
    const fail = (error: unknown): Promise<HttpResponse> => refuse(request, error, undefined);
    try {
      const response = serve(request, who);
      return response instanceof Promise ? response.catch(fail) : response;
    } catch (error) {
      return fail(error);
    }
  };

  return {
    routes,
    handle: (request) => handle(request, authenticate),
    handleAs: async (request, caller) => handle(request, caller),
    routeOf(path) {
      const match = dispatcher.find(decodeSegments(path));
      return match && toRoutePath(match.row.route);
    },

    async dispatch({ method: asked, path, query: search = "", headers = {}, body = {}, caller, baseUrl }) {
      const method = asked.toUpperCase();
      let outcome: RouteOutcome;
      let view = PLAIN;
      try {
        await ready(method);
        const query = typeof search === "string" ? readQuery(search) : readObject(copied(search));
        const segments = decodeSegments(path);
        const match = dispatcher.find(segments);
        const call: RouteCall = {
          method: method === "HEAD" ? "GET" : method,
          path: `/${segments.join("/")}`,
          match,
          query: knownQuery(query, match),
          body: readObject(copied(body), match?.row.byMethod.get(method)?.noObject),
          headers,
          caller,
          baseUrl,
        };
        view = viewOf(query, mergeParameters(call.body, query)["_fields"]);
        outcome = await dispatcher.run(dispatcher.judge(call));
      } catch (error) {
        outcome = dispatcher.failure(error);
      }
      const json = method === "HEAD" ? null : await jsonOf(outcome, view, caller, baseUrl);
      return { status: outcome.status, headers: outcome.headers, body: copied(json) };
    },
  };
}

const firstSegment = (path: string): string | undefined => {
  const end = path.indexOf("/", 1);
  const raw = path.slice(1, end < 0 ? path.length : end);
  return raw.includes("%") ? decodeSegments(path)[0] : raw;
};

const copied = <T extends Json>(json: T): T => JSON.parse(JSON.stringify(json)) as T;

const isNobody = ({ id, user }: Caller): boolean => id === 0 && user === null;

const isPreflight = ({ method, headers }: HttpRequest): boolean =>
  method === "OPTIONS" &&
  headers["origin"] !== undefined &&
  headers["access-control-request-method"] !== undefined;

/** Whether it is answered as it is, because nothing else is put around it. */
const isDocument = ({ body }: RouteOutcome, { isEnveloped, callback }: View): boolean =>
  "text" in body && !isEnveloped && callback === undefined;

function typeOf(outcome: RouteOutcome, view: View): string {
  if ("text" in outcome.body && isDocument(outcome, view)) return outcome.body.type;
  return view.callback === undefined ? JSON_TYPE : JSONP_TYPE;
}

/** What the request leaves of the answer to GET. */
function forMethod(request: HttpRequest, whole: CachedResponse): HttpResponse {
  if (isMatch(request.headers["if-none-match"], whole.headers["ETag"])) return notModified(whole);
  return request.method === "HEAD" ? withoutBody(whole, whole.body) : whole;
}

function isCacheable({ method, path, body, headers }: HttpRequest, caller: Caller): boolean {
  // The index tells what time it is: its zone's offset changes by itself.
  if (path === "" || path === "/") return false;
  if ((method !== "GET" && method !== "HEAD") || !isNobody(caller)) return false;
  return body === null || headers["content-type"] === undefined;
}

/** Whoever writes a text signs in first, and no other request needs much of a body. */
const bodyLimit = (method: string, caller: Caller, most: number): number =>
  method === "GET" || method === "DELETE" || isNobody(caller) ? Math.min(most, SMALL_BODY_BYTES) : most;

/** Only POST may stand for another method: a link or an image must not change anything. */
function methodOf({ method, headers }: HttpRequest, query: JsonObject): string {
  if (method === "HEAD") return "GET";
  if (method !== "POST") return method;
  const inQuery = query["_method"];
  const override = typeof inQuery === "string" ? inQuery : headers["x-http-method-override"];
  return override === undefined || override === "" ? method : override.toUpperCase();
}

function viewOf(query: JsonObject, fields: Json | undefined): View {
  refuseLongSelection(fields, "_fields");
  refuseLongSelection(query["_embed"], "_embed");
  const callback = query["_jsonp"];
  const view = {
    fields,
    embed: query["_embed"],
    isEnveloped: query["_envelope"] !== undefined,
    isPretty: query["_pretty"] !== undefined,
    // What is no text is no name either, and is refused as one.
    callback:
      callback === undefined || callback === ""
        ? undefined
        : typeof callback === "string"
          ? callback
          : JSON.stringify(callback),
  };
  const isPlain = fields === undefined && view.embed === undefined && view.callback === undefined;
  return isPlain && !view.isEnveloped && !view.isPretty ? PLAIN : view;
}

function unauthenticated(error: unknown): unknown {
  const isAway = isPostbellError(error, "storage_unavailable") || isPostbellError(error, "storage_full");
  if (error instanceof RestError || isAway) return error;
  return new RestError(401, "rest_not_authenticated", "The credentials of the request are not accepted.");
}

const noCallback = (): RestError =>
  new RestError(
    400,
    "rest_callback_disabled",
    "A callback is only called with what an anonymous GET answers.",
  );

/** In the reference's form, which has no `data` here. */
const badCallback = (): RouteOutcome => ({
  status: 400,
  headers: {},
  body: { json: { code: "rest_callback_invalid", message: "Invalid JSONP callback function." } },
  isError: true,
});
