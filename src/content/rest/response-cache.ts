/**
 * Stage "cache": serves whole responses to anonymous GETs from memory until the content changes.
 */

import { LRUCache } from "lru-cache";
import type { HttpRequest, HttpResponse } from "../../http/types.js";
import { type Caller, isAnonymous } from "../auth/caller.js";
import type { Cors } from "./cors.js";
import type { ResponseCacheKey } from "./response-cache-key.js";

/** A response to GET with all its bytes. Frozen, since many requests share it. */
export interface RenderedResponse extends HttpResponse {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/** A response that was built for one request. */
export interface FreshResponse {
  readonly response: RenderedResponse;
  /** True if other anonymous callers may get the same response. */
  readonly isShareable: boolean;
}

/** Returns the cached response without a promise, or renders and stores a new one. */
export type ServeCached = (
  request: HttpRequest,
  caller: Caller,
) => RenderedResponse | Promise<RenderedResponse>;

interface Entry {
  readonly stamp: number;
  readonly response: RenderedResponse;
}

/** The approximate size of an entry besides its key and body. */
const OVERHEAD_BYTES = 2048;

/** A response larger than this part of the cache is not stored. */
const MAX_SHARE = 1 / 8;

export function createResponseCache({
  bytes,
  buildKey,
  classOf,
  stamp,
  render,
  onLookUp,
}: {
  /** The size of all responses with their keys; 0 stores none. */
  readonly bytes: number;
  readonly buildKey: ResponseCacheKey;
  readonly classOf: Cors["classOf"];
  /** Another number whenever any cached response may be outdated. */
  readonly stamp: () => number;
  readonly render: (request: HttpRequest, caller: Caller) => Promise<FreshResponse>;
  /** Called for each look-up of a cacheable request. */
  readonly onLookUp?: ((isHit: boolean) => void) | undefined;
}): ServeCached {
  if (bytes === 0) return async (request, caller) => (await render(request, caller)).response;
  const entries = new LRUCache<string, Entry>({
    maxSize: bytes,
    maxEntrySize: Math.ceil(bytes * MAX_SHARE),
    sizeCalculation: ({ response }, key) => response.body.length + 2 * key.length + OVERHEAD_BYTES,
  });

  const renderAndStore = async (
    request: HttpRequest,
    caller: Caller,
    key: string,
    current: number,
  ): Promise<RenderedResponse> => {
    const { response, isShareable } = await render(request, caller);
    if (isShareable) entries.set(key, { stamp: current, response });
    return response;
  };

  const renderOnly = async (request: HttpRequest, caller: Caller): Promise<RenderedResponse> =>
    (await render(request, caller)).response;

  return (request, caller) => {
    const name = isCacheable(request, caller) ? buildKey(request) : undefined;
    if (name === undefined) return renderOnly(request, caller);
    const key = `${classOf(request.headers["origin"])} ${name}`;
    const current = stamp();
    const found = entries.get(key);
    const isHit = found?.stamp === current;
    onLookUp?.(isHit);
    return isHit ? found.response : renderAndStore(request, caller, key, current);
  };
}

function isCacheable({ method, path, body, headers }: HttpRequest, caller: Caller): boolean {
  // The index shows the time zone's current offset, which changes by itself.
  if (path === "" || path === "/") return false;
  if ((method !== "GET" && method !== "HEAD") || !isAnonymous(caller)) return false;
  return body === null || headers["content-type"] === undefined;
}
