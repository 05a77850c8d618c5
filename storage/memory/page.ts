/** Pages of rows that stand in an order of their own, so that rows added or removed meanwhile neither repeat nor hide others. */

import { PostbellError } from "../../src/errors.js";

export function pageStart(cursor: string | undefined): number | undefined {
  if (cursor === undefined) return undefined;
  const order = Number(cursor);
  if (!/^[0-9]{1,15}$/.test(cursor) || !Number.isSafeInteger(order)) {
    throw new PostbellError("invalid_argument", "cursor must be the `next` of the page before.", {
      field: "cursor",
    });
  }
  return order;
}

export function page<T extends { readonly order: number }>(
  rows: readonly T[],
  limit: number,
): { rows: readonly T[]; next: string | null } {
  const shown = rows.slice(0, limit);
  return { rows: shown, next: rows.length > limit ? String(shown.at(-1)?.order) : null };
}
