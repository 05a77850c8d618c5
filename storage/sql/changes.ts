/**
 * Counts of endpoints that transactions change which do not lock the endpoints. They write what
 * they add, and the next claim adds it up.
 */

import type { SqlTransaction } from "./database.js";
import { lockEndpoints, offerAndSave, type Writing } from "./endpoint-rows.js";
import { findExpired, recoverExpired } from "./leases.js";
import type { RowOf } from "./table.js";
import { changes, removals } from "./webhook-tables.js";

/** The most rows that one claim reads, and about how many counts of endpoints it adds up. */
const MAX_ROWS = 30;
const MAX_COUNTS = 2_000;

const FIELDS = ["pending", "delivered", "failed", "withheld", "failed_tests", "filtered"] as const;

/** An addition to the counts of an endpoint. */
export type CountChange = Record<(typeof FIELDS)[number], number>;

type ChangeRow = RowOf<typeof changes>;

/** The position of an endpoint, and additions in the order of `FIELDS`. Zeros may be missing. */
const decodeCounts = ({ counts }: ChangeRow): number[][] => JSON.parse(counts) as number[][];

/** Sums of changes: for each endpoint, by position, and for the totals. */
export class Changes {
  readonly byEndpoint = new Map<number, CountChange>();
  events = 0;
  bytes = 0;

  constructor(rows: readonly ChangeRow[] = []) {
    for (const row of rows) {
      this.addTotals(row.events, row.bytes);
      for (const [endpoint = 0, ...added] of decodeCounts(row))
        for (const [index, field] of FIELDS.entries()) this.add(endpoint, field, added[index] ?? 0);
    }
  }

  add(endpoint: number, field: keyof CountChange, by: number): void {
    let change = this.byEndpoint.get(endpoint);
    if (change === undefined) {
      change = { pending: 0, delivered: 0, failed: 0, withheld: 0, failed_tests: 0, filtered: 0 };
      this.byEndpoint.set(endpoint, change);
    }
    change[field] += by;
  }

  addTotals(events: number, bytes: number): void {
    this.events += events;
    this.bytes += bytes;
  }

  /** Writes what was gathered. Called once, at the end of the transaction. */
  async save(transaction: SqlTransaction): Promise<void> {
    if (this.byEndpoint.size === 0 && this.events === 0) return;
    const counts = [...this.byEndpoint].map(([endpoint, change]) => [
      endpoint,
      ...FIELDS.map((field) => change[field]),
    ]);
    const row = [JSON.stringify(counts), this.events, this.bytes];
    await transaction.insert(changes, ["counts", "events", "bytes"], [row]);
  }
}

/** Sums all changes that are not added up yet. */
export const readAllChanges = async (transaction: SqlTransaction): Promise<Changes> =>
  new Changes(await transaction.all<ChangeRow>("SELECT * FROM {changes}"));

/** The most rows that a list reads. Workers leave fewer; without any, the rest is not counted. */
const MAX_LISTED = 500;

/** Sums the first changes that are not added up yet. */
export const readFirstChanges = async (transaction: SqlTransaction): Promise<Changes> =>
  new Changes(
    await transaction.all<ChangeRow>(`SELECT * FROM {changes} ORDER BY position LIMIT ${MAX_LISTED}`),
  );

/** Sums the changes of one endpoint that are not added up yet. */
export async function readChangesOf(
  transaction: SqlTransaction,
  endpoint: number,
): Promise<CountChange | undefined> {
  const text = "SELECT * FROM {changes} WHERE counts LIKE $1";
  const rows = await transaction.all<ChangeRow>(text, [`%[${endpoint},%`]);
  return new Changes(rows).byEndpoint.get(endpoint);
}

/**
 * Reads changes that no other claim adds up, and locks them. `isAll`: no more were found than are
 * added up at once.
 */
async function readChanges(transaction: SqlTransaction): Promise<{ rows: ChangeRow[]; isAll: boolean }> {
  const found = await transaction.all<ChangeRow>(
    `SELECT * FROM {changes} ORDER BY position LIMIT ${MAX_ROWS}${transaction.skipLocked}`,
  );
  const rows: ChangeRow[] = [];
  let left = MAX_COUNTS;
  for (const row of found) {
    if (left <= 0) break;
    rows.push(row);
    left -= decodeCounts(row).length;
  }
  return { rows, isAll: rows.length < MAX_ROWS && rows.length === found.length };
}

/**
 * Adds up changes and ends expired leases. Returns false if some changes may be left for the next
 * claim. Locks all endpoints at once and in their order, and the totals after them: transactions
 * that take locks one by one would wait for each other.
 */
export async function catchUp(transaction: SqlTransaction, writing: Writing): Promise<boolean> {
  const [{ rows, isAll }, expired] = await Promise.all([
    readChanges(transaction),
    findExpired(transaction, writing.now),
  ]);
  if (rows.length === 0 && expired.leases.length === 0) return isAll;
  const { byEndpoint, events, bytes } = new Changes(rows);
  const locked = await lockEndpoints(transaction, [...byEndpoint.keys(), ...expired.endpoints]);
  await transaction.remove(
    changes,
    ["position"],
    rows.map(({ position }) => [position]),
  );
  for (const endpoint of locked) {
    const change = byEndpoint.get(endpoint.position);
    if (change !== undefined) for (const field of FIELDS) endpoint[field] += change[field];
    byEndpoint.delete(endpoint.position);
  }
  // Deliveries that were added while their webhook was removed are deleted.
  const late = [...byEndpoint].filter(([, { pending }]) => pending > 0);
  await transaction.insert(
    removals,
    ["endpoint"],
    late.map(([endpoint]) => [endpoint]),
    ["endpoint"],
  );
  await recoverExpired(transaction, expired.leases, locked, writing.now);
  await offerAndSave(transaction, locked, writing);
  if (events !== 0 || bytes !== 0) {
    const text = "UPDATE {totals} SET events = events + $1, bytes = bytes + $2 WHERE name = 'webhooks'";
    await transaction.all(text, [events, bytes]);
  }
  return isAll;
}
