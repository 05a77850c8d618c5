/**
 * The collections that the memory storage keeps its records in: ordered rows and their pages,
 * a queue by time, and a map whose entries expire.
 */

import { createTimeQueue, type TimeQueue } from "../../src/core/time-queue.js";
import { validateCursor } from "../cursor.js";

/** A row that is known by its order. */
export interface OrderedRow {
  /** Grows with each row. */
  order: number;
}

/** A removed row leaves a gap. Fewer gaps than this are not worth closing. */
const MIN_GAPS = 32;

/** Returns the first index whose number in the ascending `numbers` is `min` or greater. */
function findIndex(numbers: number[], min: number): number {
  let low = 0;
  let high = numbers.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((numbers[middle] ?? 0) < min) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * Rows in their order, so that a page starts where the previous one ended, without stepping over
 * the rest. O(1) for `add`, O(log n) for `delete` and to start a page.
 */
export class OrderedRows<T extends OrderedRow> {
  #size = 0;
  #line: (T | undefined)[] = [];
  /** With those of removed rows, for the search. */
  #orders: number[] = [];
  #times: number[] = [];

  get size(): number {
    return this.#size;
  }

  /** Adds a row that comes after all others. `at`: when it was created, for `firstSince`. */
  add(row: T, at = 0): void {
    this.#size += 1;
    this.#line.push(row);
    this.#orders.push(row.order);
    // Ascending, even if the time of a caller is behind that of the caller before.
    this.#times.push(Math.max(at, this.#times.at(-1) ?? at));
  }

  /** Returns false if the row is not there any more. */
  delete(row: T): boolean {
    const place = this.#findPlace(row.order);
    if (this.#line[place] !== row) return false;
    this.#line[place] = undefined;
    this.#size -= 1;
    const gaps = this.#line.length - this.#size;
    if (gaps >= MIN_GAPS && gaps >= this.#size) this.#closeGaps();
    return true;
  }

  /**
   * Returns the order of the first row created at `at` or later; `Infinity` without such a row. A
   * deleted row may count.
   */
  firstSince(at: number): number {
    return this.#orders[findIndex(this.#times, at)] ?? Number.POSITIVE_INFINITY;
  }

  /** Yields the rows after `order`, oldest first. Rows may be deleted meanwhile. */
  *after(order: number): Iterable<T> {
    const line = this.#line;
    for (let place = this.#findPlace(order + 1); place < line.length; place++) {
      const row = line[place];
      if (this.#isPresent(row, line)) yield row;
    }
  }

  /** Yields the rows before `order`, newest first. Rows may be deleted meanwhile. */
  *before(order: number): Iterable<T> {
    const line = this.#line;
    for (let place = this.#findPlace(order) - 1; place >= 0; place--) {
      const row = line[place];
      if (this.#isPresent(row, line)) yield row;
    }
  }

  /** Returns the first place whose order is `order` or greater. */
  #findPlace(order: number): number {
    return findIndex(this.#orders, order);
  }

  /**
   * A deletion during an iteration may close gaps in a new array. The old array then still contains
   * deleted rows.
   */
  #isPresent(row: T | undefined, line: (T | undefined)[]): row is T {
    return row !== undefined && (line === this.#line || this.#line[this.#findPlace(row.order)] === row);
  }

  #closeGaps(): void {
    const line = this.#line;
    const isRow = (_: unknown, place: number): boolean => line[place] !== undefined;
    this.#line = line.filter(isRow);
    this.#orders = this.#orders.filter(isRow);
    this.#times = this.#times.filter(isRow);
  }
}

/** Ordered rows with an index by id. */
export class Rows<T extends OrderedRow & { id: string }> extends OrderedRows<T> {
  #byId = new Map<string, T>();

  get(id: string): T | undefined {
    return this.#byId.get(id);
  }

  override add(row: T, at?: number): void {
    this.#byId.set(row.id, row);
    super.add(row, at);
  }

  override delete(row: T): boolean {
    return super.delete(row) && this.#byId.delete(row.id);
  }
}

/** Fifteen digits are always a safe integer. */
const ORDER = /^[0-9]{1,15}$/;

/** Parses a cursor into the order of the row before the page; `undefined` for the first page. */
export function parsePageStart(cursor: string | undefined): number | undefined {
  const order = validateCursor(cursor, ORDER);
  return order === "" ? undefined : Number(order);
}

/**
 * The most rows that one page examines, so that a search for rare rows does not block the event
 * loop.
 */
const MAX_EXAMINED = 1_000;

/**
 * Returns the first `limit` rows that are wanted. Rows that are added or removed between two pages
 * neither repeat nor hide others. A page may be short and still have a `next`.
 * `examined` counts the rows up to it.
 */
export function collectPage<T extends { order: number }>(
  candidates: Iterable<T>,
  limit: number,
  isWanted: (row: T) => boolean = () => true,
): { rows: T[]; examined: number; next: string | null } {
  const shown: T[] = [];
  let examined = 0;
  let last = 0;
  for (const row of candidates) {
    const isMatch = isWanted(row);
    if (examined === MAX_EXAMINED || (isMatch && shown.length === limit))
      return { rows: shown, examined, next: String(last) };
    if (isMatch) shown.push(row);
    examined += 1;
    last = row.order;
  }
  return { rows: shown, examined, next: null };
}

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

  /** The time of the earliest item that was added out of order. */
  outOfOrderAt(): number | undefined {
    return this.heap?.head()?.queuedAt;
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

/** A bounded map whose entries expire in about the order in which they were set. */
export class ExpiringMap<T extends { expiresAt: number }> {
  #max: number;
  #entries = new Map<string, T>();
  // A new iterator steps over everything deleted since the map was last rehashed. So one iterator
  // is kept, and only moves forward.
  #order = this.#entries.keys();
  #head: string | undefined;

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Returns the value of `key`, unless it has expired. */
  get(key: string, now: number): T | undefined {
    const value = this.#entries.get(key);
    return value && value.expiresAt > now ? value : undefined;
  }

  /** Sets `key`. If the map is full, the oldest entry is removed. */
  set(key: string, value: T): void {
    this.#remove(key);
    const first = this.#oldest();
    if (this.#entries.size >= this.#max && first !== undefined) this.#remove(first);
    this.#entries.set(key, value);
  }

  /**
   * Removes up to `max` expired entries, oldest first. An entry that was set out of order is
   * removed after those before it.
   */
  dropExpired(now: number, max: number): void {
    for (let left = max; left > 0; left--) {
      const key = this.#oldest();
      const value = key === undefined ? undefined : this.#entries.get(key);
      if (key === undefined || !value || value.expiresAt > now) return;
      this.#remove(key);
    }
  }

  /** Removes the entries whose keys begin with `prefix`. Returns how many there were. */
  dropAll(prefix: string): number {
    const before = this.#entries.size;
    for (const key of this.#entries.keys()) if (key.startsWith(prefix)) this.#remove(key);
    return before - this.#entries.size;
  }

  #oldest(): string | undefined {
    if (this.#head !== undefined || this.#entries.size === 0) return this.#head;
    let next = this.#order.next();
    if (next.done) {
      this.#order = this.#entries.keys();
      next = this.#order.next();
    }
    this.#head = next.value;
    return this.#head;
  }

  #remove(key: string): void {
    this.#entries.delete(key);
    if (key === this.#head) this.#head = undefined;
  }
}
