/** Leases due deliveries: endpoints take turns in their lane, deliveries within their endpoint. */

import { PostbellError } from "../../src/core/errors.js";
import type { Claim, ClaimRequest, ClaimResponse, EventRecord, Lane } from "../../src/webhooks/store.js";
import { LANES } from "../queue/turns.js";
import { addToTotals, addUpChanges, readChanges, sumChanges } from "./changes.js";
import type { LeasedRound, SqlTransaction } from "./database.js";
import { decodeEventRow, getQueuePlace, toDeliveryId } from "./delivery-rows.js";
import { lockEndpoints, offerAndSave, reserveTurns, saveQueues } from "./endpoint-rows.js";
import { decodePositions, type LeaseRow, removeLeases, serveRound } from "./serve-endpoints.js";
import { type AfterCommit, type SqlStoreContext, writeAndWake } from "./store-context.js";
import type { EndpointRow } from "./webhook-tables.js";
import { type DeliveryRow, type DueRow, deliveries, leases, queue } from "./webhook-tables.js";

/** Endpoints that have fewer due deliveries than their share leave room for another round. */
const MOST_ROUNDS = 4;

/** How often a claim is tried that finds the locks of all endpoints taken. */
const MOST_TRIES = 5;

/** The most characters of attempts of a delivery that are remembered until it is settled. */
const MAX_REMEMBERED = 1_000;

/** A minute: then a webhook whose secret could not be opened is tried again. */
const UNREADABLE_MS = 60_000;

type Room = Readonly<Record<Lane, number>>;

/** A claim in the course of its transaction. */
interface Claiming {
  readonly transaction: SqlTransaction;
  readonly context: SqlStoreContext;
  readonly request: ClaimRequest;
  readonly claims: Claim[];
  /** The rows of the claimed deliveries, by their ids. */
  readonly rows: Map<string, DueRow>;
  /** Events by position: claims of one event share its record. */
  readonly events: Map<number, EventRecord>;
  /** The positions of endpoints whose webhooks cannot be decoded. */
  readonly unreadable: number[];
}

function getEvent({ events }: Claiming, row: DueRow, account: string): EventRecord {
  const known = events.get(row.event);
  if (known !== undefined) return known;
  const event = Object.freeze(decodeEventRow(row.event_id, account, row));
  events.set(row.event, event);
  return event;
}

/** Turns what a round has leased into claims. Returns how many there are of each lane. */
async function addClaims(claiming: Claiming, { rows, endpoints }: LeasedRound): Promise<Room> {
  const { transaction, context, request, claims, unreadable } = claiming;
  const webhooks = await context.webhookCache.read(transaction, endpoints);
  for (const { position } of endpoints) if (!webhooks.has(position)) unreadable.push(position);
  if (unreadable.length > 0) throw new PostbellError("storage_unavailable", "A webhook cannot be decoded.");
  const lanes = new Map(endpoints.map(({ position, lane }) => [position, lane as Lane]));
  const leased = { fast: 0, slow: 0 };
  for (const row of rows) {
    const webhook = webhooks.get(row.endpoint);
    const lane = lanes.get(row.endpoint);
    if (webhook === undefined || lane === undefined) continue;
    leased[lane] += 1;
    const event = getEvent(claiming, row, webhook.account);
    const id = toDeliveryId(webhook.id, event.id, row.serial);
    // The row is kept until its delivery is settled; the payload and long attempts are not.
    row.payload = null;
    if ((row.attempts?.length ?? 0) > MAX_REMEMBERED) row.attempts = null;
    claiming.rows.set(id, row);
    claims.push({
      id,
      token: request.token,
      lane,
      webhook,
      event,
      startedAt: row.started_at,
      step: row.step,
      isExtra: row.extra_at !== null,
      dueAt: row.due_at,
      postponed: row.postponed,
      crashes: row.crashes,
      isRecovered: row.is_recovered === 1,
    });
  }
  return leased;
}

const FIRST_READY =
  "SELECT position FROM {endpoints} WHERE ready_at <= $1 AND lane = $2 ORDER BY ready_at, turn LIMIT 1";

/**
 * Waits for the lock of one endpoint that is ready. The transaction must not hold the lock of
 * another one: two that wait for each other would not end. So it is found before it is locked,
 * since a query that locks also keeps the lock of a row that is not ready any more.
 */
async function waitForReady({ transaction, request: { now, room } }: Claiming): Promise<void> {
  for (const lane of LANES) {
    if (room[lane] <= 0) continue;
    const [first] = await transaction.all<{ position: number }>(FIRST_READY, [now, lane]);
    if (first === undefined) continue;
    await lockEndpoints(transaction, [first.position]);
    return;
  }
}

/** Leases from the endpoints that are ready, once. See `SqlTransaction.leaseDue`. */
function serve(
  { transaction, context: { perEndpoint, perSecond }, request }: Claiming,
  room: Room,
  isChecking: boolean,
): Promise<LeasedRound | undefined> {
  const turn = reserveTurns(request.now, room.fast + room.slow);
  const round = { ...request, room, perEndpoint, perSecond, turn, isChecking };
  return transaction.leaseDue?.(round) ?? serveRound(transaction, round);
}

/** Returns the earliest of times; `null` for never. */
const findEarliest = (times: readonly (number | null)[]): number | null =>
  times.reduce<number | null>(
    (first, at) => (first === null || (at !== null && at < first) ? at : first),
    null,
  );

/** A response, and whether other transactions held the locks of everything that was due. */
interface ClaimAttempt {
  readonly response: ClaimResponse;
  readonly isLocked: boolean;
}

/** Leases what is due, in a transaction. `isWaiting`: waits for the lock of an endpoint first. */
async function leaseDue(claiming: Claiming, after: AfterCommit, isWaiting: boolean): Promise<ClaimAttempt> {
  const { transaction, context, request, claims } = claiming;
  const { now, room, token } = request;
  if (isWaiting) await waitForReady(claiming);
  let isAddedUp = true;
  let left = room;
  let served = await serve(claiming, left, !isWaiting);
  if (served === undefined) {
    isAddedUp = await catchUp(transaction, now, { context, after });
    served = await serve(claiming, left, false);
  }
  let next: LeasedRound["next"] = { fast: null, slow: null, lease: null };
  for (let round = 1; served !== undefined; round++) {
    const leased = await addClaims(claiming, served);
    left = { fast: left.fast - leased.fast, slow: left.slow - leased.slow };
    ({ next } = served);
    const isMore = served.endpoints.some(
      ({ lane, ready_at }) => left[lane as Lane] > 0 && ready_at !== null && ready_at <= now,
    );
    served = round < MOST_ROUNDS && isMore ? await serve(claiming, left, false) : undefined;
  }
  if (claims.length > 0) context.claimed.set(token, claiming.rows);
  const isDue = LANES.some((lane) => room[lane] > 0 && (next[lane] ?? Number.POSITIVE_INFINITY) <= now);
  const nextAt = isAddedUp ? findEarliest([next.fast, next.slow, next.lease]) : now;
  return { response: { claims, nextAt }, isLocked: claims.length === 0 && isDue };
}

/** Leaves endpoints out for a while. */
const postpone = (context: SqlStoreContext, positions: readonly number[], now: number): Promise<void> =>
  writeAndWake(context, async (transaction) => {
    const rows = await lockEndpoints(transaction, positions);
    await saveQueues(
      transaction,
      rows.map((row) => ({ ...row, ready_at: now + UNREADABLE_MS, turn: reserveTurns(now, 1) })),
    );
  });

/** Claims what is due. Endpoints whose webhooks cannot be decoded are postponed first. */
export async function claimDeliveries(
  context: SqlStoreContext,
  request: ClaimRequest,
): Promise<ClaimResponse> {
  let isWaiting = false;
  for (let tries = 1; ; tries++) {
    const unreadable: number[] = [];
    try {
      const { response, isLocked } = await writeAndWake(
        context,
        (transaction, after) => {
          unreadable.length = 0;
          const found = { claims: [], rows: new Map(), events: new Map(), unreadable };
          return leaseDue({ transaction, context, request, ...found }, after, isWaiting);
        },
        // A lost lease has its deliveries claimed again, as if the process had died.
        { isDurable: false },
      );
      // A caller must not take what others have locked for nothing that is due.
      if (!isLocked || tries >= MOST_TRIES) return response;
      isWaiting = true;
    } catch (error) {
      if (unreadable.length === 0) throw error;
      await postpone(context, unreadable, request.now);
    }
  }
}

/**
 * Returns false if some changes may be left for the next claim. Locks all endpoints at once and in
 * their order, and the totals after them: transactions that take locks one by one would wait for
 * each other.
 */
async function catchUp(
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

/** The most expired leases that one claim ends: each has the deliveries of one claim. */
const MOST_EXPIRED = 4;

/** Leases that have expired, and the endpoints of their deliveries. */
interface ExpiredLeases {
  readonly leases: readonly number[];
  readonly endpoints: readonly number[];
}

/** Finds leases that have expired. Locks nothing. */
async function findExpired(transaction: SqlTransaction, now: number): Promise<ExpiredLeases> {
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
async function recoverExpired(
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
