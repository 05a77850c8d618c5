/** Stage "validate": checks the arguments of a call against the schema of its endpoint. */

import { validateArguments } from "../../schema/arguments.js";
import { noRoute, RestError } from "./error.js";
import { invalidParams, mergeParameters, refuseOtherIds } from "./request-input.js";
import { buildRestRequest } from "./rest-request.js";
import type { RouteCall, ValidatedCall } from "./route-call.js";
import type { RequestState, RestEndpoint } from "./types.js";

/** Changes and sanitises nothing. Never throws: an error is part of the result. */
export function validateCall(call: RouteCall): ValidatedCall {
  const endpoint = call.match?.row.byMethod.get(call.method);
  if (endpoint === undefined) return { call, endpoint, result: { ok: false, error: noRoute() } };
  if (call.fault !== undefined) return { call, endpoint, result: { ok: false, error: call.fault } };
  try {
    const result = readArguments(call, endpoint);
    endpoint.check?.(result.request);
    return { call, endpoint, result };
  } catch (error) {
    return { call, endpoint, result: { ok: false, error } };
  }
}

/** @throws RestError 400 `rest_invalid_param`, `rest_missing_callback_param` */
function readArguments(
  call: RouteCall,
  endpoint: RestEndpoint,
): Extract<ValidatedCall["result"], { readonly ok: true }> {
  const parameters = call.match?.parameters ?? {};
  refuseOtherIds(parameters, [call.query, call.body]);
  const given = mergeParameters(call.body, call.query);
  const read = validateArguments(endpoint.args, mergeParameters(parameters, given));
  if (read.ok) {
    const state: RequestState = {};
    return {
      ok: true,
      request: { ...buildRestRequest(call, endpoint, read.values, given), state },
      sanitised: () => ({ ...buildRestRequest(call, endpoint, read.sanitised(), given), state }),
    };
  }
  if (read.code === "rest_invalid_param") throw invalidParams(read.params, read.details);
  throw new RestError(400, read.code, `Missing parameter(s): ${read.missing.join(", ")}`, {
    data: { params: read.missing },
  });
}
