/**
 * The values that pass between the stages of a request, from the match of its route to the outcome.
 */

import type { JsonObject } from "../../schema/types.js";
import type { Caller } from "../auth/caller.js";
import type { RouteMatch } from "./route-tree.js";
import type { ReceivedBody, RestEndpoint, RestRequest, RestResponse, RestRoute } from "./types.js";

/** One path of the route table with its endpoints by method. */
export interface RouteRow {
  readonly route: RestRoute;
  readonly byMethod: ReadonlyMap<string, RestEndpoint>;
}

/** A request whose route is matched and whose query and body are read, but not yet validated. */
export interface RouteCall {
  /** Upper case; HEAD is passed as GET. */
  readonly method: string;
  /** Below the mount point, decoded. */
  readonly path: string;
  /** `undefined` if the table has no such path. */
  readonly match: RouteMatch<RouteRow> | undefined;
  readonly query: JsonObject;
  readonly body: JsonObject;
  readonly received?: ReceivedBody | undefined;
  readonly headers: RestRequest["headers"];
  readonly caller: Caller;
  /** URL of the mount point, without a trailing slash. */
  readonly baseUrl: string;
  /** That of the batch, if the call is one of its items. */
  readonly sanitised?: RestRequest["sanitised"];
  /**
   * An error found before validation, such as an unreadable body. It fails a call with a known
   * route.
   */
  readonly fault?: unknown;
}

/** A call with the result of its validation. Nothing has been changed or sanitised yet. */
export interface ValidatedCall {
  readonly call: RouteCall;
  readonly endpoint: RestEndpoint | undefined;
  readonly result:
    | {
        readonly ok: true;
        /** The request for `check` and `permit`: valid, but not sanitised. */
        readonly request: RestRequest;
        /** Builds the request for `handle`; called once the caller is authorised. */
        readonly sanitised: () => RestRequest;
      }
    | { readonly ok: false; readonly error: unknown };
}

/** The response of a route, or the error in its place. */
export interface RouteOutcome extends RestResponse {
  readonly isError: boolean;
}
