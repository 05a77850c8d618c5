/** Queues the deliveries of expired leases again. */

import type { SqlTransaction } from "./database.js";
import type { DeliveryRow } from "./delivery-rows.js";
import { getQueuePlace } from "./delivery-rows.js";
import type { EndpointRow } from "./endpoint-row.js";
import { deliveries, leases, queue } from "./webhook-tables.js";

/** The most expired leases that one claim ends. */
const MOST_EXPIRED = 300;

interface Expired extends DeliveryRow {
  readonly id: string;
}

/** Reads the expired leases whose endpoints are locked, with their deliveries. */
async function readExpired(
  transaction: SqlTransaction,
  ids: readonly string[],
  now: number,
): Promise<readonly Expired[]> {
  return transaction.forEach<Expired>(
    "SELECT l.id, d.* FROM {leases} l JOIN {deliveries} d ON d.position = l.delivery WHERE l.id = $1 AND l.until <= $2",
    ["text", "int"],
    ids.map((id) => [id, now]),
  );
}

/** A lease that has expired, unless it is settled before its endpoint is locked. */
export interface ExpiredLease {
  readonly id: string;
  readonly endpoint: number;
}

/** Lists leases that have expired. Locks nothing. */
export const listExpired = (transaction: SqlTransaction, now: number): Promise<readonly ExpiredLease[]> =>
  transaction.all<ExpiredLease>(
    `SELECT id, endpoint FROM {leases} WHERE until <= $1 ORDER BY until LIMIT ${MOST_EXPIRED}`,
    [now],
  );

/** Ends leases of endpoints that are locked. Counts them in the rows of these endpoints. */
export async function recoverExpired(
  transaction: SqlTransaction,
  found: readonly ExpiredLease[],
  { locked, now }: { readonly locked: readonly EndpointRow[]; readonly now: number },
): Promise<void> {
  const byPosition = new Map(locked.map((endpoint) => [endpoint.position, endpoint]));
  const ids = found.filter(({ endpoint }) => byPosition.has(endpoint)).map(({ id }) => id);
  if (ids.length === 0) return;
  const expired = await readExpired(transaction, ids, now);
  for (const { endpoint } of expired) {
    const own = byPosition.get(endpoint);
    if (own) own.in_flight -= 1;
  }
  await transaction.remove(
    leases,
    ["id"],
    expired.map(({ id }) => [id]),
  );
  await transaction.update(
    deliveries,
    ["position"],
    ["crashes", "is_recovered", "queued_at"],
    expired.map((row) => [row.position, row.crashes + 1, 1, getQueuePlace(row, now)]),
  );
  await transaction.insert(
    queue,
    ["endpoint", "at", "delivery"],
    expired.map((row) => [row.endpoint, getQueuePlace(row, now), row.position]),
  );
}
