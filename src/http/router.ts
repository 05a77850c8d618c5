/** Routes requests by a table of paths and methods. Knows no service. */

import { Readable } from "node:stream";
import { HttpError } from "./errors.js";
import type { Handler, HttpRequest, HttpResponse, ReadableBody } from "./types.js";

/** One row of a service's route table. */
export interface Route<Context> {
  /** Upper case. A GET route also handles HEAD. */
  method: string;
  /** `/v1/webhooks/:webhookId`: each parameter is one whole segment. */
  path: string;
  handle: (context: Context) => Promise<HttpResponse>;
}

/**
 * Returns the decoded value of a parameter in the path, or the raw value if it cannot be decoded.
 */
export type PathParameter = (name: string) => string;

export interface RouterOptions<Context, Caller> {
  /**
   * Creates the argument of the handlers, once the route is known: the place to authenticate.
   * `caller` is the second argument of the router's handler.
   */
  context: (
    request: HttpRequest,
    parameter: PathParameter,
    caller: Caller | undefined,
  ) => Context | Promise<Context>;
  /**
   * Returns the response for an error of `context` or of a handler, and for HttpError 405
   * `method_not_allowed`. Must not throw.
   */
  onError: (error: unknown, request: HttpRequest) => HttpResponse;
}

/**
 * Creates a handler over a fixed table of routes. If several paths match, the first one in the
 * table wins, whatever its methods.
 *
 * Literal segments are compared as the client sent them. One trailing slash is ignored. A parameter
 * is never empty. HEAD runs the GET route and drops the body; OPTIONS returns 204 with `Allow`;
 * other methods of a known path return 405 (RFC 9110 §9.3.2, §9.3.7, §15.5.6).
 *
 * The handler never rejects. It resolves with `undefined` for a path that is not in the table.
 */
export function createRouter<Context, Caller = never>(
  routes: readonly Route<Context>[],
  { context, onError }: RouterOptions<Context, Caller>,
): (request: HttpRequest, caller?: Caller) => ReturnType<Handler> {
  const resources = groupByPath(routes);

  async function respond(
    { resource, segments }: Match<Context>,
    request: HttpRequest,
    caller: Caller | undefined,
  ): Promise<HttpResponse> {
    const { method } = request;
    const route = resource.routes.get(method) ?? (method === "HEAD" ? resource.routes.get("GET") : undefined);
    if (route !== undefined) {
      return route.handle(await context(request, readParameter(resource.segments, segments), caller));
    }
    if (method === "OPTIONS") return { status: 204, headers: { allow: resource.allow }, body: null };
    throw new HttpError(
      405,
      "method_not_allowed",
      `This path supports only ${resource.allow} (got ${method}).`,
      {
        headers: { allow: resource.allow },
      },
    );
  }

  return async (request, caller) => {
    const match = findResource(resources, request.path);
    if (match === undefined) return undefined;
    let response: HttpResponse;
    try {
      response = await respond(match, request, caller);
    } catch (error) {
      response = onError(error, request);
    }
    return request.method === "HEAD" ? withoutBody(response) : response;
  };
}

/** The routes of one path. */
interface Resource<Context> {
  segments: string[];
  routes: Map<string, Route<Context>>;
  allow: string;
}

interface Match<Context> {
  resource: Resource<Context>;
  segments: string[];
}

function groupByPath<Context>(routes: readonly Route<Context>[]): Resource<Context>[] {
  const paths = [...new Set(routes.map((route) => route.path))];
  return paths.map((path) => {
    const matching = routes.filter((route) => route.path === path);
    const methods = new Set(
      matching.flatMap(({ method }) => (method === "GET" ? ["GET", "HEAD"] : [method])),
    );
    return {
      segments: splitPath(path),
      routes: new Map(matching.map((route) => [route.method, route])),
      allow: [...methods.add("OPTIONS")].join(", "),
    };
  });
}

const splitPath = (path: string): string[] => path.replace(/\/$/, "").split("/");

function findResource<Context>(resources: Resource<Context>[], path: string): Match<Context> | undefined {
  const segments = splitPath(path);
  const resource = resources.find(
    (candidate) =>
      candidate.segments.length === segments.length &&
      candidate.segments.every((expected, index) =>
        expected.startsWith(":") ? segments[index] !== "" : segments[index] === expected,
      ),
  );
  return resource && { resource, segments };
}

function readParameter(names: string[], segments: string[]): PathParameter {
  return (name) => {
    const segment = segments[names.indexOf(`:${name}`)];
    if (segment === undefined) throw new Error(`The path of this route has no parameter '${name}'.`);
    try {
      return decodeURIComponent(segment);
    } catch {
      return segment;
    }
  };
}

/** Returns the response to HEAD: that to GET without its body, with the length if it is known. */
export function withoutBody(response: HttpResponse): HttpResponse {
  const { status, headers, body } = response;
  if (body === null) return response;
  if (typeof body === "string" || body instanceof Uint8Array) {
    return { status, headers: { "content-length": String(Buffer.byteLength(body)), ...headers }, body: null };
  }
  discard(body);
  return { status, headers, body: null };
}

/** Releases the resources of an unread stream. */
function discard(body: ReadableBody): void {
  // The iterator of a Readable releases nothing on `return` if it was never advanced (Node 20 to
  // 26).
  if (body instanceof Readable) body.destroy();
  else Promise.resolve(body[Symbol.asyncIterator]().return?.()).catch(() => {});
}
