/** Short words for lists in the tests of the storage contract. */

import assert from "node:assert/strict";
import type { DeliveryRecord } from "../../src/webhooks/store.js";
import type { Scenario } from "./scenario.js";

/** Overwrites whatever of `value` can be overwritten, at any depth. */
export function vandalise(value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  for (const [key, inner] of Object.entries(value)) {
    vandalise(inner);
    Reflect.set(value, key, "overwritten");
  }
  if (Array.isArray(value)) Reflect.set(value, value.length, "added");
}

export const listIds = (rows: readonly { readonly id: string }[]): string[] =>
  rows.map(({ id }) => id).sort();

/** The only one of `rows`. */
export function only<T>(rows: readonly T[]): T {
  assert.equal(rows.length, 1);
  const [row] = rows;
  assert.ok(row !== undefined);
  return row;
}

/** `count` times what `make` gives, one after the other. */
export async function times<T>(count: number, make: (index: number) => Promise<T>): Promise<T[]> {
  const made: T[] = [];
  for (let index = 0; index < count; index++) made.push(await make(index));
  return made;
}

/** All rows of a paged call. `between` runs after each page. */
export async function allPages<T>(
  read: (
    cursor: string | undefined,
  ) => Promise<{ readonly rows: readonly T[]; readonly next: string | null }>,
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

export type DeliveryQuery = { readonly webhookId: string } & Partial<
  Parameters<Scenario["store"]["listDeliveries"]>[0]
>;

/** All deliveries that `query` matches, newest first, read page by page. */
export const listed = (
  { store }: Scenario,
  query: DeliveryQuery,
  limit = 2,
  between?: () => Promise<unknown>,
): Promise<DeliveryRecord[]> =>
  allPages(async (cursor) => {
    const { deliveries, next } = await store.listDeliveries({ ...query, cursor, limit });
    assert.ok(deliveries.length <= limit);
    return { rows: deliveries, next };
  }, between);
