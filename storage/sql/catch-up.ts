/** Makes endpoints ready for a claim: adds up what others have changed, and ends expired leases. */

import { addToTotals, addUpChanges, readChanges, sumChanges } from "./changes.js";
import type { SqlTransaction } from "./database.js";
import { lockEndpoints, offerAndSave } from "./endpoint-rows.js";
import { findExpired, recoverExpired } from "./expired-leases.js";
import type { AfterCommit, SqlStoreContext } from "./store-context.js";

/**
 * Returns false if some changes may be left for the next claim. Locks all endpoints at once and in
 * their order, and the totals after them: transactions that take locks one by one would wait for
 * each other.
 */
export async function catchUp(
  transaction: SqlTransaction,
  now: number,
  { context, after }: { readonly context: SqlStoreContext; readonly after: AfterCommit },
): Promise<boolean> {
  const [{ rows, isAll }, expired] = await Promise.all([
    readChanges(transaction),
    findExpired(transaction, now),
  ]);
  if (rows.length === 0 && expired.leases.length === 0) return isAll;
  const summed = sumChanges(rows);
  const locked = await lockEndpoints(transaction, [...summed.byEndpoint.keys(), ...expired.endpoints]);
  await addUpChanges(transaction, rows, { summed, locked });
  await recoverExpired(transaction, expired, { locked, now });
  await offerAndSave(transaction, locked, { context, now, after });
  await addToTotals(transaction, summed);
  return isAll;
}
