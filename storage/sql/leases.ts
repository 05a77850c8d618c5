/**
 * The rows of leases. A delivery is in flight while it is pending and not in the queue; the row of
 * its claim says whose lease it is, and until when.
 */

import type { SqlTransaction } from "./database.js";
import { getQueuePlace } from "./delivery-rows.js";
import type { RowOf } from "./table.js";
import { type DeliveryRow, deliveries, type EndpointRow, leases, queue } from "./webhook-tables.js";

export type LeaseRow = RowOf<typeof leases>;

/** Returns the positions of the deliveries that a claim has not settled yet. */
export const decodePositions = ({ deliveries: positions }: LeaseRow): number[] =>
  JSON.parse(positions) as number[];

const listPositions = (rows: LeaseRow[]): [number][] =>
  rows.flatMap((row) => decodePositions(row).map((position): [number] => [position]));

const removeLeases = (transaction: SqlTransaction, rows: LeaseRow[]): Promise<void> =>
  transaction.remove(
    leases,
    ["position"],
    rows.map(({ position }) => [position]),
  );

/** Takes deliveries out of leases that are locked. */
export async function shrinkLeases(
  transaction: SqlTransaction,
  rows: LeaseRow[],
  settled: Set<number>,
): Promise<void> {
  const ended: LeaseRow[] = [];
  const shrunk: [position: number, deliveries: string][] = [];
  for (const row of rows) {
    const before = decodePositions(row);
    const left = before.filter((position) => !settled.has(position));
    if (left.length === 0) ended.push(row);
    else if (left.length < before.length) shrunk.push([row.position, JSON.stringify(left)]);
  }
  await removeLeases(transaction, ended);
  await transaction.update(leases, ["position"], ["deliveries"], shrunk);
}

/** The most expired leases that one claim ends: each has the deliveries of one claim. */
const MAX_EXPIRED = 4;

/** Leases that have expired, and the endpoints of their deliveries. */
export interface ExpiredLeases {
  leases: number[];
  endpoints: number[];
}

/** Finds leases that have expired. Locks nothing. */
export async function findExpired(transaction: SqlTransaction, now: number): Promise<ExpiredLeases> {
  const rows = await transaction.all<LeaseRow>(
    `SELECT * FROM {leases} WHERE until <= $1 ORDER BY until LIMIT ${MAX_EXPIRED}`,
    [now],
  );
  const found = await transaction.forEach<{ endpoint: number }>(
    "SELECT endpoint FROM {deliveries} WHERE position = $1",
    ["int"],
    listPositions(rows),
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
  expired: number[],
  locked: EndpointRow[],
  now: number,
): Promise<void> {
  if (expired.length === 0) return;
  const byPosition = new Map(locked.map((endpoint) => [endpoint.position, endpoint]));
  // Another process may have settled or recovered some meanwhile: they are not in these rows.
  const rows = await transaction.lockRows<LeaseRow>(leases, "position", expired);
  const inFlight = await transaction.forEach<DeliveryRow>(IN_FLIGHT, ["int"], listPositions(rows));
  const recovered = inFlight.filter((row) => {
    const endpoint = byPosition.get(row.endpoint);
    if (endpoint !== undefined) endpoint.in_flight -= 1;
    return endpoint !== undefined;
  });
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
