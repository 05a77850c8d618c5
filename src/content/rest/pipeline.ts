/**
 * The stages of a request: match, validate, permit, handle, render. Knows no record.
 *
 * A stage that fails adds its error to the call. The stages after it let the call pass, and
 * `handle` turns the error into a response, so nothing is thrown from one stage to the next.
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
import { type FreshResponse, knownQuery } from "./response-cache.js";
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
  RouteRow,
} from "./types.js";

interface PipelineOptions {
  readonly find: RouteTable["find"];
  readonly cors: Cors;
  readonly lists: Pick<ListLimits, "refuseBeyond">;
  /** The largest body, in bytes. */
  readonly bodyBytes: number;
  readonly bodyPace: BodyPace;
  readonly logger: Logger;
}

export interface Pipeline extends Renderer {
  readonly find: RouteTable["find"];
  /** Takes an HTTP request through every stage. Rejects if the response cannot be rendered. */
  readonly serve: (request: HttpRequest, caller: Caller) => Promise<FreshResponse>;
  /** Takes a matched call from `validate` to its outcome. Never rejects. */
  readonly dispatch: (call: RouteCall) => Promise<RouteOutcome>;
  /** Takes a validated call from `permit` to its outcome. Never rejects. */
  readonly run: (validated: ValidatedCall) => Promise<RouteOutcome>;
  /** Returns the outcome for something that was thrown; logs it unless the caller caused it. */
  readonly fail: (error: unknown) => RouteOutcome;
}

export function createPipeline(options: PipelineOptions): Pipeline {
  const { find, cors, lists, logger } = options;

  const serve: Pipeline["serve"] = async (request, caller) => {
    const { call, view, hasSecret, hasNoBody = false } = await match(request, caller, options);
    const validated = validate(call);
    const permitted = await permit(validated);
    const outcome = await handle(permitted, logger);
    const whole = await renderResponse(request, { outcome, view, caller, baseUrl: request.baseUrl });
    const response = hasNoBody ? { ...whole, body: Buffer.alloc(0) } : whole;
    return { response, isShareable: outcome.status === 200 && !hasSecret };
  };

  const run: Pipeline["run"] = async (validated) => handle(await permit(validated), logger);
  const dispatch: Pipeline["dispatch"] = (call) => run(validate(call));
  const fetchEmbedded = createEmbeddedFetcher({ find, dispatch }, lists);
  const { renderJson, renderResponse } = createRenderer(cors, fetchEmbedded);

  return {
    find,
    serve,
    dispatch,
    run,
    fail: (error) => toErrorOutcome(error, logger),
    renderJson,
    renderResponse,
  };
}

// Match: finds the route of a request and reads its query and body.

interface MatchedRequest {
  readonly call: RouteCall;
  readonly view: ResponseView;
  /** True if the request carries a secret. Its response is not cached, so attempts are counted. */
  readonly hasSecret: boolean;
  /** True if the client overrides its method with `HEAD`. */
  readonly hasNoBody?: boolean;
}

async function match(
  request: HttpRequest,
  caller: Caller,
  options: PipelineOptions,
): Promise<MatchedRequest> {
  let view = PLAIN_VIEW;
  let call: RouteCall | undefined;
  try {
    const query = readQuery(request.query);
    view = parseView(query, query["_fields"]);
    if (view.callback !== undefined) refuseCallback(view.callback, request, caller);
    call = await readCall(request, query, caller, options);
    if (call.body["_fields"] !== undefined) view = parseView(query, call.body["_fields"]);
    const hasNoBody = isHeadOverride(request, query);
    return { call, view, hasSecret: query["password"] !== undefined, hasNoBody };
  } catch (error) {
    const { method, path, headers, baseUrl } = request;
    const unread = { method, path, query: {}, body: {}, headers, caller, baseUrl };
    return {
      call: { ...unread, match: undefined, received: call?.received, failure: { error } },
      view: view.callback === undefined ? view : PLAIN_VIEW,
      hasSecret: false,
    };
  }
}

async function readCall(
  request: HttpRequest,
  query: JsonObject,
  caller: Caller,
  { find, bodyBytes, bodyPace }: PipelineOptions,
): Promise<RouteCall> {
  const { headers, baseUrl } = request;
  const segments = decodeSegments(request.path);
  const found = find(segments);
  const call = {
    method: readMethod(request, query),
    path: `/${segments.join("/")}`,
    match: found,
    query: knownQuery(query, found),
    body: {},
    headers,
    caller,
    baseUrl,
  };
  const endpoint = found?.row.byMethod.get(call.method);
  if (endpoint === undefined) return call;
  try {
    const received = await endpoint.receive?.(request, caller);
    if (received !== undefined) return { ...call, body: received.fields, received };
    const { noObject } = endpoint;
    const limit = limitBody(call.method, caller, bodyBytes);
    const reading = { limit, pace: bodyPace, ...(noObject && { noObject }) };
    return { ...call, body: await readBody(request, reading) };
  } catch (error) {
    return { ...call, failure: { error } };
  }
}

/** A large body needs a caller who is signed in and a method that writes. */
const limitBody = (method: string, caller: Caller, most: number): number =>
  method === "GET" || method === "DELETE" || isAnonymous(caller) ? Math.min(most, SMALL_BODY_BYTES) : most;

// Validate: checks the arguments of a call against the schema of its endpoint.

/** A call whose arguments are checked. Nothing has been changed or sanitised yet. */
export interface ValidatedCall {
  readonly call: RouteCall;
  readonly endpoint: RestEndpoint | undefined;
  /** `undefined` if the call fails before its permission is asked for. */
  readonly valid?: {
    /** The request for `check` and `permit`: valid, but not sanitised. */
    readonly request: RestRequest;
    /** Calls the endpoint's handler with the sanitised request. */
    readonly handle: () => RestResponse | Promise<RestResponse>;
  };
  readonly failure?: RouteCall["failure"];
}

export function validate(call: RouteCall): ValidatedCall {
  const { failure } = call;
  const endpoint = call.match?.row.byMethod.get(call.method);
  if (failure !== undefined) return { call, endpoint, failure };
  if (endpoint === undefined) return { call, endpoint, failure: { error: noRoute() } };
  try {
    const valid = readArguments(call, endpoint);
    endpoint.check?.(valid.request);
    return { call, endpoint, valid };
  } catch (error) {
    return { call, endpoint, failure: { error } };
  }
}

const noRoute = (): RestError =>
  new RestError(404, "rest_no_route", "No route was found matching the URL and request method.");

/** @throws RestError 400 `rest_invalid_param`, `rest_missing_callback_param` */
function readArguments(call: RouteCall, endpoint: RestEndpoint): NonNullable<ValidatedCall["valid"]> {
  const parameters = call.match?.parameters ?? {};
  refuseOtherIds(parameters, [call.query, call.body]);
  const given = mergeParameters(call.body, call.query);
  const read = validateArguments(endpoint.args, mergeParameters(parameters, given));
  if (read.ok) {
    const state: RequestState = {};
    const build = (values: ReadValues): RestRequest => ({
      ...buildRestRequest(call, endpoint, values, given),
      state,
    });
    return { request: build(read.values), handle: () => endpoint.handle(build(read.sanitised())) };
  }
  if (read.code === "rest_invalid_param") throw invalidParams(read.params, read.details);
  throw new RestError(400, read.code, `Missing parameter(s): ${read.missing.join(", ")}`, {
    data: { params: read.missing },
  });
}

// Permit: asks the endpoint whether the caller may do this.

/**
 * A caller whose body is too large is asked for too: without the permission, the response is its
 * 401 or 403, since a smaller body would not help.
 */
async function permit(validated: ValidatedCall): Promise<ValidatedCall> {
  const { call, endpoint, valid } = validated;
  if (endpoint === undefined || (valid === undefined && !isTooLarge(call.failure?.error))) return validated;
  try {
    await endpoint.permit(valid?.request ?? buildLenientRequest(call, endpoint));
    return validated;
  } catch (error) {
    return valid === undefined && !isRefusal(error) ? validated : { ...validated, failure: { error } };
  }
}

const isTooLarge = (error: unknown): boolean => error instanceof RestError && error.status === 413;

const isRefusal = (error: unknown): boolean =>
  error instanceof RestError && (error.status === 401 || error.status === 403);

// Handle: calls the endpoint, and lists what else the caller may do at this path.

async function handle(permitted: ValidatedCall, logger: Logger): Promise<RouteOutcome> {
  const { call, endpoint } = permitted;
  const row = call.match?.row;
  const isOptions = call.method === "OPTIONS" && call.failure === undefined;
  try {
    const outcome = isOptions ? describe(call, row) : await callEndpoint(permitted, logger);
    const isKnown = row !== undefined && (endpoint !== undefined || isOptions);
    if (!isKnown || outcome.status === 500 || outcome.status === 503) return outcome;
    const allow = await listAllowedMethods(permitted, row, call.method === "GET" && !outcome.isError);
    return allow === "" ? outcome : { ...outcome, headers: { ...outcome.headers, allow } };
  } finally {
    await call.received?.release();
  }
}

async function callEndpoint({ valid, failure }: ValidatedCall, logger: Logger): Promise<RouteOutcome> {
  if (valid === undefined || failure !== undefined) return toErrorOutcome(failure?.error, logger);
  try {
    return { ...(await valid.handle()), isError: false };
  } catch (error) {
    return toErrorOutcome(error, logger);
  }
}

/** The response to OPTIONS. For an unknown path it is an empty list, as in WordPress. */
const describe = (call: RouteCall, row: RouteRow | undefined): RouteOutcome => ({
  status: 200,
  headers: {},
  body: { json: row === undefined ? [] : describePath(row.route, call.baseUrl) },
  isError: false,
});

/**
 * Returns the methods of the path that the caller may use, for the `Allow` header.
 *
 * As in WordPress, every endpoint is asked after the call was handled, so that a deleted record
 * allows nothing. `isPermitted`: the call's own endpoint permitted it and nothing changed since, so
 * it need not be asked a second time.
 */
async function listAllowedMethods(
  { call, endpoint: own, valid }: ValidatedCall,
  { route }: RouteRow,
  isPermitted: boolean,
): Promise<string> {
  const allowed: Method[] = [];
  for (const endpoint of route.endpoints) {
    try {
      if (endpoint !== own || valid === undefined) await endpoint.permit(buildLenientRequest(call, endpoint));
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
  (
    { find, dispatch }: Pick<Pipeline, "find" | "dispatch">,
    { refuseBeyond }: Pick<ListLimits, "refuseBeyond">,
  ): FetchEmbeddedAs =>
  (caller, baseUrl) => {
    let total = 0;
    return fetchOnce(async (href) => {
      if (!href.startsWith(`${baseUrl}/`)) return undefined;
      const [path = "", search = ""] = href.slice(baseUrl.length).split("?", 2);
      const match = find(decodeSegments(path));
      // Clients expect some links that lead nowhere on this site, such as those to comments.
      if (match === undefined) return undefined;
      const most = match.row.byMethod.get("GET")?.args["per_page"]?.maximum;
      const query = mergeParameters(readQuery(search), {
        context: "embed",
        ...(most === undefined ? {} : { per_page: most }),
      });
      const call = { method: "GET", path, match, query, body: {}, headers: {}, caller, baseUrl };
      const json = toJson((await dispatch(call)).body);
      total += estimateSize(json);
      refuseBeyond(total);
      return json;
    });
  };
