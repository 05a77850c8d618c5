/** Whether a record may hang below another one. Pure. */

/** Deeper than any real tree; no walk goes on longer, whatever a file says. */
const MAX_DEPTH = 100;

/**
 * Ids above the record `id` once it hangs below `parent`, nearest first. `undefined` where it must not: it would stand above itself, below a circle,
 * or deeper than {@link MAX_DEPTH}. `parentOf` answers 0 for a root.
 */
export function listAncestorIds(
  id: number,
  parent: number,
  parentOf: (id: number) => number,
): readonly number[] | undefined {
  const above: number[] = [];
  for (let at = parent; at !== 0; at = parentOf(at)) {
    if (at === id || above.includes(at) || above.length === MAX_DEPTH) return undefined;
    above.push(at);
  }
  return above;
}
