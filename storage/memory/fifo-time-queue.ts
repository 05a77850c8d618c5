/**
 * A priority queue by time for items that mostly come in order. Adding and removing such an item
 * takes a few assignments.
 */

import { createTimeQueue, type TimeQueue } from "../../src/core/time-queue.js";

/**
 * The fields of an item that its queue uses, so that the queue allocates nothing for the item. An
 * item is in one queue at a time.
 */
export interface Queued<T> {
  /** The part of the queue that it is in; `null` if it is in no queue. */
  place: "fifo" | "heap" | null;
  queuedAt: number;
  /** Grows with each item added: the order of items of the same time. */
  turn: number;
  /** Its neighbours in the FIFO. */
  previous: T | null;
  next: T | null;
}

const isBefore = <T>(a: Queued<T>, b: Queued<T>): boolean =>
  a.queuedAt < b.queuedAt || (a.queuedAt === b.queuedAt && a.turn < b.turn);

/** A linked list of the items that came in order, and a heap of the others. */
export class FifoTimeQueue<T extends Queued<T>> {
  private first: T | null = null;
  private last: T | null = null;
  private listed = 0;
  private turns = 0;
  /** Most queues never need one. */
  private heap: TimeQueue<T> | undefined;

  get size(): number {
    return this.listed + (this.heap?.size ?? 0);
  }

  /**
   * Adds an item that is in no queue. Items of the same time come out in the order in which they
   * were added.
   */
  add(item: T, at: number): void {
    const { last } = this;
    if (last !== null && at < last.queuedAt) {
      this.addOutOfOrder(item, at);
      return;
    }
    item.place = "fifo";
    item.queuedAt = at;
    item.turn = ++this.turns;
    item.previous = last;
    if (last === null) this.first = item;
    else last.next = item;
    this.last = item;
    this.listed += 1;
  }

  /** Adds an item that later items are likely to precede, so that these still come in order. */
  addOutOfOrder(item: T, at: number): void {
    item.place = "heap";
    item.queuedAt = at;
    item.turn = ++this.turns;
    this.heap ??= createTimeQueue();
    this.heap.set(item, at);
  }

  /** Removes an item that is in this queue, or in none. */
  delete(item: T): void {
    if (item.place === "fifo") this.unlink(item);
    else if (item.place === "heap") this.heap?.delete(item);
    item.place = null;
  }

  /** The earliest item. */
  head(): T | undefined {
    const { first } = this;
    const other = this.heap?.head();
    if (other === undefined) return first ?? undefined;
    return first === null || isBefore(other, first) ? other : first;
  }

  headAt(): number | undefined {
    return this.head()?.queuedAt;
  }

  /** Yields the items at `at` or earlier, in no order. The queue must not change meanwhile. */
  *until(at: number): Iterable<T> {
    for (let item = this.first; item !== null && item.queuedAt <= at; item = item.next) yield item;
    if (this.heap !== undefined) yield* this.heap.until(at);
  }

  /** Clears the links too, because an old item must not keep others on the heap. */
  private unlink(item: T): void {
    const { previous, next } = item;
    if (previous === null) this.first = next;
    else previous.next = next;
    if (next === null) this.last = previous;
    else next.previous = previous;
    item.previous = null;
    item.next = null;
    this.listed -= 1;
  }
}
