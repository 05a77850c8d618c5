/**
 * Counts of endpoints that transactions change which do not lock the endpoints. They write what
 * they add, and the next claim adds it up.
 */

import type { SqlTransaction } from "./database.js";
import type { RowOf } from "./table.js";
import type { EndpointRow } from "./webhook-tables.js";
import { changes, removals } from "./webhook-tables.js";

/** The most rows that one claim reads, and about how many counts of endpoints it adds up. */
const MOST_ROWS = 30;
const MOST_COUNTS = 2_000;

const FIELDS = ["pending", "delivered", "failed", "withheld", "failed_tests"] as const;

/** An addition to the counts of an endpoint. */
export type CountChange = Record<(typeof FIELDS)[number], number>;

/** The position of an endpoint, and additions in the order of `FIELDS`. Zeros may be missing. */
type EndpointCounts = readonly number[];

type ChangeRow = RowOf<typeof changes>;

const noChange = (): CountChange => ({ pending: 0, delivered: 0, failed: 0, withheld: 0, failed_tests: 0 });

/** A row of changes, decoded. */
export interface StoredChange extends Pick<ChangeRow, "position" | "events" | "bytes"> {
  readonly counts: readonly EndpointCounts[];
}

const decodeChange = ({ counts, ...row }: ChangeRow): StoredChange => ({
  ...row,
  counts: JSON.parse(counts) as EndpointCounts[],
});

/** Gathers what a transaction adds to counts. */
export class Changes {
  readonly #byEndpoint = new Map<number, CountChange>();
  #events = 0;
  #bytes = 0;

  add(endpoint: number, field: keyof CountChange, by: number): void {
    const change = this.#byEndpoint.get(endpoint) ?? noChange();
    change[field] += by;
    this.#byEndpoint.set(endpoint, change);
  }

  addTotals(events: number, bytes: number): void {
    this.#events += events;
    this.#bytes += bytes;
  }

  /** Writes what was gathered. Called once, at the end of the transaction. */
  async save(transaction: SqlTransaction): Promise<void> {
    const counts = [...this.#byEndpoint].map(([endpoint, change]) => [
      endpoint,
      ...FIELDS.map((field) => change[field]),
    ]);
    if (counts.length === 0 && this.#events === 0) return;
    await transaction.insert(
      changes,
      ["counts", "events", "bytes"],
      [[JSON.stringify(counts), this.#events, this.#bytes]],
    );
  }
}

/** Sums of changes: for each endpoint, by position, and for the totals. */
export interface SummedChanges {
  readonly byEndpoint: ReadonlyMap<number, CountChange>;
  readonly events: number;
  readonly bytes: number;
}

export function sumChanges(rows: readonly StoredChange[]): SummedChanges {
  const byEndpoint = new Map<number, CountChange>();
  let [events, bytes] = [0, 0];
  for (const row of rows) {
    events += row.events;
    bytes += row.bytes;
    for (const [endpoint = 0, ...added] of row.counts) {
      const change = byEndpoint.get(endpoint) ?? noChange();
      for (const [index, field] of FIELDS.entries()) change[field] += added[index] ?? 0;
      byEndpoint.set(endpoint, change);
    }
  }
  return { byEndpoint, events, bytes };
}

/** Sums all changes that are not added up yet. */
export const readAllChanges = async (transaction: SqlTransaction): Promise<SummedChanges> =>
  sumChanges((await transaction.all<ChangeRow>("SELECT * FROM {changes}")).map(decodeChange));

/** Sums the changes of one endpoint that are not added up yet. */
export async function readChangesOf(
  transaction: SqlTransaction,
  endpoint: number,
): Promise<CountChange | undefined> {
  const rows = await transaction.all<ChangeRow>("SELECT * FROM {changes} WHERE counts LIKE $1", [
    `%[${endpoint},%`,
  ]);
  return sumChanges(rows.map(decodeChange)).byEndpoint.get(endpoint);
}

/**
 * Reads changes that no other claim adds up, and locks them. `isAll`: no more were found than are
 * added up at once.
 */
export async function readChanges(
  transaction: SqlTransaction,
): Promise<{ readonly rows: readonly StoredChange[]; readonly isAll: boolean }> {
  const found = await transaction.all<ChangeRow>(
    `SELECT * FROM {changes} ORDER BY position LIMIT ${MOST_ROWS}${transaction.skipLocked}`,
  );
  const rows: StoredChange[] = [];
  let left = MOST_COUNTS;
  for (const row of found) {
    if (left <= 0) break;
    const change = decodeChange(row);
    rows.push(change);
    left -= change.counts.length;
  }
  return { rows, isAll: rows.length < MOST_ROWS && rows.length === found.length };
}

/** Deletes changes, and adds them up in the rows of their endpoints. */
export async function addUpChanges(
  transaction: SqlTransaction,
  rows: readonly StoredChange[],
  { summed, locked }: { readonly summed: SummedChanges; readonly locked: readonly EndpointRow[] },
): Promise<void> {
  await transaction.remove(
    changes,
    ["position"],
    rows.map(({ position }) => [position]),
  );
  for (const endpoint of locked) {
    const change = summed.byEndpoint.get(endpoint.position);
    if (change !== undefined) for (const field of FIELDS) endpoint[field] += change[field];
  }
  await removeLate(transaction, summed, locked);
}

/** Changes the totals. Every claim needs their row, so this comes last in a transaction. */
export async function addToTotals(
  transaction: SqlTransaction,
  { events, bytes }: Pick<SummedChanges, "events" | "bytes">,
): Promise<void> {
  if (events === 0 && bytes === 0) return;
  await transaction.all(
    "UPDATE {totals} SET events = events + $1, bytes = bytes + $2 WHERE name = 'webhooks'",
    [events, bytes],
  );
}

/** Has deliveries deleted that were added while their webhook was removed. */
async function removeLate(
  transaction: SqlTransaction,
  { byEndpoint }: SummedChanges,
  locked: readonly EndpointRow[],
): Promise<void> {
  const known = new Set(locked.map(({ position }) => position));
  const late = [...byEndpoint].filter(([endpoint, { pending }]) => !known.has(endpoint) && pending > 0);
  await transaction.insert(
    removals,
    ["endpoint"],
    late.map(([endpoint]) => [endpoint]),
    ["endpoint"],
  );
}
