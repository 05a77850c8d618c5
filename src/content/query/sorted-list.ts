/** Arrays that are kept in a strict order: search, change, and a page out of several of them at once. Knows no row. */

/** A strict order: 0 only for one and the same item, or one with the same key. */
export type Compare<T> = (a: T, b: T) => number;

/** How many of the first items of `list` satisfy `isBefore`, which none satisfies after one that does not. O(log n). */
export function countBefore<T>(list: readonly T[], isBefore: (item: T) => boolean): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isBefore(list[middle] as T)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** From so many changes at once one pass over the list is cheaper than moving its tail for each of them. */
const ONE_BY_ONE = 32;

/**
 * Takes `removed` out of `list` and puts `added` in, in place. What is removed must be in the list, what is added must not.
 * O(log n) and one move of the tail for each of a few changes, O(n + m log m) for many.
 */
export function changeSorted<T>(
  list: T[],
  compare: Compare<T>,
  removed: readonly T[],
  added: readonly T[],
): void {
  const placeOf = (item: T): number => countBefore(list, (other) => compare(other, item) < 0);
  if (removed.length + added.length <= ONE_BY_ONE) {
    for (const item of removed) list.splice(placeOf(item), 1);
    for (const item of added) list.splice(placeOf(item), 0, item);
    return;
  }
  const gone = new Set(removed);
  let kept = 0;
  for (const item of list) if (!gone.has(item)) list[kept++] = item;
  list.length = kept;
  for (const item of added) list.push(item);
  // The sort of the language takes runs that are in order as they are.
  list.sort(compare);
}

/** From so many lists on, sorting them together is cheaper than asking each of them about the items of each other. */
const MANY_LISTS = 24;

/**
 * The items from `offset` on, at most `limit`, of all `lists` together, which share one order and no item.
 * O(k² log² n + k · limit) for k lists; it does not depend on `offset`.
 */
export function pageOf<T>(
  lists: readonly (readonly T[])[],
  compare: Compare<T>,
  offset: number,
  limit: number,
): readonly T[] {
  const filled = lists.filter(({ length }) => length > 0);
  const [only] = filled;
  if (only === undefined) return [];
  if (filled.length === 1) return only.slice(offset, offset + limit);
  const total = filled.reduce((sum, { length }) => sum + length, 0);
  const end = Math.min(offset + limit, total);
  if (offset >= end) return [];
  if (filled.length > MANY_LISTS || end - offset > total / 2) {
    return filled.flat().sort(compare).slice(offset, end);
  }
  const rankOf = (item: T): number =>
    filled.reduce((sum, list) => sum + countBefore(list, (other) => compare(other, item) < 0), 0);
  const heads = filled.map((list) => (offset === 0 ? 0 : countBefore(list, (item) => rankOf(item) < offset)));
  const page: T[] = [];
  while (page.length < end - offset) {
    let first: { readonly item: T; readonly list: number } | undefined;
    for (const [list, items] of filled.entries()) {
      const item = items[heads[list] as number];
      if (item !== undefined && (first === undefined || compare(item, first.item) < 0))
        first = { item, list };
    }
    if (first === undefined) break;
    heads[first.list] = (heads[first.list] as number) + 1;
    page.push(first.item);
  }
  return page;
}
