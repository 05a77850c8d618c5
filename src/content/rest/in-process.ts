/** Requests from inside the process: the same routes and checks, without what belongs to HTTP. */

import type { Json, JsonObject } from "../../schema/types.js";
import type { Caller } from "../auth/caller.js";
import type { Pipeline } from "./pipeline.js";
import { mergeParameters, readObject, readQuery } from "./request-input.js";
import { knownQuery } from "./response-cache-key.js";
import { PLAIN_VIEW, parseView } from "./response-view.js";
import { toWordPressNames } from "./rest-headers.js";
import { decodeSegments } from "./route-tree.js";
import type { RouteCall, RouteOutcome } from "./types.js";

/** A request from inside the process, on behalf of `caller`. */
export interface InternalRequest {
  readonly method: string;
  /** `/core/v2/posts/12`, encoded as in a URL, without a query. */
  readonly path: string;
  readonly query?: string | JsonObject | undefined;
  /** Names in lower case. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** The parameters that a JSON body would have. */
  readonly body?: JsonObject | undefined;
  readonly caller: Caller;
  /** Links in the response begin with it. */
  readonly baseUrl: string;
}

export interface InternalResponse {
  readonly status: number;
  /** Names as WordPress writes them: `X-WP-Total`. */
  readonly headers: Readonly<Record<string, string>>;
  /** A copy that belongs to the caller; `null` for HEAD. */
  readonly body: Json;
}

/**
 * The returned function never rejects for what the request holds: that becomes an error response.
 */
export function createInProcessServer(
  { find, dispatch, fail, renderJson }: Pick<Pipeline, "find" | "dispatch" | "fail" | "renderJson">,
  ready: (method: string) => void | Promise<void>,
) {
  const readInternal = ({ query = "", body = {}, ...request }: InternalRequest, method: string) => {
    const { path, headers = {}, caller, baseUrl } = request;
    const segments = decodeSegments(path);
    const match = find(segments);
    const given = typeof query === "string" ? readQuery(query) : readObject(copyJson(query));
    const call: RouteCall = {
      method: method === "HEAD" ? "GET" : method,
      path: `/${segments.join("/")}`,
      match,
      query: knownQuery(given, match),
      body: readObject(copyJson(body), match?.row.byMethod.get(method)?.noObject),
      headers,
      caller,
      baseUrl,
    };
    return { call, view: parseView(given, mergeParameters(call.body, given)["_fields"]) };
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
