/** Leases due deliveries: endpoints take turns in their lane, deliveries within their endpoint. */

import { PostbellError } from "../../src/core/errors.js";
import type { Claim, ClaimRequest, ClaimResponse, EventRecord, Lane } from "../../src/webhooks/store.js";
import { addClaimed, countLeft, divideRoom, LANES } from "../queue/endpoint.js";
import { catchUp } from "./changes.js";
import type { LeasedRound, LeaseRoundRequest, NextTimes, SqlTransaction } from "./database.js";
import { decodeEventRow, toDeliveryId } from "./delivery-rows.js";
import {
  countSlots,
  getClaimed,
  getPerSecond,
  lockEndpoints,
  offerEndpoint,
  reserveTurns,
  SERVED_COLUMNS,
  saveEndpoints,
} from "./endpoint-rows.js";
import { type AfterCommit, type SqlStoreContext, writeAndWake } from "./store-context.js";

import { type DueRow, type EndpointRow, leases, queue } from "./webhook-tables.js";

/** Endpoints that have fewer due deliveries than their share leave room for another round. */
const MAX_ROUNDS = 4;

/** How often a claim is tried that finds the locks of all endpoints taken. */
const MAX_TRIES = 5;

/** The most characters of attempts of a delivery that are remembered until it is settled. */
const MAX_REMEMBERED = 1_000;

/** A minute: then a webhook whose secret could not be opened is tried again. */
const UNREADABLE_MS = 60_000;

type Room = Record<Lane, number>;

/** A claim in the course of its transaction. */
interface Claiming {
  transaction: SqlTransaction;
  context: SqlStoreContext;
  request: ClaimRequest;
  claims: Claim[];
  /** The rows of the claimed deliveries, by their ids. */
  rows: Map<string, DueRow>;
  /** Events by position: claims of one event share its record. */
  events: Map<number, EventRecord>;
}

/** Thrown to undo a claim: the webhooks of these endpoints cannot be decoded. */
class UnreadableWebhooks extends Error {
  positions: number[];

  constructor(positions: number[]) {
    super("A webhook cannot be decoded.");
    this.positions = positions;
  }
}

/** Turns what a round has leased into claims. Returns how many there are of each lane. */
async function addClaims(claiming: Claiming, { rows, endpoints }: LeasedRound): Promise<Room> {
  const { transaction, context, request, claims, events } = claiming;
  const webhooks = await context.webhookCache.read(transaction, endpoints);
  const unreadable = endpoints.filter(({ position }) => !webhooks.has(position));
  if (unreadable.length > 0) throw new UnreadableWebhooks(unreadable.map(({ position }) => position));
  const lanes = new Map(endpoints.map(({ position, lane }) => [position, lane as Lane]));
  const leased = { fast: 0, slow: 0 };
  for (const row of rows) {
    const webhook = webhooks.get(row.endpoint);
    const lane = lanes.get(row.endpoint);
    if (webhook === undefined || lane === undefined) continue;
    leased[lane] += 1;
    const event = events.get(row.event) ?? Object.freeze(decodeEventRow(row.event_id, webhook.account, row));
    events.set(row.event, event);
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
async function waitForReady(transaction: SqlTransaction, { now, room }: ClaimRequest): Promise<void> {
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

/** Leases what is due, in a transaction. `isWaiting`: waits for the lock of an endpoint first. */
async function leaseDue(
  claiming: Claiming,
  after: AfterCommit,
  isWaiting: boolean,
): Promise<{ response: ClaimResponse; isLocked: boolean }> {
  const { transaction, context, request, claims } = claiming;
  const { now, room, token } = request;
  if (isWaiting) await waitForReady(transaction, request);
  let isAddedUp = true;
  let left: Room = room;
  let served = await serve(claiming, left, !isWaiting);
  if (served === undefined) {
    isAddedUp = await catchUp(transaction, { context, now, after });
    served = await serve(claiming, left, false);
  }
  let next: NextTimes = { fast: null, slow: null, lease: null };
  for (let round = 1; served !== undefined; round++) {
    const leased = await addClaims(claiming, served);
    left = { fast: left.fast - leased.fast, slow: left.slow - leased.slow };
    ({ next } = served);
    const isMore = served.endpoints.some(
      ({ lane, ready_at }) => left[lane as Lane] > 0 && ready_at !== null && ready_at <= now,
    );
    served = round < MAX_ROUNDS && isMore ? await serve(claiming, left, false) : undefined;
  }
  if (claims.length > 0) context.claimed.set(token, claiming.rows);
  const isDue = LANES.some((lane) => room[lane] > 0 && (next[lane] ?? Number.POSITIVE_INFINITY) <= now);
  const times = Object.values(next).filter((at) => at !== null);
  const nextAt = isAddedUp ? (times.length === 0 ? null : Math.min(...times)) : now;
  return { response: { claims, nextAt }, isLocked: claims.length === 0 && isDue };
}

/** Leaves endpoints out for a while. */
const postpone = (context: SqlStoreContext, positions: number[], now: number): Promise<void> =>
  writeAndWake(context, async (transaction) => {
    const rows = await lockEndpoints(transaction, positions);
    await saveEndpoints(
      transaction,
      rows.map((row) => ({ ...row, ready_at: now + UNREADABLE_MS, turn: reserveTurns(now, 1) })),
      SERVED_COLUMNS,
    );
  });

/** Claims what is due. Endpoints whose webhooks cannot be decoded are postponed first. */
export async function claimDeliveries(
  context: SqlStoreContext,
  request: ClaimRequest,
): Promise<ClaimResponse> {
  let isWaiting = false;
  for (let tries = 1; ; tries++) {
    let unreadable: number[] = [];
    try {
      const { response, isLocked } = await writeAndWake(
        context,
        async (transaction, after) => {
          unreadable = [];
          const claiming = { transaction, context, request, claims: [], rows: new Map(), events: new Map() };
          try {
            return await leaseDue(claiming, after, isWaiting);
          } catch (error) {
            if (!(error instanceof UnreadableWebhooks)) throw error;
            unreadable = error.positions;
            throw new PostbellError("storage_unavailable", error.message);
          }
        },
        // A lost lease has its deliveries claimed again, as if the process had died.
        { isDurable: false },
      );
      // A caller must not take what others have locked for nothing that is due.
      if (!isLocked || tries >= MAX_TRIES) return response;
      isWaiting = true;
    } catch (error) {
      if (unreadable.length === 0) throw error;
      await postpone(context, unreadable, request.now);
    }
  }
}

// One round, row by row: the endpoints that are ready share the room of their lane. On Postgres,
// `storage/postgres/functions/lease_due.sql` does the same.

/** There are changes to add up, or leases that have expired. Both may make endpoints ready. */
const UPKEEP = `SELECT CASE WHEN EXISTS (SELECT 1 FROM {changes}) OR EXISTS (SELECT 1 FROM {leases} WHERE until <= $1) THEN 1 ELSE 0 END AS due`;

const READY = "SELECT * FROM {endpoints} WHERE ready_at <= $1 AND lane = $2 ORDER BY ready_at, turn LIMIT $3";

const DUE = `SELECT q.endpoint, q.at, d.position, d.event, d.serial, d.started_at, d.step, d.due_at, d.extra_at,
    d.postponed, d.crashes, d.is_recovered, d.attempts, ev.id AS event_id, ev.type, ev.subject, ev.tags, ev.digest, b.payload, CASE WHEN ev.deliveries = 1 AND ev.keep_ms IS NULL THEN 1 ELSE 0 END AS is_only
  FROM {queue} q JOIN {deliveries} d ON d.position = q.delivery
    JOIN {events} ev ON ev.position = d.event LEFT JOIN {bodies} b ON b.event = d.event
  WHERE q.endpoint = $1 AND q.at <= $2 ORDER BY q.at, q.delivery LIMIT $3`;

/** When the first delivery of a queue may be claimed. */
const HEAD = "SELECT $1 AS endpoint, min(at) AS at FROM {queue} WHERE endpoint = $1";

const NEXT = `SELECT
  (SELECT min(ready_at) FROM {endpoints} WHERE lane = 'fast' AND ready_at IS NOT NULL) AS fast,
  (SELECT min(ready_at) FROM {endpoints} WHERE lane = 'slow' AND ready_at IS NOT NULL) AS slow,
  (SELECT min(until) FROM {leases}) AS lease`;

/** Reads the endpoints that are ready, and locks them. Lists each with its share of the room. */
async function readShares(
  transaction: SqlTransaction,
  { now, room, perEndpoint, perSecond }: LeaseRoundRequest,
): Promise<{ endpoint: EndpointRow; share: number }[]> {
  const shares: { endpoint: EndpointRow; share: number }[] = [];
  for (const lane of LANES) {
    if (room[lane] <= 0) continue;
    const ready = await transaction.all<EndpointRow>(READY + transaction.skipLocked, [now, lane, room[lane]]);
    for (const [index, endpoint] of ready.entries()) {
      // No endpoint gets more than its slots and its rate allow.
      const share = Math.min(
        divideRoom(room[lane], ready.length, index),
        countSlots(endpoint, perEndpoint),
        countLeft(getPerSecond(endpoint, perSecond), getClaimed(endpoint), now),
      );
      shares.push({ endpoint, share: Math.max(0, share) });
    }
  }
  return shares;
}

/** Leases due deliveries once. See {@link LeaseRoundRequest} and `SqlTransaction.leaseDue`. */
async function serveRound(
  transaction: SqlTransaction,
  request: LeaseRoundRequest,
): Promise<LeasedRound | undefined> {
  const { now, token, leaseUntil, perEndpoint, perSecond, turn, isChecking } = request;
  if (isChecking) {
    const [upkeep] = await transaction.all<{ due: number }>(UPKEEP, [now]);
    if (upkeep?.due === 1) return undefined;
  }
  const shares = await readShares(transaction, request);
  const rows = await transaction.forEach<DueRow>(
    DUE,
    ["int", "int", "int"],
    shares.map(({ endpoint, share }) => [endpoint.position, now, share]),
  );
  await transaction.remove(
    queue,
    ["endpoint", "at", "delivery"],
    rows.map((row) => [row.endpoint, row.at, row.position]),
  );
  const taken = new Map<number, number>();
  for (const { endpoint } of rows) taken.set(endpoint, (taken.get(endpoint) ?? 0) + 1);
  const heads = await transaction.forEach<{ endpoint: number; at: number | null }>(
    HEAD,
    ["int"],
    shares.map(({ endpoint }) => [endpoint.position]),
  );
  const endpoints = shares.map(({ endpoint }, index) => {
    const count = taken.get(endpoint.position) ?? 0;
    endpoint.in_flight += count;
    if (getPerSecond(endpoint, perSecond) !== null) {
      const claimed = addClaimed(getClaimed(endpoint), now, count);
      endpoint.claimed_second = claimed.second;
      endpoint.claimed_count = claimed.count;
    }
    offerEndpoint(endpoint, heads[index]?.at ?? null, now, { perEndpoint, perSecond, turn: turn + index });
    return endpoint;
  });
  await saveEndpoints(transaction, endpoints, SERVED_COLUMNS);
  if (rows.length > 0) {
    const positions = JSON.stringify(rows.map(({ position }) => position));
    await transaction.insert(leases, ["token", "until", "deliveries"], [[token, leaseUntil, positions]]);
  }
  const [next = { fast: null, slow: null, lease: null }] = await transaction.all<NextTimes>(NEXT);
  return { rows, endpoints, next };
}
