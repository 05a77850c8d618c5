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
import { countFreeSlots, type EndpointRow, nextTurn, offer, readHeads, saveQueues } from "./endpoint-rows.js";
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

/** Offers the endpoints that were served. */
async function offerServed(
  { transaction, context, request: { now } }: Claiming,
  ready: readonly EndpointRow[],
  unreadable: ReadonlySet<EndpointRow>,
): Promise<void> {
  const heads = await readHeads(transaction, ready);
  for (const endpoint of ready) {
    offer(endpoint, heads.get(endpoint.position), {
      now,
      perEndpoint: context.perEndpoint,
      served: true,
    });
    if (unreadable.has(endpoint)) {
      endpoint.ready_at = now + UNREADABLE_MS;
      endpoint.turn = nextTurn(now);
    }
  }
  await saveQueues(transaction, ready);
}

/** Serves the ready endpoints of a lane once. Returns how many deliveries it leased. */
async function serveRound(claiming: Claiming, lane: Lane, room: number): Promise<number | undefined> {
  const { transaction, context, request } = claiming;
  const ready = await transaction.all<EndpointRow>(
    `SELECT * FROM {endpoints} WHERE lane = $1 AND ready_at <= $2 ORDER BY ready_at, turn LIMIT $3${transaction.skipLocked}`,
    [lane, request.now, room],
  );
  if (ready.length === 0) return undefined;
  const webhooks = await context.webhookCache.read(transaction, ready);
  const share = Math.max(1, Math.floor(room / ready.length));
  const byPosition = new Map(ready.map((endpoint) => [endpoint.position, endpoint]));
  const unreadable = new Set(ready.filter(({ position }) => webhooks.get(position) === undefined));
  const wants = ready
    .filter((endpoint) => !unreadable.has(endpoint))
    .map((endpoint) => [
      ...[endpoint.position, request.now],
      Math.max(0, Math.min(share, countFreeSlots(endpoint, context.perEndpoint))),
    ]);
  const due = await transaction.forEach<DueRow>(DUE, ["int", "int", "int"], wants);
  const taken = due.flatMap((row) => {
    const endpoint = byPosition.get(row.endpoint);
    const webhook = webhooks.get(row.endpoint);
    if (endpoint === undefined || webhook === undefined) return [];
    endpoint.in_flight += 1;
    return [{ row, claim: toClaim(claiming, row, endpoint, webhook) }];
  });
  if (taken.length > 0) await lease(claiming, taken);
  for (const { claim } of taken) claiming.claims.push(claim);
  await offerServed(claiming, ready, unreadable);
  return taken.length;
}

async function serveLane(claiming: Claiming, lane: Lane): Promise<void> {
  let room = claiming.request.room[lane];
  for (let round = 0; round < MOST_ROUNDS && room > 0; round++) {
    const leased = await serveRound(claiming, lane, room);
    if (leased === undefined) return;
    room -= leased;
  }
}

const NEXT = `SELECT min(at) AS at FROM (
  SELECT min(ready_at) AS at FROM {endpoints} WHERE lane = 'fast' AND ready_at IS NOT NULL
  UNION ALL SELECT min(ready_at) FROM {endpoints} WHERE lane = 'slow' AND ready_at IS NOT NULL
  UNION ALL SELECT min(until) FROM {leases}) AS times`;

/** Leases what is due, in a transaction. */
export async function claimDue(
  transaction: SqlTransaction,
  request: ClaimRequest,
  { context, after }: { readonly context: SqlStoreContext; readonly after: AfterCommit },
): Promise<ClaimResponse> {
  const { now } = request;
  const isAddedUp = await addUpChanges(transaction, now, { context, after });
  await recoverExpired(transaction, now, { context, after });
  const claiming: Claiming = {
    ...{ transaction, context, request, after },
    claims: [],
    events: new Map(),
  };
  for (const lane of LANES) await serveLane(claiming, lane);
  const [next] = await transaction.all<{ at: number | null }>(NEXT);
  return { claims: claiming.claims, nextAt: isAddedUp ? (next?.at ?? null) : now };
}
