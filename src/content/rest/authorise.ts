/**
 * Stage "authorise": permissions that are asked for outside the one endpoint that handles the call.
 */

import { RestError } from "./error.js";
import { buildLenientRequest } from "./rest-request.js";
import type { RouteCall, RouteRow, ValidatedCall } from "./route-call.js";
import type { Method, RestEndpoint } from "./types.js";

/**
 * Returns the methods of the path that the caller may use, for the `Allow` header.
 *
 * As in WordPress, every endpoint is asked after the call was handled, so that a deleted record
 * allows nothing. `isPermitted`: the call's own endpoint permitted it and nothing changed since, so
 * it need not be asked a second time.
 */
export async function listAllowedMethods(
  validated: ValidatedCall,
  { route }: RouteRow,
  isPermitted: boolean,
): Promise<string> {
  const { call, endpoint: own, result } = validated;
  const allowed: Method[] = [];
  for (const endpoint of route.endpoints) {
    try {
      if (endpoint !== own || !result.ok) await endpoint.permit(buildLenientRequest(call, endpoint));
      else if (!isPermitted) await endpoint.permit(result.request);
      allowed.push(...endpoint.methods);
    } catch {
      // Not allowed now, for whatever reason.
    }
  }
  return allowed.join(", ");
}

/**
 * Returns the 401 or 403 for a call whose body was not read, or `undefined`. A caller without the
 * permission gets this error instead of "too large": a smaller body would not help.
 */
export async function findRefusal(call: RouteCall, endpoint: RestEndpoint): Promise<RestError | undefined> {
  try {
    await endpoint.permit(buildLenientRequest(call, endpoint));
    return undefined;
  } catch (error) {
    return isRefusal(error) ? error : undefined;
  }
}

const isRefusal = (error: unknown): error is RestError =>
  error instanceof RestError && (error.status === 401 || error.status === 403);
