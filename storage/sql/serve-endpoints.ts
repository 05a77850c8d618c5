/**
 * One round of a claim, row by row: the endpoints that are ready share the room of their lane. On
 * Postgres, `storage/postgres/functions/lease_due.sql` does the same.
 */

import { addClaimed, countLeft } from "../queue/endpoint.js";
import { divideRoom, LANES } from "../queue/turns.js";
import type { LeasedRound, LeaseRoundRequest, NextTimes, SqlTransaction } from "./database.js";
import { countSlots, getClaimed, offerEndpoint, saveQueues, saveRatedQueues } from "./endpoint-rows.js";
import type { RowOf } from "./table.js";
import type { EndpointRow } from "./webhook-tables.js";
import { type DueRow, leases, queue } from "./webhook-tables.js";

/** There are changes to add up, or leases that have expired. Both may make endpoints ready. */
const UPKEEP = `SELECT CASE WHEN EXISTS (SELECT 1 FROM {changes}) OR EXISTS (SELECT 1 FROM {leases} WHERE until <= $1) THEN 1 ELSE 0 END AS due`;

const READY = "SELECT * FROM {endpoints} WHERE ready_at <= $1 AND lane = $2 ORDER BY ready_at, turn LIMIT $3";

const DUE = `SELECT q.endpoint, q.at, d.position, d.event, d.serial, d.started_at, d.step, d.due_at, d.extra_at,
    d.postponed, d.crashes, d.is_recovered, ev.id AS event_id, ev.type, ev.subject, ev.digest, b.payload, ev.deliveries AS event_deliveries, d.attempts
  FROM {queue} q JOIN {deliveries} d ON d.position = q.delivery
    JOIN {events} ev ON ev.position = d.event LEFT JOIN {bodies} b ON b.event = d.event
  WHERE q.endpoint = $1 AND q.at <= $2 ORDER BY q.at, q.delivery LIMIT $3`;

/** When the first delivery of a queue may be claimed. */
const HEAD = "SELECT $1 AS endpoint, min(at) AS at FROM {queue} WHERE endpoint = $1";

const NEXT = `SELECT
  (SELECT min(ready_at) FROM {endpoints} WHERE lane = 'fast' AND ready_at IS NOT NULL) AS fast,
  (SELECT min(ready_at) FROM {endpoints} WHERE lane = 'slow' AND ready_at IS NOT NULL) AS slow,
  (SELECT min(until) FROM {leases}) AS lease`;

/** An endpoint, and how many deliveries it gets. */
interface Share {
  readonly endpoint: EndpointRow;
  readonly most: number;
}

/** Divides the room of a lane. No endpoint gets more than its slots and its rate allow. */
function shareRoom(
  own: readonly EndpointRow[],
  room: number,
  { now, perEndpoint, perSecond }: LeaseRoundRequest,
): readonly Share[] {
  return own.map((endpoint, index) => ({
    endpoint,
    most: Math.max(
      0,
      Math.min(
        divideRoom(room, own.length, index),
        countSlots(endpoint, perEndpoint),
        countLeft(perSecond, getClaimed(endpoint), now),
      ),
    ),
  }));
}

/** Reads the endpoints that are ready, and locks them. */
async function readShares(
  transaction: SqlTransaction,
  request: LeaseRoundRequest,
): Promise<readonly Share[]> {
  const { now, room } = request;
  const text = `${READY}${transaction.skipLocked}`;
  const shares: Share[] = [];
  for (const lane of LANES) {
    if (room[lane] <= 0) continue;
    const ready = await transaction.all<EndpointRow>(text, [now, lane, room[lane]]);
    shares.push(
      ...shareRoom(
        ready.map((row) => ({ ...row })),
        room[lane],
        request,
      ),
    );
  }
  return shares;
}

/** Counts the deliveries that each endpoint has given up in the second of `now`. */
function countClaimed(endpoints: readonly EndpointRow[], rows: readonly DueRow[], now: number): void {
  const counts = new Map<number, number>();
  for (const { endpoint } of rows) counts.set(endpoint, (counts.get(endpoint) ?? 0) + 1);
  for (const row of endpoints) {
    const { second, count } = addClaimed(getClaimed(row), now, counts.get(row.position) ?? 0);
    row.claimed_second = second;
    row.claimed_count = count;
  }
}

/** Leases due deliveries once. See {@link LeaseRoundRequest} and `SqlTransaction.leaseDue`. */
export async function serveRound(
  transaction: SqlTransaction,
  request: LeaseRoundRequest,
): Promise<LeasedRound | undefined> {
  const { now, token, leaseUntil, perEndpoint, perSecond, turn, isChecking } = request;
  if (isChecking) {
    const [upkeep] = await transaction.all<{ due: number }>(UPKEEP, [now]);
    if (upkeep?.due === 1) return undefined;
  }
  const shares = await readShares(transaction, request);
  const endpoints = shares.map(({ endpoint }) => endpoint);
  const rows = await transaction.forEach<DueRow>(
    DUE,
    ["int", "int", "int"],
    shares.map(({ endpoint, most }) => [endpoint.position, now, most]),
  );
  await transaction.remove(
    queue,
    ["endpoint", "at", "delivery"],
    rows.map((row) => [row.endpoint, row.at, row.position]),
  );
  const byPosition = new Map(endpoints.map((endpoint) => [endpoint.position, endpoint]));
  for (const row of rows) {
    const endpoint = byPosition.get(row.endpoint);
    if (endpoint !== undefined) endpoint.in_flight += 1;
  }
  if (perSecond !== null) countClaimed(endpoints, rows, now);
  const heads = await transaction.forEach<{ endpoint: number; at: number | null }>(
    HEAD,
    ["int"],
    endpoints.map(({ position }) => [position]),
  );
  const first = new Map(heads.map(({ endpoint, at }) => [endpoint, at ?? undefined]));
  for (const [index, endpoint] of endpoints.entries()) {
    offerEndpoint(endpoint, first.get(endpoint.position), {
      now,
      perEndpoint,
      perSecond,
      turn: turn + index,
    });
  }
  await (perSecond === null ? saveQueues : saveRatedQueues)(transaction, endpoints);
  await addLease(transaction, { token, until: leaseUntil, positions: rows.map(({ position }) => position) });
  const [next = { fast: null, slow: null, lease: null }] = await transaction.all<NextTimes>(NEXT);
  return { rows, endpoints, next };
}

// The rows of leases. A delivery is in flight while it is pending and not in the queue; the row of
// its claim says whose lease it is, and until when.

export type LeaseRow = RowOf<typeof leases>;

/** Returns the positions of the deliveries that a claim has not settled yet. */
export const decodePositions = ({ deliveries }: Pick<LeaseRow, "deliveries">): readonly number[] =>
  JSON.parse(deliveries) as number[];

/** Adds the lease of a claim. */
async function addLease(
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
