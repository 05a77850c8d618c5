/** Rows by id and in their order, so that a page starts where the one before it ended without stepping over the rest. */

export interface Row {
  readonly id: string;
  /** Grows with each row. */
  readonly order: number;
}

export interface Rows<T extends Row> {
  readonly size: number;
  get(id: string): T | undefined;
  /** Adds a row that comes after all others. `at`: when it was created, for `firstSince`. */
  add(row: T, at?: number): void;
  delete(row: T): void;
  /** The order of the first row created at `at` or later; `Infinity` where there is none. A deleted row may count. */
  firstSince(at: number): number;
  /** Those after `order`, oldest first. Rows may be deleted meanwhile. */
  after(order: number): Iterable<T>;
  /** Those before `order`, newest first. Rows may be deleted meanwhile. */
  before(order: number): Iterable<T>;
}

/** Gaps are worth closing from here on. */
const MIN_GAPS = 32;

/** The first index whose number in the ascending `numbers` is `least` or greater. */
function indexOf(numbers: readonly number[], least: number): number {
  let low = 0;
  let high = numbers.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((numbers[middle] ?? 0) < least) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** O(1) for `get`, `add` and, on average, `delete` beside a search; O(log n) to start a page. */
export function rows<T extends Row>(): Rows<T> {
  const byId = new Map<string, T>();
  /** A removed row leaves a gap, which keeps its order for the search. */
  let line: (T | undefined)[] = [];
  let orders: number[] = [];
  let times: number[] = [];

  /** The first place whose order is `order` or greater. */
  const placeOf = (order: number): number => indexOf(orders, order);

  /** Deleting while somebody walks may have closed gaps in a new line: then the old one still shows what is gone. */
  const isThere = (row: T | undefined): row is T => row !== undefined && byId.get(row.id) === row;

  const closeGaps = (): void => {
    const walked = line;
    const isKept = (_: unknown, place: number): boolean => isThere(walked[place]);
    line = line.filter(isKept);
    orders = orders.filter(isKept);
    times = times.filter(isKept);
  };

  return {
    get size() {
      return byId.size;
    },
    get: (id) => byId.get(id),
    add(row, at = 0) {
      byId.set(row.id, row);
      line.push(row);
      orders.push(row.order);
      // Ascending, also where a caller's time is behind that of the caller before.
      times.push(Math.max(at, times.at(-1) ?? at));
    },
    firstSince: (at) => orders[indexOf(times, at)] ?? Number.POSITIVE_INFINITY,
    delete(row) {
      if (!byId.delete(row.id)) return;
      line[placeOf(row.order)] = undefined;
      const gaps = line.length - byId.size;
      if (gaps < MIN_GAPS || gaps < byId.size) return;
      closeGaps();
    },
    *after(order) {
      const walked = line;
      for (let place = placeOf(order + 1); place < walked.length; place++) {
        const row = walked[place];
        if (isThere(row)) yield row;
      }
    },
    *before(order) {
      const walked = line;
      for (let place = placeOf(order) - 1; place >= 0; place--) {
        const row = walked[place];
        if (isThere(row)) yield row;
      }
    },
  };
}
