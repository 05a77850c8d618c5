/**
 * The stages of a request: read, validate, permit, handle, render. Knows no record.
 *
 * A stage that cannot go on throws. `conclude` is the only place that turns what was thrown into
 * the outcome of the call.
 */

import type { Logger } from "../../core/logger.js";
import type { BodyPace } from "../../http/body-chunks.js";
import type { HttpRequest } from "../../http/types.js";
import { validateArguments } from "../../schema/arguments.js";
import type { JsonObject } from "../../schema/types.js";
import { type Caller, isAnonymous } from "../auth/caller.js";
import type { Cors } from "./cors.js";
import { RestError } from "./error.js";
import { describePath } from "./index-routes.js";
import { estimateSize, type ListLimits } from "./lists.js";
import {
  createRenderer,
  PLAIN_VIEW,
  parseView,
  type Renderer,
  type ResponseView,
  refuseCallback,
  toErrorOutcome,
} from "./render.js";
import {
  buildLenientRequest,
  buildRestRequest,
  invalidParams,
  isHeadOverride,
  mergeParameters,
  type ReadValues,
  readBody,
  readMethod,
  readQuery,
  refuseOtherIds,
  SMALL_BODY_BYTES,
} from "./request-input.js";
import { knownQuery, type RenderedResponse } from "./response-cache.js";
import { decodeSegments, type RouteTable } from "./route-table.js";
import { type FetchEmbeddedAs, fetchOnce, toJson } from "./serialise.js";
import type {
  Method,
  RequestState,
  RestEndpoint,
  RestRequest,
  RestResponse,
  RouteCall,
  RouteOutcome,
} from "./types.js";

interface PipelineOptions {
  find: RouteTable["find"];
  cors: Cors;
  lists: ListLimits;
  /** The largest body, in bytes. */
  requestBytes: number;
  bodyPace: BodyPace;
  logger: Logger;
}

/** A response that was rendered for one request. */
interface FreshResponse {
  response: RenderedResponse;
  /** True if other anonymous callers may get the same response. */
  isShareable: boolean;
}

export interface Pipeline extends Renderer {
  find: RouteTable["find"];
  /** Takes an HTTP request through every stage. Rejects if the response cannot be rendered. */
  serve: (request: HttpRequest, caller: Caller) => Promise<FreshResponse>;
  /**
   * Takes a call that is read to its outcome, from `validate` on, or from `permit` on if it is
   * validated. Never rejects.
   */
  dispatch: (call: RouteCall, valid?: ValidCall) => Promise<RouteOutcome>;
  /** Returns the outcome of a call in which a stage threw this. Never rejects. */
  refuse: (call: RouteCall, error: unknown) => Promise<RouteOutcome>;
  /** Returns the outcome for something that was thrown; logs it unless the caller caused it. */
  fail: (error: unknown) => RouteOutcome;
}

export function createPipeline(options: PipelineOptions): Pipeline {
  const { find, cors, lists, logger } = options;
  const fail = (error: unknown): RouteOutcome => toErrorOutcome(error, logger);

  /** Runs stages. `progress` is what they found out, also about a call that failed. */
  const conclude = async (progress: Progress, stages: () => Promise<RestResponse>): Promise<RouteOutcome> => {
    let outcome: RouteOutcome;
    try {
      outcome = { ...(await stages()), isError: false };
    } catch (error) {
      outcome = fail(error);
    }
    outcome = await addAllow(outcome, progress);
    await progress.call.received?.release();
    return outcome;
  };

  const dispatch: Pipeline["dispatch"] = (call, valid) => {
    const progress: Progress = { call, valid };
    return conclude(progress, () => execute(progress));
  };

  const serve: Pipeline["serve"] = async (request, caller) => {
    const { method, path, headers, baseUrl } = request;
    const call = { method, path, match: undefined, query: {}, body: {}, headers, caller, baseUrl };
    const progress: RequestProgress = { call, view: PLAIN_VIEW, hasSecret: false, hasNoBody: false };
    const outcome = await conclude(progress, async () => {
      await read(progress, request, options);
      return execute(progress);
    });
    const { view, hasSecret, hasNoBody } = progress;
    const whole = await renderResponse(request, { outcome, view, caller, baseUrl });
    const response = hasNoBody ? { ...whole, body: Buffer.alloc(0) } : whole;
    return { response, isShareable: outcome.status === 200 && !hasSecret };
  };

  const fetchEmbedded = createEmbeddedFetcher({ find, dispatch }, lists);
  const { renderJson, renderResponse } = createRenderer(cors, fetchEmbedded);
  const refuse: Pipeline["refuse"] = (call, error) => conclude({ call }, () => Promise.reject(error));

  return { find, serve, dispatch, refuse, fail, renderJson, renderResponse };
}

/** The findings of the stages so far. The response to a call that failed needs them, too. */
interface Progress {
  call: RouteCall;
  valid?: ValidCall | undefined;
}

interface RequestProgress extends Progress {
  view: ResponseView;
  /** True if the request carries a secret. Its response is not cached, so attempts are counted. */
  hasSecret: boolean;
  /** True if the client overrides its method with `HEAD`. */
  hasNoBody: boolean;
}

// Read: finds the route of a request and reads its query and body.

async function read(
  progress: RequestProgress,
  request: HttpRequest,
  { find, requestBytes, bodyPace }: PipelineOptions,
): Promise<void> {
  const { caller } = progress.call;
  const query = readQuery(request.query);
  const view = parseView(query, query["_fields"]);
  if (view.callback !== undefined) refuseCallback(view.callback, request, caller);
  const segments = decodeSegments(request.path);
  const match = find(segments);
  const method = readMethod(request, query);
  const call = {
    ...progress.call,
    method,
    path: `/${segments.join("/")}`,
    match,
    query: knownQuery(query, match),
  };
  progress.call = call;
  progress.view = view;
  progress.hasSecret = query["password"] !== undefined;
  progress.hasNoBody = isHeadOverride(request, query);

  const endpoint = match?.row.byMethod.get(method);
  if (endpoint === undefined) return;
  try {
    const received = await endpoint.receive?.(request, caller);
    const limit = limitBody(method, caller, requestBytes);
    const body =
      received?.fields ?? (await readBody(request, { limit, pace: bodyPace, noObject: endpoint.noObject }));
    progress.call = { ...call, body, received };
  } catch (error) {
    if (isTooLarge(error)) await refuseForbidden(call, endpoint);
    throw error;
  }
  const fields = progress.call.body["_fields"];
  if (fields !== undefined) progress.view = parseView(query, fields);
}

/** A large body needs a caller who is signed in and a method that writes. */
const limitBody = (method: string, caller: Caller, requestBytes: number): number =>
  method === "GET" || method === "DELETE" || isAnonymous(caller)
    ? Math.min(requestBytes, SMALL_BODY_BYTES)
    : requestBytes;

const isTooLarge = (error: unknown): boolean => error instanceof RestError && error.status === 413;

/**
 * Throws the 401 or 403 of a caller who may not use the endpoint at all: a smaller body would not
 * help.
 */
async function refuseForbidden(call: RouteCall, endpoint: RestEndpoint): Promise<void> {
  try {
    await endpoint.permit(buildLenientRequest(call, endpoint));
  } catch (error) {
    if (error instanceof RestError && (error.status === 401 || error.status === 403)) throw error;
  }
}

// Validate: checks the arguments of a call against the schema of its endpoint.

/** A call with valid arguments. Nothing has been changed or sanitised yet. */
export interface ValidCall {
  endpoint: RestEndpoint;
  /** The request for `check` and `permit`: valid, but not sanitised. */
  request: RestRequest;
  /** Calls the endpoint's handler with the sanitised request. */
  handle: () => RestResponse | Promise<RestResponse>;
}

/**
 * @throws RestError 404 `rest_no_route`, 400 `rest_invalid_param`, `rest_missing_callback_param`,
 *   or the error of the endpoint's `check`
 */
export function validate(call: RouteCall): ValidCall {
  const endpoint = call.match?.row.byMethod.get(call.method);
  if (endpoint === undefined) throw noRoute();
  const valid = readArguments(call, endpoint);
  endpoint.check?.(valid.request);
  return valid;
}

const noRoute = (): RestError =>
  new RestError(404, "rest_no_route", "No route was found matching the URL and request method.");

function readArguments(call: RouteCall, endpoint: RestEndpoint): ValidCall {
  const parameters = call.match?.parameters ?? {};
  refuseOtherIds(parameters, [call.query, call.body]);
  const sent = mergeParameters(call.body, call.query);
  const read = validateArguments(endpoint.args, mergeParameters(parameters, sent));
  if (read.ok) {
    const state: RequestState = {};
    const build = (values: ReadValues): RestRequest => ({
      ...buildRestRequest(call, endpoint, values, sent),
      state,
    });
    return { endpoint, request: build(read.values), handle: () => endpoint.handle(build(read.sanitised())) };
  }
  if (read.code === "rest_invalid_param") throw invalidParams(read.params, read.details);
  throw new RestError(400, read.code, `Missing parameter(s): ${read.missing.join(", ")}`, {
    data: { params: read.missing },
  });
}

// Permit and handle: asks the endpoint whether the caller may do this, and calls it.

async function execute(progress: Progress): Promise<RestResponse> {
  const { call } = progress;
  if (call.method === "OPTIONS") return describe(call);
  progress.valid ??= validate(call);
  const { endpoint, request, handle } = progress.valid;
  await endpoint.permit(request);
  return handle();
}

/** The response to OPTIONS. For an unknown path it is an empty list, as in WordPress. */
const describe = ({ match, baseUrl }: RouteCall): RestResponse => ({
  status: 200,
  headers: {},
  body: { json: match === undefined ? [] : describePath(match.row.route, baseUrl) },
});

/** Adds the methods of the path that the caller may use, unless nothing is known about them. */
async function addAllow(outcome: RouteOutcome, progress: Progress): Promise<RouteOutcome> {
  const { method, match } = progress.call;
  const isKnown = match?.row.byMethod.has(method) || (match !== undefined && method === "OPTIONS");
  if (!isKnown || outcome.status === 500 || outcome.status === 503) return outcome;
  const allow = await listAllowedMethods(progress, method === "GET" && !outcome.isError);
  return allow === "" ? outcome : { ...outcome, headers: { ...outcome.headers, allow } };
}

/**
 * As in WordPress, every endpoint is asked after the call was handled, so that a deleted record
 * allows nothing. `isPermitted`: the call's endpoint permitted it and nothing changed since, so it
 * need not be asked a second time.
 */
async function listAllowedMethods({ call, valid }: Progress, isPermitted: boolean): Promise<string> {
  const allowed: Method[] = [];
  for (const endpoint of call.match?.row.route.endpoints ?? []) {
    try {
      if (endpoint !== valid?.endpoint) await endpoint.permit(buildLenientRequest(call, endpoint));
      else if (!isPermitted) await endpoint.permit(valid.request);
      allowed.push(...endpoint.methods);
    } catch {
      // Not allowed now, for whatever reason.
    }
  }
  return allowed.join(", ");
}

// Render: `render.ts` builds the response, and fetches what `_embed` asks for through the stages.

const createEmbeddedFetcher =
  ({ find, dispatch }: Pick<Pipeline, "find" | "dispatch">, { refuseBeyond }: ListLimits): FetchEmbeddedAs =>
  (caller, baseUrl) => {
    let total = 0;
    return fetchOnce(async (href) => {
      if (!href.startsWith(`${baseUrl}/`)) return undefined;
      const [path = "", search = ""] = href.slice(baseUrl.length).split("?", 2);
      const match = find(decodeSegments(path));
      // Clients expect some links that lead nowhere on this site, such as those to comments.
      if (match === undefined) return undefined;
      const maximum = match.row.byMethod.get("GET")?.args["per_page"]?.maximum;
      const page: JsonObject = maximum === undefined ? {} : { per_page: maximum };
      const query = mergeParameters(readQuery(search), { context: "embed", ...page });
      const call = { method: "GET", path, match, query, body: {}, headers: {}, caller, baseUrl };
      const json = toJson((await dispatch(call)).body);
      total += estimateSize(json);
      refuseBeyond(total);
      return json;
    });
  };
