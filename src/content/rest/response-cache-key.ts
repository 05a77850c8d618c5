/** Builds the keys of cached responses: requests that a route cannot tell apart share a key. */

import { LRUCache } from "lru-cache";
import type { HttpRequest } from "../../http/types.js";
import type { JsonObject } from "../../schema/types.js";
import { readQuery } from "./request-input.js";
import { decodeSegments, type RouteMatch } from "./route-tree.js";
import type { RouteRow } from "./types.js";

/** Names in the query that every route knows besides its arguments. */
const GENERAL: readonly string[] = [
  "_fields",
  "_embed",
  "_envelope",
  "_pretty",
  "_jsonp",
  "_method",
  "password",
];

const known = new WeakMap<RouteRow, ReadonlySet<string>>();

/** Includes the arguments of every endpoint of the path, since `Allow` depends on each. */
function namesOf(row: RouteRow, parameters: RouteMatch<RouteRow>["parameters"]): ReadonlySet<string> {
  let names = known.get(row);
  if (names === undefined) {
    const own = row.route.endpoints.flatMap(({ args }) => Object.keys(args));
    names = new Set([...GENERAL, ...own, ...Object.keys(parameters)]);
    known.set(row, names);
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
  const given = Object.keys(query);
  if (given.every((name) => names.has(name))) return query;
  const kept = given.filter((name) => names.has(name)).map((name) => [name, query[name]] as const);
  return Object.assign(Object.create(null), Object.fromEntries(kept)) as JsonObject;
}

/**
 * How many parsed queries are remembered, and the longest one. A repeated request needs no parsing.
 */
const REMEMBERED = 1_000;
const MAX_REMEMBERED = 2_048;

export type ResponseCacheKey = (
  request: Pick<HttpRequest, "path" | "query" | "baseUrl">,
) => string | undefined;

/**
 * The returned function gives `undefined` for an unknown path and for a query that cannot be
 * parsed.
 */
export function createResponseCacheKeys(
  find: (segments: readonly string[]) => RouteMatch<RouteRow> | undefined,
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
