/** Leases due deliveries: endpoints take turns in their lane, deliveries queue in their endpoint. */

import type {
  Claim,
  ClaimRequest,
  ClaimResponse,
  EventRecord,
  Lane,
  WebhookRecord,
} from "../../src/webhooks/store.js";
import { addUpChanges } from "./changes.js";
import type { SqlTransaction } from "./database.js";
import { type DeliveryRow, toDeliveryId } from "./delivery-rows.js";
import { countFreeSlots, type EndpointRow, nextTurn, offer, saveQueues } from "./endpoint-rows.js";
import { recoverExpired } from "./expired-leases.js";
import type { AfterCommit, SqlStoreContext } from "./store-context.js";
import { decodeText } from "./text.js";
import { leases, queue } from "./webhook-tables.js";

const LANES: readonly Lane[] = ["fast", "slow"];

/** Endpoints that have fewer due deliveries than their share leave room for another round. */
const MOST_ROUNDS = 4;

const DUE = `SELECT q.endpoint, q.at, d.position, d.event, d.serial, d.started_at, d.step, d.due_at, d.extra_at,
    d.postponed, d.crashes, d.is_recovered, ev.id AS event_id, ev.type, ev.subject, ev.digest, b.payload
  FROM {queue} q JOIN {deliveries} d ON d.position = q.delivery
    JOIN {events} ev ON ev.position = d.event LEFT JOIN {bodies} b ON b.event = d.event
  WHERE q.endpoint = $1 AND q.at <= $2 ORDER BY q.at, q.delivery LIMIT $3`;

type DueRow = Omit<DeliveryRow, "created_at" | "state" | "reason" | "ended_at" | "queued_at" | "attempts"> & {
  readonly at: number;
  readonly event_id: string;
  readonly type: string;
  readonly subject: string | null;
  readonly digest: string;
  /** Null if the database has lost it: the core then reports the event as unreadable. */
  readonly payload: string | null;
};

/** What a claim reads and has leased so far. */
interface Claiming {
  readonly transaction: SqlTransaction;
  readonly context: SqlStoreContext;
  readonly request: ClaimRequest;
  readonly after: AfterCommit;
  readonly claims: Claim[];
  /** Events by position: claims of one event share its record. */
  readonly events: Map<number, EventRecord>;
}

function getEvent({ events }: Claiming, row: DueRow, account: string): EventRecord {
  const known = events.get(row.event);
  if (known !== undefined) return known;
  const { event_id: id, type, subject } = row;
  const digest = decodeText(row.digest);
  const payload = decodeText(row.payload ?? "");
  const event = Object.freeze({
    ...{ id, account, type, digest, payload },
    ...(subject !== null && { subject }),
  });
  events.set(row.event, event);
  return event;
}

function toClaim(claiming: Claiming, row: DueRow, endpoint: EndpointRow, webhook: WebhookRecord): Claim {
  const event = getEvent(claiming, row, endpoint.account);
  return {
    id: toDeliveryId(endpoint.id, event.id, row.serial),
    token: claiming.request.token,
    lane: endpoint.lane as Lane,
    webhook,
    event,
    startedAt: row.started_at,
    step: row.step,
    isExtra: row.extra_at !== null,
    dueAt: row.due_at,
    postponed: row.postponed,
    crashes: row.crashes,
    isRecovered: row.is_recovered === 1,
  };
}

/** Moves deliveries from the queue to the leases. */
async function lease(
  { transaction, request: { token, leaseUntil } }: Claiming,
  taken: readonly { readonly row: DueRow; readonly claim: Claim }[],
): Promise<void> {
  await transaction.remove(
    queue,
    ["endpoint", "at", "delivery"],
    taken.map(({ row }) => [row.endpoint, row.at, row.position]),
  );
  await transaction.insert(
    leases,
    ["id", "delivery", "endpoint", "token", "until"],
    taken.map(({ row, claim }) => [claim.id, row.position, row.endpoint, token, leaseUntil]),
  );
}

/** A minute: then a webhook whose secret could not be opened is tried again. */
const UNREADABLE_MS = 60_000;

/** The times of the first deliveries of a queue: those that are taken, and the one after them. */
const HEADS = "SELECT endpoint, at FROM {queue} WHERE endpoint = $1 ORDER BY at, delivery LIMIT $2";

/** Offers the endpoints that were served. `queued`: the times at the beginning of their queues. */
async function offerServed(
  { transaction, context, request: { now } }: Claiming,
  ready: readonly EndpointRow[],
  { queued, taken }: { queued: ReadonlyMap<number, readonly number[]>; taken: ReadonlyMap<number, number> },
): Promise<void> {
  for (const endpoint of ready) {
    const { position } = endpoint;
    const head = queued.get(position)?.[taken.get(position) ?? 0];
    offer(endpoint, head, { now, perEndpoint: context.perEndpoint, served: true });
  }
  await saveQueues(transaction, ready);
}

const groupTimes = (
  rows: readonly { readonly endpoint: number; readonly at: number }[],
): ReadonlyMap<number, readonly number[]> => {
  const times = new Map<number, number[]>();
  for (const { endpoint, at } of rows) {
    const own = times.get(endpoint);
    if (own === undefined) times.set(endpoint, [at]);
    else own.push(at);
  }
  return times;
};

/** How many deliveries each endpoint gets: its share of the room of its lane. */
function divideRoom(
  { request: { room }, context }: Claiming,
  ready: readonly EndpointRow[],
): ReadonlyMap<EndpointRow, number> {
  const left = { ...room };
  const shares = new Map<EndpointRow, number>();
  for (const lane of LANES) {
    const own = ready.filter((endpoint) => endpoint.lane === lane);
    const share = Math.max(1, Math.floor(left[lane] / own.length));
    for (const endpoint of own) {
      const most = Math.min(share, left[lane], countFreeSlots(endpoint, context.perEndpoint));
      shares.set(endpoint, Math.max(0, most));
      left[lane] -= Math.max(0, most);
    }
  }
  return shares;
}

/** Serves ready endpoints once. Returns what it leased from each lane. */
async function serveRound(
  claiming: Claiming,
  ready: readonly EndpointRow[],
): Promise<Readonly<Record<Lane, number>>> {
  const { transaction, context, request } = claiming;
  const webhooks = await context.webhookCache.read(transaction, ready);
  const readable = ready.filter(({ position }) => webhooks.has(position));
  const shares = divideRoom(claiming, readable);
  const [due, heads] = await Promise.all([
    transaction.forEach<DueRow>(
      DUE,
      ["int", "int", "int"],
      readable.map((endpoint) => [endpoint.position, request.now, shares.get(endpoint) ?? 0]),
    ),
    transaction.forEach<{ endpoint: number; at: number }>(
      HEADS,
      ["int", "int"],
      readable.map((endpoint) => [endpoint.position, (shares.get(endpoint) ?? 0) + 1]),
    ),
  ]);
  const byPosition = new Map(readable.map((endpoint) => [endpoint.position, endpoint]));
  const taken = new Map<number, number>();
  const leased = { fast: 0, slow: 0 };
  const rows = due.flatMap((row) => {
    const endpoint = byPosition.get(row.endpoint);
    const webhook = webhooks.get(row.endpoint);
    if (endpoint === undefined || webhook === undefined) return [];
    endpoint.in_flight += 1;
    leased[endpoint.lane as Lane] += 1;
    taken.set(row.endpoint, (taken.get(row.endpoint) ?? 0) + 1);
    return [{ row, claim: toClaim(claiming, row, endpoint, webhook) }];
  });
  if (rows.length > 0) await lease(claiming, rows);
  for (const { claim } of rows) claiming.claims.push(claim);
  await postponeUnreadable(
    claiming,
    ready.filter(({ position }) => !webhooks.has(position)),
  );
  await offerServed(claiming, readable, { queued: groupTimes(heads), taken });
  return leased;
}

async function postponeUnreadable(
  { transaction, request: { now } }: Claiming,
  unreadable: readonly EndpointRow[],
): Promise<void> {
  for (const endpoint of unreadable) {
    endpoint.ready_at = now + UNREADABLE_MS;
    endpoint.turn = nextTurn(now);
  }
  await saveQueues(transaction, unreadable);
}

/** There are changes to add up, or leases that have expired. Both may make endpoints ready. */
const HAS_UPKEEP = `EXISTS (SELECT 1 FROM {changes}) OR EXISTS (SELECT 1 FROM {leases} WHERE until <= $1)`;

const READY = `SELECT * FROM {endpoints} WHERE ready_at <= $1 AND lane = $2`;
const IN_TURN = " ORDER BY ready_at, turn LIMIT $3";

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
  if (upkeep?.due !== 1) return { ready, isAddedUp: true };
  const isAddedUp = await addUpChanges(transaction, now, { context, after });
  await recoverExpired(transaction, now, { context, after });
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
export async function claimDue(
  transaction: SqlTransaction,
  request: ClaimRequest,
  { context, after }: { readonly context: SqlStoreContext; readonly after: AfterCommit },
): Promise<() => Promise<ClaimAttempt>> {
  const claiming: Claiming = {
    ...{ transaction, context, request, after },
    claims: [],
    events: new Map(),
  };
  let { ready, isAddedUp } = await readFirst(claiming);
  let left = request.room;
  for (let round = 1; ready.length > 0; round++) {
    const leased = await serveRound({ ...claiming, request: { ...request, room: left } }, ready);
    left = { fast: left.fast - leased.fast, slow: left.slow - leased.slow };
    if (round === MOST_ROUNDS || !isMoreReady(claiming, ready, left)) break;
    ready = await readReady(claiming, left);
  }
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
