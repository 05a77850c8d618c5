/** Reads a request into a call: its route, its effective method and the parameters of its body. */

import type { BodyPace } from "../../http/body-chunks.js";
import type { HttpRequest } from "../../http/types.js";
import type { JsonObject } from "../../schema/types.js";
import type { Caller } from "../auth/caller.js";
import { isAnonymous } from "./authenticate.js";
import { readBody, SMALL_BODY_BYTES } from "./request-input.js";
import { knownQuery } from "./response-cache-key.js";
import type { RouteCall } from "./route-call.js";
import type { RouteTable } from "./route-table.js";
import { decodeSegments } from "./route-tree.js";
import type { ReceivedBody, RestEndpoint } from "./types.js";

export interface CallReaderOptions {
  readonly find: RouteTable["find"];
  /** The largest body, in bytes. */
  readonly bodyBytes: number;
  readonly bodyPace: BodyPace;
}

export type CallReader = (request: HttpRequest, caller: Caller, query: JsonObject) => Promise<RouteCall>;

type ReadBody = Pick<RouteCall, "body" | "received" | "fault">;

/** Never rejects for what the body holds: that becomes the call's `fault`. */
export function createCallReader({ find, bodyBytes, bodyPace }: CallReaderOptions): CallReader {
  const readBodyFor = async (
    endpoint: RestEndpoint,
    request: HttpRequest,
    method: string,
    caller: Caller,
  ): Promise<ReadBody> => {
    let received: ReceivedBody | undefined;
    try {
      received = await endpoint.receive?.(request, caller);
      if (received !== undefined) return { body: received.fields, received };
      const limit = limitBody(method, caller, bodyBytes);
      const { noObject } = endpoint;
      return { body: await readBody(request, { limit, pace: bodyPace, ...(noObject && { noObject }) }) };
    } catch (fault) {
      return { body: {}, fault };
    }
  };

  return async (request, caller, query) => {
    const segments = decodeSegments(request.path);
    const match = find(segments);
    const method = readMethod(request, query);
    const endpoint = match?.row.byMethod.get(method);
    const read = endpoint === undefined ? { body: {} } : await readBodyFor(endpoint, request, method, caller);
    return {
      method,
      path: `/${segments.join("/")}`,
      match,
      query: knownQuery(query, match),
      ...read,
      headers: request.headers,
      caller,
      baseUrl: request.baseUrl,
    };
  };
}

/** A large body needs a caller who is signed in and a method that writes. */
const limitBody = (method: string, caller: Caller, most: number): number =>
  method === "GET" || method === "DELETE" || isAnonymous(caller) ? Math.min(most, SMALL_BODY_BYTES) : most;

/** Only POST may stand for another method: a link or an image must not change anything. */
function readMethod({ method, headers }: HttpRequest, query: JsonObject): string {
  if (method === "HEAD") return "GET";
  if (method !== "POST") return method;
  const inQuery = query["_method"];
  const override = typeof inQuery === "string" ? inQuery : headers["x-http-method-override"];
  return override === undefined || override === "" ? method : override.toUpperCase();
}
