/** Builds the request that the functions of an endpoint receive. */

import { validateArguments } from "../../schema/arguments.js";
import type { Json, JsonObject } from "../../schema/types.js";
import { mergeParameters } from "./request-input.js";
import type { RouteCall } from "./route-call.js";
import type { Method, RestEndpoint, RestRequest } from "./types.js";

type Values = { readonly [name: string]: Json | undefined };

/** `given`: what the client sent, body over query. */
export function buildRestRequest(
  call: RouteCall,
  endpoint: RestEndpoint,
  values: Values,
  given: JsonObject,
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
    sanitised: call.sanitised ?? { characters: 0 },
  };
}

/**
 * Builds a request for a permission check of any endpoint of the path. It has the endpoint's
 * arguments that are valid on their own; the others are left out.
 */
export function buildLenientRequest(call: RouteCall, endpoint: RestEndpoint): RestRequest {
  const given = mergeParameters(call.body, call.query);
  const all = mergeParameters(call.match?.parameters ?? {}, given);
  return buildRestRequest(call, endpoint, readValidValues(all, endpoint), given);
}

function readValidValues(given: JsonObject, { args }: RestEndpoint): Values {
  const all = validateArguments(args, given);
  if (all.ok) return all.values;
  const values: Record<string, Json | undefined> = Object.create(null);
  for (const [name, argument] of Object.entries(args)) {
    const one = validateArguments({ [name]: argument }, given);
    if (one.ok) values[name] = one.values[name];
  }
  return values;
}
