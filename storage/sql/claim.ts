/** Leases due deliveries: endpoints take turns in their lane, deliveries within their endpoint. */

import type { ClaimRequest, ClaimResponse, Lane } from "../../src/webhooks/store.js";
import { catchUp } from "./catch-up.js";
import type { SqlTransaction } from "./database.js";
import type { Claiming } from "./due-deliveries.js";
import type { EndpointRow } from "./endpoint-row.js";
import { countFreeSlots, lockEndpoints } from "./endpoint-rows.js";
import { addLease } from "./lease-rows.js";
import { LANES, serveRound } from "./serve-endpoints.js";
import type { AfterCommit, SqlStoreContext } from "./store-context.js";

/** Endpoints that have fewer due deliveries than their share leave room for another round. */
const MOST_ROUNDS = 4;

/** There are changes to add up, or leases that have expired. Both may make endpoints ready. */
const HAS_UPKEEP = `EXISTS (SELECT 1 FROM {changes}) OR EXISTS (SELECT 1 FROM {leases} WHERE until <= $1)`;

const READY = `SELECT * FROM {endpoints} WHERE ready_at <= $1 AND lane = $2`;
const IN_TURN = " ORDER BY ready_at, turn LIMIT $3";

const FIRST_READY =
  "SELECT position FROM {endpoints} WHERE ready_at <= $1 AND lane = $2 ORDER BY ready_at, turn LIMIT 1";

/**
 * Waits for the lock of one endpoint that is ready. The transaction must not hold the lock of
 * another one: two that wait for each other would not end. So it is found before it is locked,
 * since a query that locks also keeps the lock of a row that is not ready any more.
 */
async function waitForReady({
  transaction,
  request: { now, room },
}: Claiming): Promise<readonly EndpointRow[]> {
  for (const lane of LANES) {
    if (room[lane] <= 0) continue;
    const [first] = await transaction.all<{ position: number }>(FIRST_READY, [now, lane]);
    if (first === undefined) continue;
    const rows = await lockEndpoints(transaction, [first.position]);
    return rows
      .filter((row) => row.lane === lane && (row.ready_at ?? now + 1) <= now)
      .map((row) => ({ ...row }));
  }
  return [];
}

/** Reads the endpoints that are ready, and locks them. */
async function readReady(
  { transaction, request: { now } }: Claiming,
  room: Readonly<Record<Lane, number>>,
  condition = "",
): Promise<readonly EndpointRow[]> {
  const text = `${READY}${condition}${IN_TURN}${transaction.skipLocked}`;
  const rows = await Promise.all(
    LANES.filter((lane) => room[lane] > 0).map((lane) =>
      transaction.all<EndpointRow>(text, [now, lane, room[lane]]),
    ),
  );
  return rows.flat().map((row) => ({ ...row }));
}

/**
 * Reads the endpoints that are ready, after what makes endpoints ready. That locks endpoints in
 * their order, so no endpoint may be locked before it.
 */
async function readFirst(claiming: Claiming): Promise<{ ready: readonly EndpointRow[]; isAddedUp: boolean }> {
  const { transaction, request, context, after } = claiming;
  const { now, room } = request;
  const [ready, [upkeep]] = await Promise.all([
    readReady(claiming, room, ` AND NOT (${HAS_UPKEEP})`),
    transaction.all<{ due: number }>(`SELECT CASE WHEN ${HAS_UPKEEP} THEN 1 ELSE 0 END AS due`, [now]),
  ]);
  const isCaughtUp = upkeep?.due !== 1;
  // Changes that came between the two queries wait for the next claim: this one holds locks.
  if (isCaughtUp || ready.length > 0) return { ready, isAddedUp: isCaughtUp };
  const isAddedUp = await catchUp(transaction, now, { context, after });
  return { ready: await readReady(claiming, room), isAddedUp };
}

/** True if another round could lease more. */
function isMoreReady(
  { context, request: { now } }: Claiming,
  ready: readonly EndpointRow[],
  left: Readonly<Record<Lane, number>>,
): boolean {
  return LANES.some((lane) => {
    const own = ready.filter((endpoint) => endpoint.lane === lane);
    const isServable = (row: EndpointRow): boolean =>
      row.ready_at !== null && row.ready_at <= now && countFreeSlots(row, context.perEndpoint) > 0;
    return left[lane] > 0 && own.some(isServable);
  });
}

const NEXT = `SELECT
  (SELECT min(ready_at) FROM {endpoints} WHERE lane = 'fast' AND ready_at IS NOT NULL) AS fast,
  (SELECT min(ready_at) FROM {endpoints} WHERE lane = 'slow' AND ready_at IS NOT NULL) AS slow,
  (SELECT min(until) FROM {leases}) AS lease`;

/** When an endpoint of each lane is ready, and when a lease expires; null for never. */
type NextRow = Readonly<Record<Lane | "lease", number | null>>;

/** Returns the earliest of times; `null` for never. */
const findEarliest = (times: readonly (number | null)[]): number | null =>
  times.reduce<number | null>(
    (first, at) => (first === null || (at !== null && at < first) ? at : first),
    null,
  );

/** A response, and whether other transactions held the locks of everything that was due. */
export interface ClaimAttempt {
  readonly response: ClaimResponse;
  readonly isLocked: boolean;
}

/**
 * Leases what is due, in a transaction. Returns a function that gives the response: the last query
 * is sent, and read when the transaction has committed.
 */
export async function leaseDue(
  transaction: SqlTransaction,
  request: ClaimRequest,
  {
    context,
    after,
    isWaiting,
  }: {
    readonly context: SqlStoreContext;
    readonly after: AfterCommit;
    /** True if an earlier attempt found the locks of all endpoints taken: now it waits for one. */
    readonly isWaiting: boolean;
  },
): Promise<() => Promise<ClaimAttempt>> {
  const claiming: Claiming = {
    ...{ transaction, context, request, after },
    claims: [],
    rows: new Map(),
    events: new Map(),
  };
  let { ready, isAddedUp } = isWaiting
    ? { ready: await waitForReady(claiming), isAddedUp: true }
    : await readFirst(claiming);
  let left = request.room;
  for (let round = 1; ready.length > 0; round++) {
    const leased = await serveRound({ ...claiming, request: { ...request, room: left } }, ready);
    left = { fast: left.fast - leased.fast, slow: left.slow - leased.slow };
    if (isWaiting || round === MOST_ROUNDS || !isMoreReady(claiming, ready, left)) break;
    ready = await readReady(claiming, left);
  }
  const { token, leaseUntil } = request;
  const positions = [...claiming.rows.values()].map(({ position }) => position);
  await addLease(transaction, { token, until: leaseUntil, positions });
  if (positions.length > 0) context.claimed.set(token, claiming.rows);
  const next = transaction.all<NextRow>(NEXT);
  // It is awaited only after the commit, which reports the error of a transaction that failed.
  next.catch(() => {});
  return async () => {
    const [row = { fast: null, slow: null, lease: null }] = await next;
    const { claims } = claiming;
    const { now, room } = request;
    const isDue = LANES.some((lane) => room[lane] > 0 && (row[lane] ?? Number.POSITIVE_INFINITY) <= now);
    const nextAt = isAddedUp ? findEarliest([row.fast, row.slow, row.lease]) : now;
    return { response: { claims, nextAt }, isLocked: claims.length === 0 && isDue };
  };
}
