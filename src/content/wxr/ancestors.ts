/** Walks up a tree of records, and finds cycles. Pure. */

/** Deeper than any real tree. No walk is longer, whatever a file contains. */
const MAX_DEPTH = 100;

/**
 * Lists the ancestors that the record `id` would have below `parent`, nearest first. Returns
 * `undefined` if it must not go there: the record would be its own ancestor, the ancestors form a
 * cycle, or the tree would be deeper than {@link MAX_DEPTH}. `getParent` returns 0 for a root.
 */
export function listAncestorIds(
  id: number,
  parent: number,
  getParent: (id: number) => number,
): readonly number[] | undefined {
  const ancestors = new Set<number>();
  for (let at = parent; at !== 0; at = getParent(at)) {
    if (at === id || ancestors.has(at) || ancestors.size === MAX_DEPTH) return undefined;
    ancestors.add(at);
  }
  return [...ancestors];
}
