/** Takes one request through its row of the route table: match, validation, permission, answer, `Allow`. Knows no HTTP message and no row. */

import { isPostbellError } from "../../core/errors.js";
import type { Logger } from "../../core/logger.js";
import { validateArguments } from "../../schema/arguments.js";
import type { Json, JsonObject } from "../../schema/types.js";
import type { Caller } from "../auth/caller.js";
import { RestError } from "./error.js";
import { describePath, toRoutePath } from "./index-routes.js";
import { invalidParams, mergeParameters, refuseOtherIds } from "./request-input.js";
import { createRouteTree, type RouteMatch } from "./route-tree.js";
import type { Method, ReceivedBody, RestEndpoint, RestRequest, RestResponse, RestRoute } from "./types.js";

export interface RouteRow {
  readonly route: RestRoute;
  readonly byMethod: ReadonlyMap<string, RestEndpoint>;
}

/** A request whose parts have been read. */
export interface RouteCall {
  /** Upper case; HEAD is told as GET. */
  readonly method: string;
  /** Below the mount point, decoded. */
  readonly path: string;
  /** `undefined`: there is no such path. */
  readonly match: RouteMatch<RouteRow> | undefined;
  readonly query: JsonObject;
  readonly body: JsonObject;
  readonly received?: ReceivedBody | undefined;
  readonly headers: RestRequest["headers"];
  readonly caller: Caller;
  /** Of the mount point, without a trailing slash. */
  readonly baseUrl: string;
  /** Why it cannot be answered whatever its arguments are, where its path and method exist. */
  readonly fault?: unknown;
}

/** A call with everything that was found out about it before anything was done. */
export interface ValidatedCall {
  readonly call: RouteCall;
  readonly endpoint: RestEndpoint | undefined;
  readonly verdict:
    | {
        readonly ok: true;
        /** As it is shown to `check` and `permit`: valid, but not sanitised. */
        readonly request: RestRequest;
        /** As it is handled, once it is permitted. */
        readonly sanitised: () => RestRequest;
      }
    | { readonly ok: false; readonly error: unknown };
}

export interface RouteOutcome extends RestResponse {
  readonly isError: boolean;
}

export interface RouteDispatcher {
  readonly find: (segments: readonly string[]) => RouteMatch<RouteRow> | undefined;
  /** Validates; sanitises nothing, changes nothing and never throws. */
  readonly judge: (call: RouteCall) => ValidatedCall;
  /** Asks for permission and answers. Never rejects: whatever is thrown is an error of the answer. */
  readonly run: (judged: ValidatedCall) => Promise<RouteOutcome>;
  /** What is answered for something that was thrown; logs what is no fault of the caller. */
  readonly failure: (error: unknown) => RouteOutcome;
}

/** Seconds; a storage that is away is usually back after a fail-over. */
const RETRY_AFTER = 5;

const noRoute = (): RestError =>
  new RestError(404, "rest_no_route", "No route was found matching the URL and request method.");

/** Errors: Error for a table with two rows for one path, or two endpoints for one method of it. */
export function createRouteDispatcher(
  routes: readonly RestRoute[],
  { logger }: { readonly logger: Logger },
): RouteDispatcher {
  const tree = createRouteTree(routes.map((route) => ({ path: toRoutePath(route), row: rowOf(route) })));

  const failure = (error: unknown): RouteOutcome => {
    if (error instanceof RestError) return errorOutcome(error);
    if (isPostbellError(error, "storage_unavailable") || isPostbellError(error, "storage_full")) {
      logger.warn({ error }, "the storage could not answer a content request");
      const message = "The service cannot answer at the moment; try again later.";
      return errorOutcome(new RestError(503, `rest_${error.code}`, message, { retryAfter: RETRY_AFTER }));
    }
    logger.error({ error }, "a content request failed");
    return errorOutcome(new RestError(500, "rest_internal_error", "The request could not be answered."));
  };

  /** Somebody who may not do it at all is told so instead of that his body is too large: no smaller one would help him. */
  const withoutBody = async (call: RouteCall, endpoint: RestEndpoint): Promise<RouteOutcome> => {
    try {
      await endpoint.permit(requestOf(call, endpoint, readable(call, endpoint)));
    } catch (error) {
      if (isRefusal(error)) return failure(error);
    }
    return failure(call.fault);
  };

  const attempt = async ({ call, endpoint, verdict }: ValidatedCall): Promise<RouteOutcome> => {
    if (!verdict.ok) {
      const mayAskAgain = endpoint !== undefined && isTooLarge(call.fault);
      return mayAskAgain ? withoutBody(call, endpoint) : failure(verdict.error);
    }
    if (endpoint === undefined) return failure(noRoute());
    try {
      await endpoint.permit(verdict.request);
      return { ...(await endpoint.handle(verdict.sanitised())), isError: false };
    } catch (error) {
      return failure(error);
    }
  };

  /**
   * Asks every endpoint of the path, as the reference does: after the answer, so that a deleted record allows nothing. `isAllowed`: the endpoint that
   * answered has been asked, and nothing has changed since.
   */
  const allowOf = async (judged: ValidatedCall, { route }: RouteRow, isAllowed: boolean): Promise<string> => {
    const { call, endpoint: own, verdict } = judged;
    const allowed: Method[] = [];
    for (const endpoint of route.endpoints) {
      try {
        if (endpoint !== own || !verdict.ok)
          await endpoint.permit(requestOf(call, endpoint, readable(call, endpoint)));
        else if (!isAllowed) await endpoint.permit(verdict.request);
        allowed.push(...endpoint.methods);
      } catch {
        // Whatever the reason is: it is not allowed now.
      }
    }
    return allowed.join(", ");
  };

  return {
    find: tree.find,
    judge(call) {
      const endpoint = call.match?.row.byMethod.get(call.method);
      if (endpoint === undefined) return { call, endpoint, verdict: { ok: false, error: noRoute() } };
      if (call.fault !== undefined) return { call, endpoint, verdict: { ok: false, error: call.fault } };
      try {
        const { request, sanitised } = validated(call, endpoint);
        endpoint.check?.(request);
        return { call, endpoint, verdict: { ok: true, request, sanitised } };
      } catch (error) {
        return { call, endpoint, verdict: { ok: false, error } };
      }
    },
    async run(judged) {
      const { call, endpoint } = judged;
      const row = call.match?.row;
      const isOptions = call.method === "OPTIONS";
      const outcome = isOptions ? described(call, row) : await attempt(judged);
      const isKnown = row !== undefined && (endpoint !== undefined || isOptions);
      if (!isKnown || outcome.status === 500 || outcome.status === 503) return outcome;
      const allow = await allowOf(judged, row, call.method === "GET" && !outcome.isError);
      return allow === "" ? outcome : { ...outcome, headers: { ...outcome.headers, Allow: allow } };
    },
    failure,
  };
}

const isTooLarge = (error: unknown): boolean => error instanceof RestError && error.status === 413;

const isRefusal = (error: unknown): boolean =>
  error instanceof RestError && (error.status === 401 || error.status === 403);

function rowOf(route: RestRoute): RouteRow {
  const byMethod = new Map<string, RestEndpoint>();
  for (const endpoint of route.endpoints) {
    for (const method of endpoint.methods) {
      if (byMethod.has(method)) throw new Error(`The route ${toRoutePath(route)} answers ${method} twice.`);
      byMethod.set(method, endpoint);
    }
  }
  return { route, byMethod };
}

/** The reference answers an empty list for a path it does not know. */
const described = (call: RouteCall, row: RouteRow | undefined): RouteOutcome => ({
  status: 200,
  headers: {},
  body: { json: row === undefined ? [] : describePath(row.route, call.baseUrl) },
  isError: false,
});

function errorOutcome({ status, code, message, data, additional, retryAfter }: RestError): RouteOutcome {
  const more =
    additional.length === 0 ? {} : { additional_errors: additional.map((error) => ({ ...error })) };
  return {
    status,
    headers: retryAfter === undefined ? {} : { "Retry-After": String(retryAfter) },
    body: { json: { code, message, data: { status, ...data }, ...more } },
    isError: true,
  };
}

/** Errors: RestError 400 `rest_invalid_param`, `rest_missing_callback_param`. */
function validated(
  call: RouteCall,
  endpoint: RestEndpoint,
): { readonly request: RestRequest; readonly sanitised: () => RestRequest } {
  const parameters = call.match?.parameters ?? {};
  refuseOtherIds(parameters, [call.query, call.body]);
  const given = mergeParameters(call.body, call.query);
  const result = validateArguments(endpoint.args, mergeParameters(parameters, given));
  if (result.ok) {
    return {
      request: requestOf(call, endpoint, result.values, given),
      sanitised: () => requestOf(call, endpoint, result.sanitised(), given),
    };
  }
  if (result.code === "rest_invalid_param") throw invalidParams(result.params, result.details);
  throw new RestError(400, result.code, `Missing parameter(s): ${result.missing.join(", ")}`, {
    data: { params: result.missing },
  });
}

type Values = { readonly [name: string]: Json | undefined };

/** Those arguments of the endpoint that can be read, each by itself. */
function readable(call: RouteCall, { args }: RestEndpoint): Values {
  const given = mergeParameters(call.match?.parameters ?? {}, mergeParameters(call.body, call.query));
  const all = validateArguments(args, given);
  if (all.ok) return all.values;
  const values: Record<string, Json | undefined> = Object.create(null);
  for (const [name, argument] of Object.entries(args)) {
    const one = validateArguments({ [name]: argument }, given);
    if (one.ok) values[name] = one.values[name];
  }
  return values;
}

function requestOf(
  call: RouteCall,
  endpoint: RestEndpoint,
  values: Values,
  given: JsonObject = mergeParameters(call.body, call.query),
): RestRequest {
  return {
    method: (endpoint.methods as readonly string[]).includes(call.method)
      ? (call.method as Method)
      : (endpoint.methods[0] as Method),
    path: call.path,
    values: Object.assign(Object.create(null), values, call.match?.parameters),
    isGiven: (name) => name in given,
    given,
    query: call.query,
    caller: call.caller,
    url: (path) => call.baseUrl + path,
    headers: call.headers,
    received: call.received,
  };
}
