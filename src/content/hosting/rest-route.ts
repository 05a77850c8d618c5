/** Rewrites requests that name the REST route in the query, as on a site without pretty URLs. */

/**
 * Rewrites the target of a request with WordPress's parameter `rest_route` to the path below which
 * the content service is mounted. The other parameters stay as they are.
 *
 * Returns `undefined` for any other request, and for a route with `.` or `..` as a segment: a
 * server could read it as another path of the site. Pass the result to the adapter in place of the
 * target. Its path and parameters are checked like those of any request.
 *
 * @param target the path and query as the client sent them, such as `request.url` in Node
 * @param prefix the path of the content service, such as `/wp-json`
 *
 * @example
 * ```ts
 * rewriteRestRoute("/?rest_route=/wp/v2/posts&page=2", "/wp-json"); // /wp-json/wp/v2/posts?page=2
 * rewriteRestRoute("/about?page=2", "/wp-json"); // undefined
 * ```
 */
export function rewriteRestRoute(target: string, prefix: string): string | undefined {
  const start = target.indexOf("?");
  if (start < 0 || !target.includes(NAME, start)) return undefined;
  const parameters = target.slice(start + 1).split("&");
  // Of several, the last one counts, as in PHP.
  const value = parameters.findLast((parameter) => parameter.startsWith(NAME));
  const route = value === undefined ? undefined : decode(value.slice(NAME.length));
  if (route === undefined || !route.startsWith("/") || leavesPrefix(route)) return undefined;
  const path = prefix + route.split("/").map(encodeURIComponent).join("/");
  const others = parameters.filter((parameter) => !parameter.startsWith(NAME));
  return others.length === 0 ? path : `${path}?${others.join("&")}`;
}

const NAME = "rest_route=";

const leavesPrefix = (route: string): boolean => /(?:^|\/)\.\.?(?:\/|$)/.test(route);

/** Returns `undefined` for a text that cannot be decoded, or not be encoded again. */
function decode(text: string): string | undefined {
  try {
    const route = decodeURIComponent(text.replaceAll("+", " "));
    return /\p{Cs}/u.test(route) ? undefined : route;
  } catch {
    return undefined;
  }
}
