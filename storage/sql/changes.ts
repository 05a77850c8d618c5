/**
 * Counts of endpoints that transactions change which do not lock the endpoints. They write what
 * they add, and the next claim adds it up.
 */

import type { SqlTransaction } from "./database.js";
import type { EndpointRow } from "./endpoint-row.js";
import type { RowOf } from "./table.js";
import { changes, removals } from "./webhook-tables.js";

/** The endpoint of changes of the totals. */
const NO_ENDPOINT = 0;

/** The most changes that one claim adds up. */
const MOST_CHANGES = 1_000;

const COUNTS = ["pending", "delivered", "failed", "withheld", "failed_tests"] as const;
const TOTALS = ["events", "bytes"] as const;
const FIELDS = [...COUNTS, ...TOTALS] as const;

type Change = Record<(typeof FIELDS)[number], number>;

/** Gathers what a transaction adds to counts. */
export class Changes {
  readonly #byEndpoint = new Map<number, Change>();

  add(endpoint: number, field: keyof Change, by: number): void {
    let change = this.#byEndpoint.get(endpoint);
    if (change === undefined) {
      change = { pending: 0, delivered: 0, failed: 0, withheld: 0, failed_tests: 0, events: 0, bytes: 0 };
      this.#byEndpoint.set(endpoint, change);
    }
    change[field] += by;
  }

  addTotals(events: number, bytes: number): void {
    this.add(NO_ENDPOINT, "events", events);
    this.add(NO_ENDPOINT, "bytes", bytes);
  }

  /** Writes what was gathered. Called once, at the end of the transaction. */
  async save(transaction: SqlTransaction): Promise<void> {
    if (this.#byEndpoint.size === 0) return;
    await transaction.insert(
      changes,
      ["endpoint", ...FIELDS],
      [...this.#byEndpoint].map(([endpoint, change]) => [endpoint, ...FIELDS.map((field) => change[field])]),
    );
  }
}

/** Selects what is not added up yet, for one endpoint. */
export const SUM_OF_CHANGES = FIELDS.map((field) => `coalesce(sum(${field}), 0) AS ${field}`).join(", ");

export type CountChangeRow = RowOf<typeof changes>;

/** Reads changes that no other claim adds up, and locks them. */
export const readChanges = (transaction: SqlTransaction): Promise<readonly CountChangeRow[]> =>
  transaction.all<CountChangeRow>(
    `SELECT * FROM {changes} ORDER BY position LIMIT ${MOST_CHANGES}${transaction.skipLocked}`,
  );

/** True if there may be more changes than were read. */
export const isFull = (rows: readonly CountChangeRow[]): boolean => rows.length === MOST_CHANGES;

/** Adds changes up in the rows of their endpoints. Returns what they add to the totals. */
export async function addUpChanges(
  transaction: SqlTransaction,
  rows: readonly CountChangeRow[],
  locked: readonly EndpointRow[],
): Promise<{ readonly events: number; readonly bytes: number }> {
  await transaction.remove(
    changes,
    ["position"],
    rows.map(({ position }) => [position]),
  );
  const summed = new Map<number, CountChangeRow>();
  for (const row of rows) {
    const sum = summed.get(row.endpoint);
    if (sum === undefined) summed.set(row.endpoint, { ...row });
    else for (const field of FIELDS) sum[field] += row[field];
  }
  const { events = 0, bytes = 0 } = summed.get(NO_ENDPOINT) ?? {};
  summed.delete(NO_ENDPOINT);
  for (const endpoint of locked) addCounts(endpoint, summed.get(endpoint.position));
  await removeLate(transaction, summed, locked);
  return { events, bytes };
}

/** Changes the totals. Every claim needs their row, so this comes last in a transaction. */
export async function addToTotals(
  transaction: SqlTransaction,
  { events, bytes }: { readonly events: number; readonly bytes: number },
): Promise<void> {
  if (events === 0 && bytes === 0) return;
  await transaction.all(
    "UPDATE {totals} SET events = events + $1, bytes = bytes + $2 WHERE name = 'webhooks'",
    [events, bytes],
  );
}

function addCounts(endpoint: EndpointRow, change: CountChangeRow | undefined): void {
  if (change === undefined) return;
  for (const field of COUNTS) endpoint[field] += change[field];
}

/** Has deliveries deleted that were added while their webhook was removed. */
async function removeLate(
  transaction: SqlTransaction,
  summed: ReadonlyMap<number, CountChangeRow>,
  locked: readonly EndpointRow[],
): Promise<void> {
  const known = new Set(locked.map(({ position }) => position));
  const late = [...summed.values()].filter(({ endpoint, pending }) => !known.has(endpoint) && pending > 0);
  await transaction.insert(
    removals,
    ["endpoint"],
    late.map(({ endpoint }) => [endpoint]),
    ["endpoint"],
  );
}
