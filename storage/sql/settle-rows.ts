/** Reads and locks the rows that a list of settlements is about, and writes those that changed. */

import { parseDeliveryId } from "../../src/webhooks/store/records.js";
import type { DeliveryState, Settlement } from "../../src/webhooks/store.js";
import type { SqlTransaction, SqlValues } from "./database.js";
import { decodePositions, type LeaseRow, shrinkLeases } from "./leases.js";
import type { SqlStoreContext } from "./store-context.js";
import {
  type DeliveryRow,
  deliveries,
  type EndpointRow,
  endpoints,
  leases,
  queue,
} from "./webhook-tables.js";

/** A delivery in the course of a transaction that settles it. */
export interface SettledDelivery {
  id: string;
  row: Omit<DeliveryRow, "serial" | "created_at">;
  account: string;
  /** True if its event had no other delivery when the row was read, and has no `keep_ms`. */
  isOnly: boolean;
  isInFlight: boolean;
  /** The token of its lease, if that is one of those that settle; else `null`. */
  token: string | null;
  /** Its state when the transaction began. */
  before: DeliveryState;
  /** Its place in the queue when the transaction began; `null` if it had none. */
  queuedBefore: number | null;
  isChanged: boolean;
}

/** The rows that a list of settlements is about. */
export interface Working {
  endpoints: Map<string, EndpointRow>;
  /** By id of the delivery. */
  deliveries: Map<string, SettledDelivery>;
  /** When the first delivery of each queue may be claimed, by the position of its endpoint. */
  heads: Map<number, number>;
  leases: LeaseRow[];
}

/**
 * The queries in brackets leave Postgres one index to read deliveries by, whatever it knows of how
 * many there are.
 */
const FOUND = `SELECT $1 AS id, ev.account, CASE WHEN ev.deliveries = 1 AND ev.keep_ms IS NULL THEN 1 ELSE 0 END AS is_only, d.position, d.endpoint, d.event, d.state, d.reason,
    d.started_at, d.step, d.due_at, d.extra_at, d.ended_at, d.postponed, d.crashes, d.is_recovered, d.queued_at, d.attempts
  FROM {deliveries} d JOIN {events} ev ON ev.position = d.event
  WHERE d.event = (SELECT position FROM {events} WHERE account = $2 AND id = $3)
    AND d.endpoint = (SELECT position FROM {endpoints} WHERE id = $4) AND d.serial = $5`;

type FoundRow = SettledDelivery["row"] & { id: string; account: string; is_only: number };

/** The deliveries among some that wait in the queue: they are not in flight. */
const QUEUED = "SELECT delivery FROM {queue} WHERE endpoint = $1 AND at = $2 AND delivery = $3";

/** When the first delivery of an endpoint may be claimed, unless it is ready as it is. */
const HEAD = `SELECT position AS endpoint, (SELECT min(at) FROM {queue} q WHERE q.endpoint = ep.position) AS at
  FROM {endpoints} ep WHERE id = $1 AND (ready_at IS NULL OR ready_at > $2)`;

/** Lists deliveries that are still leased under the claim of this process, as it has read them. */
function listClaimed(
  settlements: Settlement[],
  tokens: Map<number, string>,
  { claimed }: SqlStoreContext,
): Map<string, SettledDelivery> {
  const found = new Map<string, SettledDelivery>();
  for (const { id, account, token } of settlements) {
    const row = claimed.get(token)?.get(id);
    if (row === undefined || row.attempts === null || tokens.get(row.position) !== token) continue;
    // Field by field: spreading a row of a driver takes ten times as long.
    found.set(id, {
      id,
      account,
      row: {
        position: row.position,
        endpoint: row.endpoint,
        event: row.event,
        state: "pending",
        reason: null,
        started_at: row.started_at,
        step: row.step,
        due_at: row.due_at,
        extra_at: row.extra_at,
        ended_at: null,
        postponed: row.postponed,
        crashes: row.crashes,
        is_recovered: row.is_recovered,
        queued_at: row.at,
        attempts: row.attempts,
      },
      isOnly: row.is_only === 1,
      isInFlight: true,
      token,
      before: "pending",
      queuedBefore: null,
      isChanged: false,
    });
  }
  return found;
}

/** Reads the deliveries of settlements, each once, and finds out which of them are in flight. */
async function readDeliveries(
  transaction: SqlTransaction,
  settlements: Settlement[],
  tokens: Map<number, string>,
): Promise<SettledDelivery[]> {
  const keys = new Map<string, SqlValues>();
  for (const { id, account } of settlements) {
    const key = parseDeliveryId(id);
    if (key !== undefined) keys.set(id, [id, account, key.eventId, key.webhookId, key.serial]);
  }
  const types = ["text", "text", "text", "text", "int"] as const;
  const rows = await transaction.forEach<FoundRow>(FOUND, types, [...keys.values()]);
  const others = rows.filter(({ position, state }) => state === "pending" && !tokens.has(position));
  const queued = await transaction.forEach<{ delivery: number }>(
    QUEUED,
    ["int", "int", "int"],
    others.map((row) => [row.endpoint, row.queued_at, row.position]),
  );
  const waiting = new Set(queued.map(({ delivery }) => delivery));
  return rows.map((row) => {
    const isWaiting = waiting.has(row.position);
    return {
      id: row.id,
      row,
      account: row.account,
      isOnly: row.is_only === 1,
      isInFlight: row.state === "pending" && !isWaiting,
      token: tokens.get(row.position) ?? null,
      before: row.state as DeliveryState,
      queuedBefore: isWaiting ? row.queued_at : null,
      isChanged: false,
    };
  });
}

/**
 * Locks the leases of deliveries that are in flight under other claims than those that settle them:
 * a late success takes them out of these leases. That is rare, and there are few leases. Of
 * transactions that wait for each other, Postgres ends one, which is run again.
 */
async function lockOthers(
  transaction: SqlTransaction,
  settlements: Settlement[],
  read: SettledDelivery[],
): Promise<LeaseRow[]> {
  const delivered = new Set(
    settlements.filter(({ outcome }) => outcome.state === "delivered").map(({ id }) => id),
  );
  const late = read.filter(({ id, isInFlight, token }) => isInFlight && token === null && delivered.has(id));
  if (late.length === 0) return [];
  const positions = new Set(late.map(({ row }) => row.position));
  const all = await transaction.all<LeaseRow>("SELECT * FROM {leases}");
  const naming = all.filter((lease) => decodePositions(lease).some((position) => positions.has(position)));
  return transaction.lockRows<LeaseRow>(
    leases,
    "position",
    naming.map(({ position }) => position),
  );
}

export async function readWorking(
  transaction: SqlTransaction,
  settlements: Settlement[],
  context: SqlStoreContext,
): Promise<Working> {
  const webhookIds = [...new Set(settlements.map(({ webhookId }) => webhookId))];
  const [locked, leased, heads] = await Promise.all([
    transaction.lockRows<EndpointRow>(endpoints, "id", webhookIds),
    transaction.lockRows<LeaseRow>(leases, "token", [...new Set(settlements.map(({ token }) => token))]),
    transaction.forEach<{ endpoint: number; at: number | null }>(
      HEAD,
      ["text", "int"],
      webhookIds.map((id) => [id, settlements[0]?.now ?? 0]),
    ),
  ]);
  const tokens = new Map(
    leased.flatMap((lease) => decodePositions(lease).map((position) => [position, lease.token])),
  );
  const found = listClaimed(settlements, tokens, context);
  const unclaimed = settlements.filter(({ id }) => !found.has(id));
  const others = await readDeliveries(transaction, unclaimed, tokens);
  for (const delivery of others) found.set(delivery.id, delivery);
  return {
    endpoints: new Map(locked.map((endpoint) => [endpoint.id, endpoint])),
    deliveries: found,
    heads: new Map(heads.flatMap(({ endpoint, at }) => (at === null ? [] : [[endpoint, at]]))),
    leases: [...leased, ...(await lockOthers(transaction, settlements, others))],
  };
}

/** The columns that change when a delivery is completed, and those when it waits again. */
const ENDED_COLUMNS = ["state", "reason", "started_at", "ended_at", "is_recovered", "attempts"] as const;
const WAITING_COLUMNS = [
  "started_at",
  "step",
  "due_at",
  "extra_at",
  "postponed",
  "crashes",
  "is_recovered",
  "queued_at",
  "attempts",
] as const;

/** Writes the deliveries that have changed, with their leases and their places in the queue. */
export async function saveDeliveries(
  transaction: SqlTransaction,
  working: Working,
  changed: SettledDelivery[],
): Promise<void> {
  const ended = changed.filter(({ row }) => row.state !== "pending");
  const waiting = changed.filter(({ row }) => row.state === "pending");
  await shrinkLeases(transaction, working.leases, new Set(changed.map(({ row }) => row.position)));
  await transaction.update(
    deliveries,
    ["position"],
    ENDED_COLUMNS,
    ended.map(({ row }) => [row.position, ...ENDED_COLUMNS.map((column) => row[column])]),
  );
  await transaction.update(
    deliveries,
    ["position"],
    WAITING_COLUMNS,
    waiting.map(({ row }) => [row.position, ...WAITING_COLUMNS.map((column) => row[column])]),
  );
  await transaction.remove(
    queue,
    ["endpoint", "at", "delivery"],
    changed
      .filter(({ queuedBefore }) => queuedBefore !== null)
      .map(({ row, queuedBefore }) => [row.endpoint, queuedBefore, row.position]),
  );
  await transaction.insert(
    queue,
    ["endpoint", "at", "delivery"],
    waiting.map(({ row }) => [row.endpoint, row.queued_at, row.position]),
  );
}

/**
 * Works out the heads of the queues after the changes. `undefined` if a delivery left a queue: then
 * they have to be read.
 */
export function findHeads({ heads }: Working, changed: SettledDelivery[]): Map<number, number> | undefined {
  if (changed.some(({ queuedBefore }) => queuedBefore !== null)) return undefined;
  for (const { row } of changed) {
    if (row.state !== "pending") continue;
    heads.set(row.endpoint, Math.min(heads.get(row.endpoint) ?? row.queued_at, row.queued_at));
  }
  return heads;
}
