/**
 * Stage "cache": serves whole responses to anonymous GETs from memory until the content changes, or
 * the list of users is 10 s old. Requests that a route cannot tell apart share a response.
 */

import { LRUCache } from "lru-cache";
import type { HttpRequest, HttpResponse } from "../../http/types.js";
import type { JsonObject } from "../../schema/types.js";
import { type Caller, isAnonymous } from "../auth/caller.js";
import type { Cors } from "./cors.js";
import { readQuery } from "./request-input.js";
import { decodeSegments } from "./route-table.js";
import type { RouteMatch, RouteRow } from "./types.js";

/** A response to GET with all its bytes. Frozen, since many requests share it. */
export interface RenderedResponse extends HttpResponse {
  headers: Record<string, string>;
  body: Uint8Array;
}

/** The place of a request in the cache. */
export interface CacheSlot {
  cached?: RenderedResponse;
  /** Stores a response that was rendered after the look-up. */
  store?: (rendered: RenderedResponse) => void;
}

interface Entry {
  stamp: number;
  response: RenderedResponse;
}

/** The approximate size of an entry besides its key and body. */
const OVERHEAD_BYTES = 2048;

/** A response larger than this part of the cache is not stored. */
const MAX_SHARE = 1 / 8;

/**
 * Returns the function that looks a request up. A request that is not cacheable has an empty slot.
 */
export function createResponseCache({
  bytes,
  buildKey,
  classOf,
  stamp,
  onLookUp,
}: {
  /** The size of all responses with their keys; 0 stores none. */
  bytes: number;
  buildKey: ResponseCacheKey;
  classOf: Cors["classOf"];
  /** Another number whenever any cached response may be outdated. */
  stamp: () => number;
  /** Called for each look-up of a cacheable request. */
  onLookUp?: ((isHit: boolean) => void) | undefined;
}): (request: HttpRequest, caller: Caller) => CacheSlot {
  if (bytes === 0) return () => ({});
  const entries = new LRUCache<string, Entry>({
    maxSize: bytes,
    maxEntrySize: Math.ceil(bytes * MAX_SHARE),
    sizeCalculation: ({ response }, key) => response.body.length + 2 * key.length + OVERHEAD_BYTES,
  });

  return (request, caller) => {
    const name = isCacheable(request, caller) ? buildKey(request) : undefined;
    if (name === undefined) return {};
    const key = `${classOf(request.headers["origin"])} ${name}`;
    const current = stamp();
    const entry = entries.get(key);
    const isHit = entry?.stamp === current;
    onLookUp?.(isHit);
    if (isHit) return { cached: entry.response };
    return { store: (response) => void entries.set(key, { stamp: current, response }) };
  };
}

function isCacheable({ method, path, body, headers }: HttpRequest, caller: Caller): boolean {
  // The index shows the time zone's current offset, which changes by itself.
  if (path === "" || path === "/") return false;
  if ((method !== "GET" && method !== "HEAD") || !isAnonymous(caller)) return false;
  return body === null || headers["content-type"] === undefined;
}

// Builds the keys of cached responses: requests that a route cannot tell apart share a key.

/** Names in the query that every route knows besides its arguments. */
const GENERAL: string[] = ["_fields", "_embed", "_envelope", "_pretty", "_jsonp", "_method", "password"];

const namesByRow = new WeakMap<RouteRow, Set<string>>();

/** Includes the arguments of every endpoint of the path, since `Allow` depends on each. */
function namesOf(row: RouteRow, parameters: RouteMatch<RouteRow>["parameters"]): Set<string> {
  let names = namesByRow.get(row);
  if (names === undefined) {
    const ofEndpoints = row.route.endpoints.flatMap(({ args }) => Object.keys(args));
    names = new Set([...GENERAL, ...ofEndpoints, ...Object.keys(parameters)]);
    namesByRow.set(row, names);
  }
  return names;
}

/**
 * Removes the names that the route does not know. Neither the response nor its links depend on
 * them.
 */
export function knownQuery(query: JsonObject, match: RouteMatch<RouteRow> | undefined): JsonObject {
  if (match === undefined) return query;
  const names = namesOf(match.row, match.parameters);
  const entries = Object.entries(query);
  const selected = entries.filter(([name]) => names.has(name));
  if (selected.length === entries.length) return query;
  return Object.assign(Object.create(null), Object.fromEntries(selected)) as JsonObject;
}

/**
 * How many parsed queries are remembered, and the longest one. A repeated request needs no parsing.
 */
const REMEMBERED = 1_000;
const MAX_REMEMBERED = 2_048;

type ResponseCacheKey = (request: HttpRequest) => string | undefined;

/**
 * The returned function gives `undefined` for an unknown path and for a query that cannot be
 * parsed.
 */
export function createResponseCacheKeys(
  find: (segments: string[]) => RouteMatch<RouteRow> | undefined,
): ResponseCacheKey {
  const remembered = new LRUCache<string, string>({ max: REMEMBERED });

  const parse = (path: string, query: string): string | undefined => {
    const segments = decodeSegments(path);
    const match = find(segments);
    if (match === undefined) return undefined;
    try {
      return `/${segments.join("/")}?${JSON.stringify(knownQuery(readQuery(query), match))}`;
    } catch {
      return undefined;
    }
  };

  return ({ path, query, baseUrl }) => {
    const asked = `${path}?${query}`;
    let key = remembered.get(asked);
    if (key === undefined) {
      key = parse(path, query);
      if (key !== undefined && asked.length <= MAX_REMEMBERED) remembered.set(asked, key);
    }
    return key === undefined ? undefined : baseUrl + key;
  };
}
