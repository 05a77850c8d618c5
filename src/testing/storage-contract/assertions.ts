/** Small helpers that the storage contract and its assertions share. They know no storage. */

import assert from "node:assert/strict";

/** Returns the single element of `rows`, and fails if there is not exactly one. */
export function only<T>(rows: readonly T[]): T {
  assert.equal(rows.length, 1);
  const [row] = rows;
  assert.ok(row !== undefined);
  return row;
}

/** Returns the ids of `rows`, sorted, for comparisons that ignore the order. */
export const listIds = (rows: readonly { id: string }[]): string[] => rows.map(({ id }) => id).sort();

/** Returns how many of `responses` have this result. */
export const countResults = (responses: { result: string }[], result: string): number =>
  responses.filter((response) => response.result === result).length;

/** Calls `make` `count` times, one call after the other, and returns the results. */
export async function repeat<T>(count: number, make: (index: number) => Promise<T>): Promise<T[]> {
  const made: T[] = [];
  for (let index = 0; index < count; index++) made.push(await make(index));
  return made;
}

/**
 * Overwrites every property of `value`, at any depth. A storage must neither keep a value that was
 * passed in nor return a value that it keeps.
 */
export function overwriteDeep(value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  for (const [key, inner] of Object.entries(value)) {
    overwriteDeep(inner);
    Reflect.set(value, key, "overwritten");
  }
  if (Array.isArray(value)) Reflect.set(value, value.length, "added");
}

/** Reads every page of a paged call. `between` runs after each page but the last. */
export async function readAllPages<T>(
  read: (cursor: string | undefined) => Promise<{ rows: readonly T[]; next: string | null }>,
  between: () => Promise<unknown> = async () => {},
): Promise<T[]> {
  const rows: T[] = [];
  let cursor: string | undefined;
  for (let pages = 0; pages < 1_000; pages++) {
    const page = await read(cursor);
    rows.push(...page.rows);
    if (page.next === null) return rows;
    cursor = page.next;
    await between();
  }
  return assert.fail("the pages do not end");
}
