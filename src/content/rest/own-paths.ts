/** Decides which paths the service answers. All others are left to the host. */

import { toRoutePath } from "./index-routes.js";
import { decodeSegments, splitPath } from "./route-tree.js";
import type { RestRoute } from "./types.js";

/**
 * WordPress has namespaces besides `wp/v2`, such as `wp-block-editor/v1` and `wp-site-health/v1`.
 * Its clients need its form of a 404 to notice that a site lacks one.
 */
const OTHER_NAMESPACE = /^wp-[a-z\d-]+\/v\d+(?:\/|$)/;

/**
 * With `pass`, the service owns the first segments of its routes, and, if its namespace is `wp`,
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
