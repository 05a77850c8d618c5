/**
 * The rows of leases. A delivery is in flight while it is pending and not in the queue; the row of
 * its claim says whose lease it is, and until when.
 */

import type { SqlTransaction } from "./database.js";
import type { RowOf } from "./table.js";
import { leases } from "./webhook-tables.js";

export type LeaseRow = RowOf<typeof leases>;

/** Returns the positions of the deliveries that a claim has not settled yet. */
export const decodePositions = ({ deliveries }: Pick<LeaseRow, "deliveries">): readonly number[] =>
  JSON.parse(deliveries) as number[];

/** Adds the lease of a claim. */
export async function addLease(
  transaction: SqlTransaction,
  { token, until, positions }: { token: string; until: number; positions: readonly number[] },
): Promise<void> {
  if (positions.length === 0) return;
  await transaction.insert(
    leases,
    ["token", "until", "deliveries"],
    [[token, until, JSON.stringify(positions)]],
  );
}

export const removeLeases = (transaction: SqlTransaction, rows: readonly LeaseRow[]): Promise<void> =>
  transaction.remove(
    leases,
    ["position"],
    rows.map(({ position }) => [position]),
  );

/** Reads the leases of claims by their tokens, and locks them. */
export const lockLeases = (
  transaction: SqlTransaction,
  tokens: readonly string[],
): Promise<readonly LeaseRow[]> => transaction.lockRows<LeaseRow>(leases, "token", tokens);

/** Takes deliveries out of leases that are locked. */
export async function shrinkLeases(
  transaction: SqlTransaction,
  rows: readonly LeaseRow[],
  settled: ReadonlySet<number>,
): Promise<void> {
  const left = rows.map((row) => {
    const before = decodePositions(row);
    const positions = before.filter((position) => !settled.has(position));
    return { row, positions, isChanged: positions.length < before.length };
  });
  await removeLeases(
    transaction,
    left.filter(({ positions }) => positions.length === 0).map(({ row }) => row),
  );
  await transaction.update(
    leases,
    ["position"],
    ["deliveries"],
    left
      .filter(({ positions, isChanged }) => isChanged && positions.length > 0)
      .map(({ row, positions }) => [row.position, JSON.stringify(positions)]),
  );
}
