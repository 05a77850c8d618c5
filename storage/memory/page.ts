/**
 * Pages of rows, by the order of the rows. Rows that are added or removed between two pages neither
 * repeat nor hide others.
 */

import { validateCursor } from "../cursor.js";

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
 * Returns the first `limit` rows that are wanted. A page may be short and still have a `next`.
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
