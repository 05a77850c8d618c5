/** Stage "match": finds the row of the route table for a path. */

import { toRoutePath } from "./index-routes.js";
import type { RouteRow } from "./route-call.js";
import { createRouteTree, decodeSegments, type RouteMatch, splitPath } from "./route-tree.js";
import type { RestEndpoint, RestRoute } from "./types.js";

export interface RouteTable {
  readonly find: (segments: readonly string[]) => RouteMatch<RouteRow> | undefined;
  /** True if a path of the table begins with the first segment of `path`. */
  readonly hasFirstSegment: (path: string) => boolean;
  /** Returns the route for a path, such as `/core/v2/posts/:id`, or `undefined`. */
  readonly findRoutePath: (path: string) => string | undefined;
}

/** @throws Error if two rows have the same path, or two endpoints of a row the same method */
export function createRouteTable(routes: readonly RestRoute[]): RouteTable {
  const tree = createRouteTree(routes.map((route) => ({ path: toRoutePath(route), row: toRow(route) })));
  const firstSegments = new Set(routes.map((route) => splitPath(toRoutePath(route))[0]));
  return {
    find: tree.find,
    hasFirstSegment: (path) => firstSegments.has(getFirstSegment(path)),
    findRoutePath(path) {
      const match = tree.find(decodeSegments(path));
      return match && toRoutePath(match.row.route);
    },
  };
}

function toRow(route: RestRoute): RouteRow {
  const byMethod = new Map<string, RestEndpoint>();
  for (const endpoint of route.endpoints) {
    for (const method of endpoint.methods) {
      if (byMethod.has(method))
        throw new Error(`The route ${toRoutePath(route)} has two endpoints for ${method}.`);
      byMethod.set(method, endpoint);
    }
  }
  return { route, byMethod };
}

function getFirstSegment(path: string): string | undefined {
  const end = path.indexOf("/", 1);
  const raw = path.slice(1, end < 0 ? path.length : end);
  return raw.includes("%") ? decodeSegments(path)[0] : raw;
}
