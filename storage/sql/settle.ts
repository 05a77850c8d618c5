/** Records the results of claims: reads the rows of all, decides, and writes those that changed. */

import { parseDeliveryId } from "../../src/webhooks/delivery/delivery-id.js";
import type { DeliveryState, Settlement, SettleResult } from "../../src/webhooks/store.js";
import { completeEvents, type OpenEvent } from "./completed-events.js";
import type { SqlTransaction } from "./database.js";
import type { DeliveryRow } from "./delivery-rows.js";
import type { EndpointRow } from "./endpoint-row.js";
import { offerAndSave, saveHealth } from "./endpoint-rows.js";
import {
  applySettlement,
  classifySettlement,
  type SettledDelivery,
  type SettledRow,
} from "./settle-decision.js";
import { type AfterCommit, noteWake, type SqlStoreContext } from "./store-context.js";
import { deliveries, endpoints, leases, queue } from "./webhook-tables.js";

const BY_LEASE = `SELECT l.id AS lease_id, l.token, ev.account, ev.open, d.position, d.endpoint, d.event, d.state, d.reason,
    d.started_at, d.step, d.due_at, d.extra_at, d.ended_at, d.postponed, d.crashes, d.is_recovered, d.queued_at, d.attempts
  FROM {leases} l JOIN {deliveries} d ON d.position = l.delivery JOIN {events} ev ON ev.position = d.event
  WHERE l.id = $1`;

/** When the first delivery of an endpoint may be claimed. */
const HEAD = `SELECT position AS endpoint, (SELECT min(at) FROM {queue} q WHERE q.endpoint = ep.position) AS at
  FROM {endpoints} ep WHERE id = $1`;

/** Finds a delivery without a lease: it waits, or is completed. */
const BY_KEY = `SELECT d.* FROM {events} ev JOIN {deliveries} d ON d.event = ev.position
  WHERE ev.account = $1 AND ev.id = $2 AND d.endpoint = $3 AND d.serial = $4`;

type LeasedRow = SettledRow & {
  readonly lease_id: string;
  readonly token: string;
  readonly account: string;
  readonly open: number;
};

const CHANGED_COLUMNS = [
  "state",
  "reason",
  "started_at",
  "step",
  "due_at",
  "extra_at",
  "ended_at",
  "postponed",
  "crashes",
  "is_recovered",
  "queued_at",
  "attempts",
] as const satisfies readonly (keyof DeliveryRow)[];

/** The rows that a list of settlements is about. */
interface Working {
  readonly endpoints: ReadonlyMap<string, EndpointRow>;
  /** By id of the delivery. */
  readonly deliveries: Map<string, SettledDelivery>;
  /** The events of leased deliveries, by position. */
  readonly events: Map<number, OpenEvent>;
  /** When the first delivery of each queue may be claimed, by the position of its endpoint. */
  readonly heads: Map<number, number | undefined>;
}

const toSettled = (row: SettledRow, token: string | null): SettledDelivery => ({
  row,
  token,
  wasLeased: token !== null,
  before: row.state as DeliveryState,
  queuedBefore: token === null && row.state === "pending" ? row.queued_at : null,
  isChanged: false,
});

/** Reads the deliveries that have no lease. */
async function readUnleased(
  transaction: SqlTransaction,
  settlements: readonly Settlement[],
  working: Working,
): Promise<void> {
  for (const { id, account, webhookId } of settlements) {
    const key = parseDeliveryId(id);
    const endpoint = working.endpoints.get(webhookId);
    if (key === undefined || endpoint === undefined || working.deliveries.has(id)) continue;
    const [row] = await transaction.all<SettledRow>(BY_KEY, [
      account,
      key.eventId,
      endpoint.position,
      key.serial,
    ]);
    if (row) working.deliveries.set(id, toSettled({ ...row }, null));
  }
}

/** Lists the ids of leases by event, so that all processes lock events in the same order. */
function listLeaseIds(settlements: readonly Settlement[]): readonly (readonly string[])[] {
  const getEventId = (id: string): string => id.slice(id.indexOf(".") + 1);
  const ids = [...new Set(settlements.map(({ id }) => id))];
  return ids.sort((a, b) => (getEventId(a) < getEventId(b) ? -1 : 1)).map((id) => [id]);
}

async function readWorking(
  transaction: SqlTransaction,
  settlements: readonly Settlement[],
): Promise<Working> {
  const webhookIds = [...new Set(settlements.map(({ webhookId }) => webhookId))];
  const [locked, leased, heads] = await Promise.all([
    transaction.lockRows<EndpointRow>(endpoints, "id", webhookIds),
    transaction.forEach<LeasedRow>(
      BY_LEASE + transaction.lockOnly("ev"),
      ["text"],
      listLeaseIds(settlements),
    ),
    transaction.forEach<{ endpoint: number; at: number | null }>(
      HEAD,
      ["text"],
      webhookIds.map((id) => [id]),
    ),
  ]);
  const working: Working = {
    endpoints: new Map(locked.map((endpoint) => [endpoint.id, { ...endpoint }])),
    deliveries: new Map(),
    events: new Map(),
    heads: new Map(heads.map(({ endpoint, at }) => [endpoint, at ?? undefined])),
  };
  for (const { lease_id, token, account, open, ...row } of leased) {
    working.deliveries.set(lease_id, toSettled(row, token));
    working.events.set(row.event, { position: row.event, account, open });
  }
  await readUnleased(
    transaction,
    settlements.filter(({ id }) => !working.deliveries.has(id)),
    working,
  );
  return working;
}

/** Writes the deliveries that have changed, with their leases and their places in the queue. */
async function saveDeliveries(transaction: SqlTransaction, { deliveries: all }: Working): Promise<void> {
  const changed = [...all].filter(([, { isChanged }]) => isChanged);
  const leased = changed.filter(([, { wasLeased }]) => wasLeased);
  await transaction.remove(
    leases,
    ["id"],
    leased.map(([id]) => [id]),
  );
  await transaction.update(
    deliveries,
    ["position"],
    CHANGED_COLUMNS,
    changed.map(([, { row }]) => [row.position, ...CHANGED_COLUMNS.map((column) => row[column])]),
  );
  await transaction.remove(
    queue,
    ["endpoint", "at", "delivery"],
    changed.flatMap(([, { row, queuedBefore }]) =>
      queuedBefore === null ? [] : [[row.endpoint, queuedBefore, row.position]],
    ),
  );
  await transaction.insert(
    queue,
    ["endpoint", "at", "delivery"],
    changed.flatMap(([, { row }]) =>
      row.state === "pending" ? [[row.endpoint, row.queued_at, row.position]] : [],
    ),
  );
}

/**
 * Works out the heads of the queues after the changes. `undefined` if a delivery left a queue: then
 * they have to be read.
 */
function findHeads({ deliveries: all, heads }: Working): ReadonlyMap<number, number> | undefined {
  const found = new Map<number, number>();
  for (const [endpoint, at] of heads) if (at !== undefined) found.set(endpoint, at);
  for (const { row, isChanged, queuedBefore } of all.values()) {
    if (!isChanged) continue;
    if (queuedBefore !== null) return undefined;
    if (row.state !== "pending") continue;
    found.set(row.endpoint, Math.min(found.get(row.endpoint) ?? row.queued_at, row.queued_at));
  }
  return found;
}

/** The events of deliveries that were completed, and how many of each were pending. */
function listClosed({ deliveries: all }: Working): ReadonlyMap<number, number> {
  const closed = new Map<number, number>();
  for (const { row, before, isChanged } of all.values()) {
    if (!isChanged || row.state === "pending") continue;
    closed.set(row.event, (closed.get(row.event) ?? 0) + (before === "pending" ? 1 : 0));
  }
  return closed;
}

const HEALTH = ["failing_since", "warned_at", "notice_at"] as const;

/** Settles deliveries of any endpoints in a transaction. Returns a result for each, in order. */
export async function recordSettlements(
  transaction: SqlTransaction,
  settlements: readonly Settlement[],
  { context, after }: { readonly context: SqlStoreContext; readonly after: AfterCommit },
): Promise<readonly SettleResult[]> {
  const working = await readWorking(transaction, settlements);
  const touched = new Set<EndpointRow>();
  const unhealthy = new Set<EndpointRow>();
  const results = settlements.map((settlement): SettleResult => {
    const endpoint = working.endpoints.get(settlement.webhookId);
    const delivery = working.deliveries.get(settlement.id);
    if (endpoint?.account !== settlement.account || delivery?.row.endpoint !== endpoint.position)
      return "gone";
    const result = classifySettlement(delivery, settlement);
    if (result !== "settled") return result;
    const before = { ...endpoint };
    applySettlement(delivery, endpoint, settlement, context.perEndpoint);
    touched.add(endpoint);
    if (HEALTH.some((column) => endpoint[column] !== before[column])) unhealthy.add(endpoint);
    return result;
  });
  const now = settlements[0]?.now ?? 0;
  await saveDeliveries(transaction, working);
  const heads = findHeads(working);
  await offerAndSave(transaction, [...touched], { context, now, after, heads });
  await saveHealth(transaction, [...unhealthy]);
  for (const { notice_at } of unhealthy) if (notice_at !== null) noteWake(after, notice_at);
  await completeEvents(transaction, listClosed(working), { context, now, known: working.events });
  return results;
}
