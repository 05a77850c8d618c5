/**
 * A list in a strict order, stored in chunks, so that a change moves few items however long the
 * list is. Knows no row.
 */

/** A strict order: 0 only for the same item, or one with the same key. */
export type Compare<T> = (a: T, b: T) => number;

/** The source of a page: an array or a {@link SortedList}. */
export interface Sequence<T> {
  length: number;
  at: (place: number) => T | undefined;
  slice: (start?: number, end?: number) => T[];
}

/**
 * Counts the first items of `list` that satisfy `isBefore`. After the first item that does not, no
 * other may satisfy it. O(log n).
 */
export function countBefore<T>(list: Sequence<T>, isBefore: (item: T) => boolean): number {
  return list instanceof SortedList ? list.countBefore(isBefore) : countBeforeInArray(list, isBefore);
}

function countBeforeInArray<T>(list: Sequence<T>, isBefore: (item: T) => boolean): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isBefore(list.at(middle) as T)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Longer chunks slow down changes, shorter ones look-ups. 60 000 items make about 200 chunks. */
const MAX_IN_CHUNK = 512;

/** With more changes at once, one pass over the list is cheaper than a search for each of them. */
const ONE_BY_ONE = 32;

export class SortedList<T> implements Sequence<T> {
  /** No chunk is empty. */
  #chunks: T[][] = [];
  /** The place of the first item of each chunk. Valid up to {@link #counted}. */
  #starts: number[] = [];
  #counted = 0;
  #length = 0;

  /** `sorted`: in the order of every call of {@link change}. */
  constructor(sorted: T[] = []) {
    this.#fill(sorted);
  }

  get length(): number {
    return this.#length;
  }

  at(place: number): T | undefined {
    if (place < 0 || place >= this.#length) return undefined;
    const chunk = this.#chunkOf(place);
    return this.#chunks[chunk]?.[place - this.#startOf(chunk)];
  }

  /**
   * Does what {@link countBefore} does, with one look-up of a chunk instead of one per comparison.
   */
  countBefore(isBefore: (item: T) => boolean): number {
    const chunks = this.#chunks;
    const chunk = countBeforeInArray(chunks, (items) => isBefore(items[items.length - 1] as T));
    const items = chunks[chunk];
    if (items === undefined) return this.#length;
    return this.#startOf(chunk) + countBeforeInArray(items, isBefore);
  }

  slice(start = 0, end = this.#length): T[] {
    const items: T[] = [];
    this.forEach(start, end, (item) => items.push(item));
    return items;
  }

  /** Calls `visit` with the items from `start` to before `end`. */
  forEach(start: number, end: number, visit: (item: T) => void): void {
    let left = Math.min(end, this.#length) - start;
    if (left <= 0) return;
    let chunk = this.#chunkOf(start);
    let place = start - this.#startOf(chunk);
    for (; left > 0; chunk += 1, place = 0) {
      const items = this.#chunks[chunk] ?? [];
      const last = Math.min(items.length, place + left);
      left -= last - place;
      for (; place < last; place += 1) visit(items[place] as T);
    }
  }

  /**
   * Takes `removed` out and puts `added` in. Removed items must be in the list, added ones must
   * not. O(log n) and one move within a chunk for each of a few changes; O(n + m log m) for many.
   */
  change(compare: Compare<T>, removed: T[], added: T[]): void {
    if (removed.length + added.length <= ONE_BY_ONE) {
      for (const item of removed) this.#remove(compare, item);
      for (const item of added) this.#add(compare, item);
      return;
    }
    const gone = new Set(removed);
    const items = this.slice().filter((item) => !gone.has(item));
    for (const item of added) items.push(item);
    // The sort of the engine keeps runs that are in order.
    this.#fill(items.sort(compare));
  }

  #fill(sorted: T[]): void {
    this.#chunks.length = 0;
    for (let start = 0; start < sorted.length; start += MAX_IN_CHUNK)
      this.#chunks.push(sorted.slice(start, start + MAX_IN_CHUNK));
    this.#length = sorted.length;
    this.#changedFrom(0);
  }

  /** Returns the first chunk whose last item is not before `item`, or else the last chunk. */
  #chunkFor(compare: Compare<T>, item: T): number {
    const chunks = this.#chunks;
    const before = countBeforeInArray(chunks, (chunk) => compare(chunk[chunk.length - 1] as T, item) < 0);
    return Math.max(0, Math.min(before, chunks.length - 1));
  }

  #add(compare: Compare<T>, item: T): void {
    const place = this.#chunkFor(compare, item);
    const chunk = this.#chunks[place];
    this.#length += 1;
    this.#changedFrom(place);
    if (chunk === undefined) {
      this.#chunks.push([item]);
      return;
    }
    chunk.splice(
      countBeforeInArray(chunk, (other) => compare(other, item) < 0),
      0,
      item,
    );
    if (chunk.length > MAX_IN_CHUNK) this.#chunks.splice(place + 1, 0, chunk.splice(MAX_IN_CHUNK / 2));
  }

  #remove(compare: Compare<T>, item: T): void {
    const place = this.#chunkFor(compare, item);
    const chunk = this.#chunks[place] ?? [];
    chunk.splice(
      countBeforeInArray(chunk, (other) => compare(other, item) < 0),
      1,
    );
    this.#length -= 1;
    this.#changedFrom(place);
    // Short chunks are merged, so that removals do not leave many of them.
    const next = this.#chunks[place + 1];
    if (next !== undefined && chunk.length + next.length <= MAX_IN_CHUNK / 2) {
      chunk.push(...next);
      this.#chunks.splice(place + 1, 1);
    } else if (chunk.length === 0) this.#chunks.splice(place, 1);
  }

  /** Marks the places of all items after this chunk as unknown. */
  #changedFrom(chunk: number): void {
    this.#counted = Math.min(this.#counted, chunk);
  }

  #startOf(chunk: number): number {
    this.#count();
    return this.#starts[chunk] ?? 0;
  }

  #chunkOf(place: number): number {
    this.#count();
    return countBeforeInArray(this.#starts, (start) => start <= place) - 1;
  }

  /** Counts at the first look-up instead of at each change: many changes in a row count once. */
  #count(): void {
    const [chunks, starts] = [this.#chunks, this.#starts];
    if (this.#counted === chunks.length && starts.length === chunks.length) return;
    for (let chunk = this.#counted; chunk < chunks.length; chunk += 1) {
      const before = chunks[chunk - 1];
      starts[chunk] = before === undefined ? 0 : (starts[chunk - 1] ?? 0) + before.length;
    }
    starts.length = chunks.length;
    this.#counted = chunks.length;
  }
}

/**
 * With more lists, sorting them together is cheaper than searching each for the items of others.
 */
const MANY_LISTS = 24;

/**
 * Returns at most `limit` items from `offset` on of all `lists` together, which share one order and
 * no item. O(k² log² n + k · limit) for k lists; it does not depend on `offset`.
 */
export function slicePage<T>(lists: Sequence<T>[], compare: Compare<T>, offset: number, limit: number): T[] {
  const filled = lists.filter(({ length }) => length > 0);
  const [only] = filled;
  if (only === undefined) return [];
  if (filled.length === 1) return only.slice(offset, offset + limit);
  const total = filled.reduce((sum, { length }) => sum + length, 0);
  const end = Math.min(offset + limit, total);
  if (offset >= end) return [];
  if (filled.length > MANY_LISTS || end - offset > total / 2) {
    return filled
      .flatMap((list) => list.slice())
      .sort(compare)
      .slice(offset, end);
  }
  const getRank = (item: T): number =>
    filled.reduce((sum, list) => sum + countBefore(list, (other) => compare(other, item) < 0), 0);
  const heads = filled.map((list) =>
    offset === 0 ? 0 : countBefore(list, (item) => getRank(item) < offset),
  );
  const page: T[] = [];
  while (page.length < end - offset) {
    let first: { item: T; list: number } | undefined;
    for (const [list, items] of filled.entries()) {
      const item = items.at(heads[list] as number);
      if (item !== undefined && (first === undefined || compare(item, first.item) < 0))
        first = { item, list };
    }
    if (first === undefined) break;
    heads[first.list] = (heads[first.list] as number) + 1;
    page.push(first.item);
  }
  return page;
}
