/** Queues the deliveries of expired leases again. */

import type { SqlTransaction } from "./database.js";
import { getQueuePlace } from "./delivery-rows.js";
import type { EndpointRow } from "./endpoint-row.js";
import { decodePositions, type LeaseRow, removeLeases } from "./lease-rows.js";
import type { DeliveryRow } from "./webhook-tables.js";
import { deliveries, leases, queue } from "./webhook-tables.js";

/** The most expired leases that one claim ends: each has the deliveries of one claim. */
const MOST_EXPIRED = 4;

/** Leases that have expired, and the endpoints of their deliveries. */
export interface ExpiredLeases {
  readonly leases: readonly number[];
  readonly endpoints: readonly number[];
}

/** Finds leases that have expired. Locks nothing. */
export async function findExpired(transaction: SqlTransaction, now: number): Promise<ExpiredLeases> {
  const rows = await transaction.all<LeaseRow>(
    `SELECT * FROM {leases} WHERE until <= $1 ORDER BY until LIMIT ${MOST_EXPIRED}`,
    [now],
  );
  const found = await transaction.forEach<{ endpoint: number }>(
    "SELECT endpoint FROM {deliveries} WHERE position = $1",
    ["int"],
    rows.flatMap((row) => decodePositions(row).map((position) => [position])),
  );
  return {
    leases: rows.map(({ position }) => position),
    endpoints: [...new Set(found.map(({ endpoint }) => endpoint))],
  };
}

/**
 * The deliveries that a lease names are in flight, unless their webhook was removed. Checked again,
 * so that a wrong lease queues nothing twice.
 */
const IN_FLIGHT = `SELECT d.* FROM {deliveries} d
  WHERE d.position = $1 AND d.state = 'pending' AND NOT EXISTS (
    SELECT 1 FROM {queue} q WHERE q.endpoint = d.endpoint AND q.at = d.queued_at AND q.delivery = d.position)`;

/** Ends leases of endpoints that are locked. Counts them in the rows of these endpoints. */
export async function recoverExpired(
  transaction: SqlTransaction,
  expired: ExpiredLeases,
  { locked, now }: { readonly locked: readonly EndpointRow[]; readonly now: number },
): Promise<void> {
  if (expired.leases.length === 0) return;
  const byPosition = new Map(locked.map((endpoint) => [endpoint.position, endpoint]));
  // Another process may have settled or recovered some meanwhile: they are not in these rows.
  const rows = await transaction.lockRows<LeaseRow>(leases, "position", expired.leases);
  const inFlight = await transaction.forEach<DeliveryRow>(
    IN_FLIGHT,
    ["int"],
    rows.flatMap((row) => decodePositions(row).map((position) => [position])),
  );
  const recovered = inFlight.filter(({ endpoint }) => byPosition.has(endpoint));
  for (const { endpoint } of recovered) {
    const own = byPosition.get(endpoint);
    if (own) own.in_flight -= 1;
  }
  await removeLeases(transaction, rows);
  await transaction.update(
    deliveries,
    ["position"],
    ["crashes", "is_recovered", "queued_at"],
    recovered.map((row) => [row.position, row.crashes + 1, 1, getQueuePlace(row, now)]),
  );
  await transaction.insert(
    queue,
    ["endpoint", "at", "delivery"],
    recovered.map((row) => [row.endpoint, getQueuePlace(row, now), row.position]),
  );
}
