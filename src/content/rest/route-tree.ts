/** Finds the row of the route table for a path: a tree of segments, built once. Knows neither methods nor HTTP. */

/** The parameters of a path: a number for `:id`, a text for `:name(word)`. Without prototype. */
export type PathParameters = { readonly [name: string]: number | string };

export interface RouteMatch<T> {
  readonly row: T;
  readonly parameters: PathParameters;
}

export interface RouteTree<T> {
  /** A literal segment goes before a parameter. */
  readonly find: (segments: readonly string[]) => RouteMatch<T> | undefined;
}

interface Leaf<T> {
  readonly row: T;
  /** Of its parameters, in the order of the path; other rows may name the same place differently. */
  readonly names: readonly string[];
}

interface Node<T> {
  readonly literals: Map<string, Node<T>>;
  digits?: Node<T>;
  word?: Node<T>;
  leaf?: Leaf<T>;
}

const PARAMETER = /^:([a-z_]+)(\(word\))?$/;
const DIGITS = /^[0-9]+$/;
const WORD = /^[\w-]+$/;

/** Characters of a `word` in the path. */
export const MAX_SEGMENT = 200;

const newNode = <T>(): Node<T> => ({ literals: new Map() });

/** The segments of a row's path, or of one inside the service: nothing is decoded, no trailing slash tolerated. */
export const splitPath = (path: string): readonly string[] => path.split("/").slice(1);

/**
 * The segments of a path as a client sent it. Each is decoded once, so that an encoded slash separates nothing; one that does not decode
 * stays as it is, and fits no row. One trailing slash is tolerated, an empty path is the root.
 */
export function decodeSegments(path: string): readonly string[] {
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

/** As the reference writes the path in its index: `/posts/(?P<id>[\d]+)`. */
export const toPattern = (path: string): string =>
  path
    .split("/")
    .map((segment) => {
      const [, name, isWord] = PARAMETER.exec(segment) ?? [];
      return name === undefined ? segment : `(?P<${name}>${isWord ? "[\\w-]+" : "[\\d]+"})`;
    })
    .join("/");

/** In the order of the path. */
export const listParameterNames = (path: string): readonly string[] =>
  splitPath(path).flatMap((segment) => PARAMETER.exec(segment)?.[1] ?? []);

/** Errors: Error for two rows that answer the same paths. */
export function createRouteTree<T>(
  rows: readonly { readonly path: string; readonly row: T }[],
): RouteTree<T> {
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
  let child = node.literals.get(segment);
  if (child === undefined) {
    child = newNode<T>();
    node.literals.set(segment, child);
  }
  return child;
}

/** Never deeper than the table; `values` are those of the parameters on the way. */
function descend<T>(
  node: Node<T>,
  segments: readonly string[],
  index: number,
  values: (number | string)[],
): Leaf<T> | undefined {
  const segment = segments[index];
  if (segment === undefined) return node.leaf;
  const literal = node.literals.get(segment);
  const found = literal && descend(literal, segments, index + 1, values);
  if (found !== undefined) return found;
  if (node.digits !== undefined && DIGITS.test(segment)) {
    // Larger than any id that was ever handed out is like an unknown one.
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
