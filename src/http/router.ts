/** Finds the row of a route table that answers a request. Knows HTTP methods, no service. */

import { Readable } from "node:stream";
import { HttpError } from "./errors.js";
import type { Handler, HttpRequest, HttpResponse, ReadableBody } from "./types.js";

/** One row of a service's route table. */
export interface Route<Context> {
  /** Upper case. A GET row also answers HEAD. */
  readonly method: string;
  /** `/v1/webhooks/:webhookId`: each parameter is one whole segment. */
  readonly path: string;
  readonly handle: (context: Context) => Promise<HttpResponse>;
}

/** The decoded value of a parameter in the row's path. A value that does not decode stays as the client sent it. */
export type PathParameter = (name: string) => string;

export interface RouterOptions<Context> {
  /** Makes what the rows are given, once the row is known; the place to authenticate. */
  readonly context: (request: HttpRequest, parameter: PathParameter) => Context | Promise<Context>;
  /** The answer for what `context` or a row has thrown, and for HttpError 405 `method_not_allowed`. Must not throw. */
  readonly onError: (error: unknown, request: HttpRequest) => HttpResponse;
}

/**
 * A handler over a fixed table. Where several paths of the table fit, the first one in the table decides, whatever its methods.
 *
 * Literal segments are compared as the client sent them; one trailing slash is tolerated; a parameter is never empty.
 * HEAD is answered by the GET row, without the body; OPTIONS with 204 and `Allow`; another method of a known path with 405.
 * Never rejects. `undefined` for a path that is not in the table.
 * Source: RFC 9110 §9.3.2 (HEAD), §9.3.7 (OPTIONS), §15.5.6 (405).
 */
export function createRouter<Context>(
  routes: readonly Route<Context>[],
  { context, onError }: RouterOptions<Context>,
): Handler {
  const table = resourcesOf(routes);

  async function answer({ resource, segments }: Match<Context>, request: HttpRequest): Promise<HttpResponse> {
    const { method } = request;
    const route = resource.routes.get(method) ?? (method === "HEAD" ? resource.routes.get("GET") : undefined);
    if (route !== undefined) {
      return route.handle(await context(request, parameterOf(resource.segments, segments)));
    }
    if (method === "OPTIONS") return { status: 204, headers: { allow: resource.allow }, body: null };
    throw new HttpError(405, "method_not_allowed", `This path answers ${resource.allow} only.`, {
      headers: { allow: resource.allow },
    });
  }

  return async (request) => {
    const match = find(table, request.path);
    if (match === undefined) return undefined;
    let response: HttpResponse;
    try {
      response = await answer(match, request);
    } catch (error) {
      response = onError(error, request);
    }
    return request.method === "HEAD" ? withoutBody(response) : response;
  };
}

/** The rows of one path. */
interface Resource<Context> {
  readonly segments: readonly string[];
  readonly routes: ReadonlyMap<string, Route<Context>>;
  readonly allow: string;
}

interface Match<Context> {
  readonly resource: Resource<Context>;
  readonly segments: readonly string[];
}

function resourcesOf<Context>(routes: readonly Route<Context>[]): readonly Resource<Context>[] {
  const paths = [...new Set(routes.map((route) => route.path))];
  return paths.map((path) => {
    const rows = routes.filter((route) => route.path === path);
    const methods = new Set(rows.flatMap(({ method }) => (method === "GET" ? ["GET", "HEAD"] : [method])));
    return {
      segments: segmentsOf(path),
      routes: new Map(rows.map((route) => [route.method, route])),
      allow: [...methods.add("OPTIONS")].join(", "),
    };
  });
}

const segmentsOf = (path: string): readonly string[] => path.replace(/\/$/, "").split("/");

function find<Context>(table: readonly Resource<Context>[], path: string): Match<Context> | undefined {
  const segments = segmentsOf(path);
  const resource = table.find(
    (candidate) =>
      candidate.segments.length === segments.length &&
      candidate.segments.every((expected, index) =>
        expected.startsWith(":") ? segments[index] !== "" : segments[index] === expected,
      ),
  );
  return resource && { resource, segments };
}

function parameterOf(names: readonly string[], segments: readonly string[]): PathParameter {
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

/** What HEAD sends of the answer to GET: everything but the body, its length included where it is known. */
function withoutBody(response: HttpResponse): HttpResponse {
  const { status, headers, body } = response;
  if (body === null) return response;
  if (typeof body === "string" || body instanceof Uint8Array) {
    return { status, headers: { "content-length": String(Buffer.byteLength(body)), ...headers }, body: null };
  }
  discard(body);
  return { status, headers, body: null };
}

/** Frees what an unread stream holds. */
function discard(body: ReadableBody): void {
  // A Readable's iterator that was never advanced frees nothing on `return` (Node 20 to 26).
  if (body instanceof Readable) body.destroy();
  else Promise.resolve(body[Symbol.asyncIterator]().return?.()).catch(() => {});
}
