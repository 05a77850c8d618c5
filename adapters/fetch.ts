/**
 * Mounts a service in a host that speaks the web's `Request` and `Response`.
 *
 * @module postbell/fetch
 */

import { hook, readOptions } from "../src/core/options.js";
import type { HttpRequest, RequestBody, Service } from "../src/http/types.js";
import { checkService, type MountOptions, mountAt, prefixOption, withoutTrailingSlash } from "./mount.js";

export type { MountOptions } from "./mount.js";

/** What {@link fetchAdapter} takes beside the service. */
export interface FetchAdapterOptions extends MountOptions {
  /** Answers a path that is not the service's. Default: a plain 404. */
  readonly notFound?: ((request: Request) => Response | Promise<Response>) | undefined;
}

/**
 * A fetch handler. Rejects only where `notFound` does. The service gets what the `Request` holds: its URL has `..` and `\\` resolved, and
 * it can have no body with GET and HEAD.
 *
 * Errors: PostbellError `invalid_option`.
 */
export function fetchAdapter(
  service: Service,
  options?: FetchAdapterOptions,
): (request: Request) => Promise<Response> {
  checkService("fetchAdapter", service);
  const table = { prefix: prefixOption, notFound: hook<NonNullable<FetchAdapterOptions["notFound"]>>() };
  const { prefix, notFound = plainNotFound } = readOptions("fetchAdapter", table, options);
  const root = withoutTrailingSlash(prefix);
  return async (request) => {
    const { origin, pathname, search } = new URL(request.url);
    const mount = mountAt(root, pathname + search);
    const response =
      mount &&
      (await service.handle({
        method: request.method,
        path: mount.path,
        query: mount.query,
        headers: headersOf(request),
        body: bodyOf(request),
        baseUrl: origin + mount.basePath,
        signal: request.signal,
      }));
    if (response === undefined) return notFound(request);
    const { status, body } = response;
    const headers = Object.entries(response.headers).flatMap(([name, value]) =>
      [value].flat().map((one): [string, string] => [name, one]),
    );
    const isWhole = body === null || typeof body === "string" || body instanceof Uint8Array;
    return new Response(isWhole ? body : ReadableStream.from(body), { status, headers });
  };
}

const plainNotFound = (): Response => new Response("Not Found", { status: 404 });

const headersOf = (request: Request): HttpRequest["headers"] =>
  Object.assign(Object.create(null), Object.fromEntries(request.headers));

function bodyOf({ body, bodyUsed }: Request): RequestBody {
  if (bodyUsed) return { parsed: undefined };
  // Who stops reading half-way must not cancel what the host's connection still needs for the answer.
  return body && { [Symbol.asyncIterator]: () => body.values({ preventCancel: true }) };
}
