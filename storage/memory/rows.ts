/**
 * Rows in their order, so that a page starts where the previous one ended, without stepping over
 * the rest.
 */

/** A row that is known by its order. */
export interface OrderedRow {
  /** Grows with each row. */
  readonly order: number;
}

export interface OrderedRows<T extends OrderedRow> {
  readonly size: number;
  /** Adds a row that comes after all others. `at`: when it was created, for `firstSince`. */
  add(row: T, at?: number): void;
  /** Returns false if the row is not there any more. */
  delete(row: T): boolean;
  /**
   * Returns the order of the first row created at `at` or later; `Infinity` without such a row. A
   * deleted row may count.
   */
  firstSince(at: number): number;
  /** Yields the rows after `order`, oldest first. Rows may be deleted meanwhile. */
  after(order: number): Iterable<T>;
  /** Yields the rows before `order`, newest first. Rows may be deleted meanwhile. */
  before(order: number): Iterable<T>;
}

export interface LinkedRow extends OrderedRow {
  readonly id: string;
}

/** Ordered rows with an index by id. */
export interface Rows<T extends LinkedRow> extends OrderedRows<T> {
  get(id: string): T | undefined;
}

/** The least number of gaps that are worth closing. */
const MIN_GAPS = 32;

/** Returns the first index whose number in the ascending `numbers` is `least` or greater. */
function findIndex(numbers: readonly number[], least: number): number {
  let low = 0;
  let high = numbers.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((numbers[middle] ?? 0) < least) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** O(1) for `add`, O(log n) for `delete` and to start a page. */
export function createOrderedRows<T extends OrderedRow>(): OrderedRows<T> {
  let size = 0;
  /** A removed row leaves a gap, which keeps its order for the search. */
  let line: (T | undefined)[] = [];
  let orders: number[] = [];
  let times: number[] = [];

  /** Returns the first place whose order is `order` or greater. */
  const findPlace = (order: number): number => findIndex(orders, order);

  /**
   * A deletion during an iteration may close gaps in a new array. The old array then still contains
   * deleted rows.
   */
  const isPresent = (row: T | undefined, walked: typeof line): row is T =>
    row !== undefined && (walked === line || line[findPlace(row.order)] === row);

  const closeGaps = (): void => {
    const gapped = line;
    const isKept = (_: unknown, place: number): boolean => gapped[place] !== undefined;
    line = gapped.filter(isKept);
    orders = orders.filter(isKept);
    times = times.filter(isKept);
  };

  return {
    get size() {
      return size;
    },
    add(row, at = 0) {
      size += 1;
      line.push(row);
      orders.push(row.order);
      // Ascending, even if the time of a caller is behind that of the caller before.
      times.push(Math.max(at, times.at(-1) ?? at));
    },
    firstSince: (at) => orders[findIndex(times, at)] ?? Number.POSITIVE_INFINITY,
    delete(row) {
      const place = findPlace(row.order);
      if (line[place] !== row) return false;
      line[place] = undefined;
      size -= 1;
      const gaps = line.length - size;
      if (gaps >= MIN_GAPS && gaps >= size) closeGaps();
      return true;
    },
    *after(order) {
      const walked = line;
      for (let place = findPlace(order + 1); place < walked.length; place++) {
        const row = walked[place];
        if (isPresent(row, walked)) yield row;
      }
    },
    *before(order) {
      const walked = line;
      for (let place = findPlace(order) - 1; place >= 0; place--) {
        const row = walked[place];
        if (isPresent(row, walked)) yield row;
      }
    },
  };
}

export function rows<T extends LinkedRow>(): Rows<T> {
  const byId = new Map<string, T>();
  const ordered = createOrderedRows<T>();
  return {
    get size() {
      return ordered.size;
    },
    get: (id) => byId.get(id),
    add(row, at) {
      byId.set(row.id, row);
      ordered.add(row, at);
    },
    delete: (row) => ordered.delete(row) && byId.delete(row.id),
    firstSince: (at) => ordered.firstSince(at),
    after: (order) => ordered.after(order),
    before: (order) => ordered.before(order),
  };
}
