/** Stage "execute": takes an HTTP request through match, validate and authorise to its outcome. */

import type { HttpRequest } from "../../http/types.js";
import type { Caller } from "../auth/caller.js";
import { isAnonymous } from "./authenticate.js";
import type { RouteDispatcher } from "./dispatch.js";
import { RestError } from "./error.js";
import type { CallReader } from "./read-call.js";
import { readQuery } from "./request-input.js";
import { isCallback, JSONP_TYPE } from "./response-headers.js";
import { PLAIN_VIEW, parseView, type ResponseView } from "./response-view.js";
import type { RouteOutcome } from "./route-call.js";

export interface ExecutedRequest {
  readonly outcome: RouteOutcome;
  readonly view: ResponseView;
  /**
   * True if the request carried a secret. It is executed each time, so that attempts are counted.
   */
  readonly hasSecret: boolean;
}

/** The returned function never rejects: an error becomes the outcome. */
export const createRequestExecutor =
  ({ dispatch, fail }: Pick<RouteDispatcher, "dispatch" | "fail">, readCall: CallReader) =>
  async (request: HttpRequest, caller: Caller): Promise<ExecutedRequest> => {
    let view = PLAIN_VIEW;
    try {
      const query = readQuery(request.query);
      view = parseView(query, query["_fields"]);
      if (view.callback !== undefined) {
        refuseCallback(request, caller);
        if (!isCallback(view.callback))
          return { outcome: INVALID_CALLBACK, view: PLAIN_VIEW, hasSecret: false };
      }
      const call = await readCall(request, caller, query);
      try {
        if (call.body["_fields"] !== undefined) view = parseView(query, call.body["_fields"]);
        return { outcome: await dispatch(call), view, hasSecret: query["password"] !== undefined };
      } finally {
        await call.received?.release();
      }
    } catch (error) {
      const shown = view.callback === undefined ? view : PLAIN_VIEW;
      return { outcome: fail(error), view: shown, hasSecret: false };
    }
  };

/** @throws RestError 400 `rest_callback_disabled` unless the request is an anonymous GET */
function refuseCallback({ method }: HttpRequest, caller: Caller): void {
  if (isAnonymous(caller) && (method === "GET" || method === "HEAD")) return;
  throw new RestError(
    400,
    "rest_callback_disabled",
    "A callback is only called with the response to an anonymous GET.",
  );
}

/** In WordPress's form, which has no `data` here and the media type of a script. */
const INVALID_CALLBACK: RouteOutcome = {
  status: 400,
  headers: {},
  body: {
    text: JSON.stringify({ code: "rest_callback_invalid", message: "Invalid JSONP callback function." }),
    type: JSONP_TYPE,
  },
  isError: true,
};
