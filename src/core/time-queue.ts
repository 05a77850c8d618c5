/** A priority queue by time whose items can be moved and removed: an indexed binary heap. */

export interface TimeQueue<T> {
  size: number;
  /**
   * Adds `item` at time `at`, or moves it there. Items with the same time come out in the order in
   * which they were set.
   */
  set(item: T, at: number): void;
  /** Removes `item`. Returns false if it is not in the queue. */
  delete(item: T): boolean;
  /** Returns the time of `item`; `undefined` if it is not in the queue. */
  at(item: T): number | undefined;
  /** Returns the earliest item. */
  head(): T | undefined;
  /** Returns the time of the earliest item. */
  headAt(): number | undefined;
  /** Yields the items at `at` or earlier, in no order. Do not change the queue meanwhile. */
  until(at: number): Iterable<T>;
}

interface Node<T> {
  item: T;
  at: number;
  order: number;
  index: number;
}

/**
 * Creates an empty queue. `set` and `delete` take O(log n), `until` O(k) for its k items, the rest
 * O(1).
 */
export function createTimeQueue<T>(): TimeQueue<T> {
  const nodes = new Map<T, Node<T>>();
  const heap: Node<T>[] = [];
  let order = 0;

  const isBefore = (a: Node<T>, b: Node<T>): boolean => a.at < b.at || (a.at === b.at && a.order < b.order);
  const place = (node: Node<T>, index: number): void => {
    heap[index] = node;
    node.index = index;
  };
  /** Moves `node`, whose time has changed, to its place in the heap. */
  const sift = (node: Node<T>): void => {
    let index = node.index;
    while (index > 0) {
      const parent = heap[(index - 1) >> 1];
      if (!parent || !isBefore(node, parent)) break;
      const above = parent.index;
      place(parent, index);
      index = above;
    }
    for (;;) {
      const left = heap[2 * index + 1];
      const right = heap[2 * index + 2];
      const child = left && right && isBefore(right, left) ? right : left;
      if (!child || !isBefore(child, node)) break;
      const below = child.index;
      place(child, index);
      index = below;
    }
    place(node, index);
  };

  return {
    get size() {
      return heap.length;
    },
    set(item, at) {
      const existing = nodes.get(item);
      const node = existing ?? { item, at, order: 0, index: heap.length };
      node.at = at;
      node.order = order++;
      if (!existing) {
        nodes.set(item, node);
        heap.push(node);
      }
      sift(node);
    },
    delete(item) {
      const node = nodes.get(item);
      if (!node) return false;
      nodes.delete(item);
      const last = heap.pop();
      if (last && last !== node) {
        last.index = node.index;
        sift(last);
      }
      return true;
    },
    at: (item) => nodes.get(item)?.at,
    head: () => heap[0]?.item,
    headAt: () => heap[0]?.at,
    *until(at) {
      const indexes = [0];
      for (let index = indexes.pop(); index !== undefined; index = indexes.pop()) {
        const node = heap[index];
        if (!node || node.at > at) continue;
        yield node.item;
        indexes.push(2 * index + 1, 2 * index + 2);
      }
    },
  };
}
