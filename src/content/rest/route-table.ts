/** The route table: finds the row for a path, and decides which paths the service answers. */

import { toRoutePath } from "./index-routes.js";
import { createRouteTree, decodeSegments, type RouteMatch, splitPath } from "./route-tree.js";
import type { RestEndpoint, RestRoute, RouteRow } from "./types.js";

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

/**
 * WordPress has namespaces besides `wp/v2`, such as `wp-block-editor/v1` and `wp-site-health/v1`.
 * Its clients need its form of a 404 to notice that a site lacks one.
 */
const OTHER_NAMESPACE = /^wp-[a-z\d-]+\/v\d+(?:\/|$)/;

/**
 * Returns a predicate for the paths that the service answers; the host has all others. With `pass`,
 * the service owns the first segments of its routes, and, if its namespace is `wp`,
 * every namespace of WordPress's form `wp-name/v1`.
 */
export function createOwnPaths(
  routes: readonly RestRoute[],
  unknownPaths: "pass" | "answer",
): (path: string) => boolean {
  if (unknownPaths === "answer") return () => true;
  const firstSegments = new Set(routes.map((route) => splitPath(toRoutePath(route))[0]));
  const isWordPress = firstSegments.has("wp");
  return (path) =>
    firstSegments.has(readFirstSegment(path)) ||
    (isWordPress && OTHER_NAMESPACE.test(decodeSegments(path).join("/")));
}

function readFirstSegment(path: string): string | undefined {
  const end = path.indexOf("/", 1);
  const raw = path.slice(1, end < 0 ? path.length : end);
  return raw.includes("%") ? decodeSegments(path)[0] : raw;
}
