/**
 * Mounts a service in a host that uses the web's `Request` and `Response`.
 *
 * @module postbell/fetch
 */

import { hook, readOptions } from "../src/core/options.js";
import type { HttpRequest, RequestBody, Service } from "../src/http/types.js";
import { readHostRequest } from "./host-request.js";
import { checkService, type MountOptions, mountAt, prefixOption, withoutTrailingSlash } from "./mount.js";

export type { MountOptions } from "./mount.js";

/** The options of {@link fetchAdapter}. */
export interface FetchAdapterOptions extends MountOptions {
  /**
   * Responds to a path that is not the service's. Default: a plain 404. Set it to pass such
   * requests on to the rest of the host.
   */
  notFound?: ((request: Request) => Response | Promise<Response>) | undefined;
}

/**
 * Creates a fetch handler for a service. It rejects only if `notFound` does.
 *
 * The service sees the request as `Request` holds it: `..` and `\\` in the URL are resolved, and
 * GET and HEAD have no body.
 *
 * @example
 * ```ts
 * Bun.serve({ fetch: fetchAdapter(webhooks, { prefix: "/api" }) });
 * ```
 *
 * @throws PostbellError `invalid_option` for an unknown or invalid option
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
        headers: readHeaders(request),
        body: readBody(request),
        baseUrl: origin + mount.basePath,
        signal: request.signal,
        hostRequest: request,
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

/**
 * Returns the web's `Request`. For hooks such as `authenticate` of `createContent` and
 * `authorize` of `createPortal`. A host that keeps its session elsewhere can look it up by this
 * object, in a `WeakMap`.
 *
 * @throws PostbellError `invalid_argument` if the request did not come through an adapter
 */
export const fetchRequest = <T extends Request = Request>(request: HttpRequest): T =>
  readHostRequest("fetchRequest", request);

const plainNotFound = (): Response => new Response("Not Found", { status: 404 });

const readHeaders = (request: Request): HttpRequest["headers"] =>
  Object.assign(Object.create(null), Object.fromEntries(request.headers));

function readBody({ body, bodyUsed }: Request): RequestBody {
  if (bodyUsed) return { parsed: undefined };
  // A reader that stops half-way must not cancel the stream: the host needs it for the response.
  return body && { [Symbol.asyncIterator]: () => body.values({ preventCancel: true }) };
}
