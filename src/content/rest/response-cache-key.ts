/** Which anonymous reads share one cached answer: those that differ in nothing a route knows. */

import { LRUCache } from "lru-cache";
import type { HttpRequest } from "../../http/types.js";
import type { JsonObject } from "../../schema/types.js";
import { readQuery } from "./request-input.js";
import type { RouteRow } from "./route-call.js";
import { decodeSegments, type RouteMatch } from "./route-tree.js";

/** Names in the query that every route knows beside its arguments. */
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

/** The arguments of all endpoints of the path, because `Allow` tells of each. */
function namesOf(row: RouteRow, parameters: RouteMatch<RouteRow>["parameters"]): ReadonlySet<string> {
  let names = known.get(row);
  if (names === undefined) {
    const own = row.route.endpoints.flatMap(({ args }) => Object.keys(args));
    names = new Set([...GENERAL, ...own, ...Object.keys(parameters)]);
    known.set(row, names);
  }
  return names;
}

/** The query without the names that the route does not know: neither an answer nor a link in it depends on them. */
export function knownQuery(query: JsonObject, match: RouteMatch<RouteRow> | undefined): JsonObject {
  if (match === undefined) return query;
  const names = namesOf(match.row, match.parameters);
  const given = Object.keys(query);
  if (given.every((name) => names.has(name))) return query;
  const kept = given.filter((name) => names.has(name)).map((name) => [name, query[name]] as const);
  return Object.assign(Object.create(null), Object.fromEntries(kept)) as JsonObject;
}

/** Queries whose known part is remembered, and the longest of them: a client that repeats itself costs no parsing. */
const REMEMBERED = 1_000;
const MAX_REMEMBERED = 2_048;

export type ResponseCacheKey = (
  request: Pick<HttpRequest, "path" | "query" | "baseUrl">,
) => string | undefined;

/** `undefined` for a path that no route answers, or a query that cannot be parsed. */
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
