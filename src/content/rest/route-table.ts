/**
 * The route table: finds the row for a path in a tree of segments, built once, and decides which
 * paths the service answers.
 */

import type { RestEndpoint, RestRoute, RouteMatch, RouteRow } from "./types.js";

/** Returns the path below the mount point: `/core/v2/posts/:id`. */
export const toRoutePath = ({ namespace, path }: RestRoute): string =>
  namespace === "" ? path : `/${namespace}${path}`;

export interface RouteTable {
  find: (segments: string[]) => RouteMatch<RouteRow> | undefined;
  /** Returns the route for a path, such as `/core/v2/posts/:id`, or `undefined`. */
  findRoutePath: (path: string) => string | undefined;
}

/** @throws Error if two rows have the same path, or two endpoints of a row the same method */
export function createRouteTable(routes: RestRoute[]): RouteTable {
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
  routes: RestRoute[],
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

// Finds the row for a path in a tree of segments, built once. Knows neither methods nor HTTP.

interface RouteTree<T> {
  /**
   * A literal segment takes precedence over a parameter. As in WordPress, the case of its ASCII
   * letters does not count.
   */
  find: (segments: string[]) => RouteMatch<T> | undefined;
}

interface Leaf<T> {
  row: T;
  /**
   * The names of its parameters in path order. Other rows may use other names at the same place.
   */
  names: string[];
}

interface Node<T> {
  literals: Map<string, Node<T>>;
  digits?: Node<T>;
  word?: Node<T>;
  leaf?: Leaf<T>;
}

const PARAMETER = /^:([a-z_]+)(\(word\))?$/;
const DIGITS = /^[0-9]+$/;
const WORD = /^[\w-]+$/;

/** The longest `word` in a path, in characters. */
export const MAX_SEGMENT = 200;

const newNode = <T>(): Node<T> => ({ literals: new Map() });

/** Splits the path of a row, or one from inside the service. Nothing is decoded. */
export const splitPath = (path: string): string[] => path.split("/").slice(1);

/**
 * Splits a path as a client sent it. Each segment is decoded once, so that an encoded slash
 * separates nothing. A segment that cannot be decoded stays as it is and matches no row. One
 * trailing slash is tolerated; an empty path is the root.
 */
export function decodeSegments(path: string): string[] {
  const segments = (path || "/").split("/");
  if (segments.length > 2 && segments.at(-1) === "" && segments.at(-2) !== "") segments.pop();
  segments.shift();
  return path.includes("%") ? segments.map(decoded) : segments;
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** Writes the path as WordPress does in its index: `/posts/(?P<id>[\d]+)`. */
export const toPattern = (path: string): string =>
  path
    .split("/")
    .map((segment) => {
      const [, name, isWord] = PARAMETER.exec(segment) ?? [];
      return name === undefined ? segment : `(?P<${name}>${isWord ? "[\\w-]+" : "[\\d]+"})`;
    })
    .join("/");

/** Returns the names in path order. */
export const listParameterNames = (path: string): string[] =>
  splitPath(path).flatMap((segment) => PARAMETER.exec(segment)?.[1] ?? []);

/** @throws Error if two rows have the same paths */
function createRouteTree<T>(rows: { path: string; row: T }[]): RouteTree<T> {
  const root = newNode<T>();
  for (const { path, row } of rows) {
    let node = root;
    for (const segment of splitPath(path)) node = childOf(node, segment);
    if (node.leaf !== undefined) throw new Error(`The route table has two rows for ${path}.`);
    node.leaf = { row, names: listParameterNames(path) };
  }
  return {
    find(segments) {
      const values: (number | string)[] = [];
      const leaf = descend(root, segments, 0, values);
      if (leaf === undefined) return undefined;
      const parameters: Record<string, number | string> = Object.create(null);
      for (const [index, name] of leaf.names.entries()) parameters[name] = values[index] as number | string;
      return { row: leaf.row, parameters };
    },
  };
}

function childOf<T>(node: Node<T>, segment: string): Node<T> {
  const parameter = PARAMETER.exec(segment);
  if (parameter !== null) {
    const kind = parameter[2] === undefined ? "digits" : "word";
    node[kind] ??= newNode<T>();
    return node[kind];
  }
  const literal = lowerCase(segment);
  let child = node.literals.get(literal);
  if (child === undefined) {
    child = newNode<T>();
    node.literals.set(literal, child);
  }
  return child;
}

/** Leaves other letters: the Kelvin sign would become a `k`. */
const lowerCase = (segment: string): string => segment.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());

const findLiteral = <T>({ literals }: Node<T>, segment: string): Node<T> | undefined =>
  literals.get(segment) ?? literals.get(lowerCase(segment));

/** Recurses at most as deep as the table. `values` collects the parameters on the way. */
function descend<T>(
  node: Node<T>,
  segments: string[],
  index: number,
  values: (number | string)[],
): Leaf<T> | undefined {
  const segment = segments[index];
  if (segment === undefined) return node.leaf;
  const literal = findLiteral(node, segment);
  const found = literal && descend(literal, segments, index + 1, values);
  if (found !== undefined) return found;
  if (node.digits !== undefined && DIGITS.test(segment)) {
    // A number above every possible id is treated like an unknown one.
    values.push(Math.min(Number(segment), Number.MAX_SAFE_INTEGER));
    const below = descend(node.digits, segments, index + 1, values);
    if (below !== undefined) return below;
    values.pop();
  }
  if (node.word !== undefined && segment.length <= MAX_SEGMENT && WORD.test(segment)) {
    values.push(segment);
    const below = descend(node.word, segments, index + 1, values);
    if (below !== undefined) return below;
    values.pop();
  }
  return undefined;
}
