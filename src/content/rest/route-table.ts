/** Stage "match": finds the row of the route table for a path. */

import { toRoutePath } from "./index-routes.js";
import type { RouteRow } from "./route-call.js";
import { createRouteTree, decodeSegments, type RouteMatch } from "./route-tree.js";
import type { RestEndpoint, RestRoute } from "./types.js";

export interface RouteTable {
  readonly find: (segments: readonly string[]) => RouteMatch<RouteRow> | undefined;
  /** Returns the route for a path, such as `/core/v2/posts/:id`, or `undefined`. */
  readonly findRoutePath: (path: string) => string | undefined;
}

/** @throws Error if two rows have the same path, or two endpoints of a row the same method */
export function createRouteTable(routes: readonly RestRoute[]): RouteTable {
  const tree = createRouteTree(routes.map((route) => ({ path: toRoutePath(route), row: toRow(route) })));
  /** The tree ignores case, but that of a namespace counts. */
  const find: RouteTable["find"] = (segments) => {
    const match = tree.find(segments);
    return match && segments.join("/").startsWith(match.row.route.namespace) ? match : undefined;
  };
  return {
    find,
    findRoutePath(path) {
      const match = find(decodeSegments(path));
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
