/** Pages of rows that stand in an order of their own, so that rows added or removed meanwhile neither repeat nor hide others. */

import { validateCursor } from "../cursor.js";

/** Fifteen digits are always a safe integer. */
const ORDER = /^[0-9]{1,15}$/;

/** Parses a cursor into the order of the row before the page; `undefined` for the first page. */
export function parsePageStart(cursor: string | undefined): number | undefined {
  const order = validateCursor(cursor, ORDER);
  return order === "" ? undefined : Number(order);
}

/** Most rows that one page looks at: a rare kind of row must not hold up the event loop. */
const MAX_LOOKED_AT = 1_000;

/** The first of the rows that are wanted. A page may be short, and still have a `next`. `examined` counts the rows up to it. */
export function slicePageOf<T extends { readonly order: number }>(
  candidates: Iterable<T>,
  limit: number,
  isWanted: (row: T) => boolean = () => true,
): { rows: readonly T[]; examined: number; next: string | null } {
  const shown: T[] = [];
  let looked = 0;
  let last = 0;
  for (const row of candidates) {
    const isMatch = isWanted(row);
    if (looked === MAX_LOOKED_AT || (isMatch && shown.length === limit))
      return { rows: shown, examined: looked, next: String(last) };
    if (isMatch) shown.push(row);
    looked += 1;
    last = row.order;
  }
  return { rows: shown, examined: looked, next: null };
}
