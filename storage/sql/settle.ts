/** Records the results of claims: reads the rows of all, decides, and writes those that changed. */

import { parseDeliveryId } from "../../src/webhooks/delivery/delivery-id.js";
import type { DeliveryState, Settlement, SettleResult } from "../../src/webhooks/store.js";
import { type CompletableEvent, completeEvents, keepCompleted, lockEvents } from "./completed-events.js";
import type { SqlTransaction, SqlValues } from "./database.js";
import type { DeliveryRow } from "./delivery-rows.js";
import type { EndpointRow } from "./endpoint-row.js";
import { offerAndSave, saveHealth } from "./endpoint-rows.js";
import { decodePositions, type LeaseRow, lockLeases, shrinkLeases } from "./lease-rows.js";
import {
  applySettlement,
  classifySettlement,
  type SettledDelivery,
  type SettledRow,
} from "./settle-decision.js";
import { type AfterCommit, noteWake, type SqlStoreContext } from "./store-context.js";
import { deliveries, endpoints, queue } from "./webhook-tables.js";

const FOUND = `SELECT $1 AS id, ev.account, ev.deliveries AS siblings, d.position, d.endpoint, d.event, d.state, d.reason,
    d.started_at, d.step, d.due_at, d.extra_at, d.ended_at, d.postponed, d.crashes, d.is_recovered, d.queued_at, d.attempts
  FROM {deliveries} d JOIN {events} ev ON ev.position = d.event`;

const BY_POSITION = `${FOUND} WHERE d.position = $2`;

/**
 * The queries in brackets leave Postgres one index to read deliveries by, whatever it knows of how
 * many there are.
 */
const BY_KEY = `${FOUND} WHERE d.event = (SELECT position FROM {events} WHERE account = $2 AND id = $3)
    AND d.endpoint = (SELECT position FROM {endpoints} WHERE id = $4) AND d.serial = $5`;

/** The deliveries among some that wait in the queue: they are not in flight. */
const QUEUED = "SELECT delivery FROM {queue} WHERE endpoint = $1 AND at = $2 AND delivery = $3";

/** When the first delivery of an endpoint may be claimed. */
const HEAD = `SELECT position AS endpoint, (SELECT min(at) FROM {queue} q WHERE q.endpoint = ep.position) AS at
  FROM {endpoints} ep WHERE id = $1`;

type FoundRow = SettledRow & {
  readonly id: string;
  readonly account: string;
  /** How many deliveries its event has had. */
  readonly siblings: number;
};

/** The columns that change when a delivery is completed, and those when it waits again. */
const ENDED_COLUMNS = [
  ...["state", "reason", "started_at", "ended_at", "is_recovered", "attempts"],
] as const satisfies readonly (keyof DeliveryRow)[];
const WAITING_COLUMNS = [
  ...["started_at", "step", "due_at", "extra_at", "postponed", "crashes"],
  ...["is_recovered", "queued_at", "attempts"],
] as const satisfies readonly (keyof DeliveryRow)[];

/** The rows that a list of settlements is about. */
interface Working {
  readonly endpoints: ReadonlyMap<string, EndpointRow>;
  /** By id of the delivery. */
  readonly deliveries: ReadonlyMap<string, SettledDelivery>;
  /** When the first delivery of each queue may be claimed, by the position of its endpoint. */
  readonly heads: ReadonlyMap<number, number>;
  readonly leases: readonly LeaseRow[];
}

/** Finds out which deliveries are in flight, and under whose lease. */
async function addLeases(
  transaction: SqlTransaction,
  rows: readonly FoundRow[],
  leases: readonly LeaseRow[],
): Promise<ReadonlyMap<string, SettledDelivery>> {
  const tokens = new Map(
    leases.flatMap((row) => decodePositions(row).map((position) => [position, row.token])),
  );
  const others = rows.filter(({ position, state }) => state === "pending" && !tokens.has(position));
  const queued = await transaction.forEach<{ delivery: number }>(
    QUEUED,
    ["int", "int", "int"],
    others.map((row) => [row.endpoint, row.queued_at, row.position]),
  );
  const isQueued = new Set(queued.map(({ delivery }) => delivery));
  return new Map(
    rows.map((row) => {
      const before = row.state as DeliveryState;
      const isWaiting = isQueued.has(row.position);
      const delivery: SettledDelivery = {
        ...{ row, account: row.account, before, isChanged: false },
        isOnly: row.siblings === 1,
        isInFlight: before === "pending" && !isWaiting,
        token: tokens.get(row.position) ?? null,
        queuedBefore: isWaiting ? row.queued_at : null,
      };
      return [row.id, delivery];
    }),
  );
}

/** Reads the deliveries of settlements, each once. */
async function readDeliveries(
  transaction: SqlTransaction,
  settlements: readonly Settlement[],
  { claimedPositions }: SqlStoreContext,
): Promise<readonly FoundRow[]> {
  const known = new Map<string, SqlValues>();
  const others = new Map<string, SqlValues>();
  for (const { id, account } of settlements) {
    const position = claimedPositions.get(id);
    const key = parseDeliveryId(id);
    if (position !== undefined) known.set(id, [id, position]);
    else if (key !== undefined) others.set(id, [id, account, key.eventId, key.webhookId, key.serial]);
  }
  const found = await Promise.all([
    transaction.forEach<FoundRow>(BY_POSITION, ["text", "int"], [...known.values()]),
    transaction.forEach<FoundRow>(BY_KEY, ["text", "text", "text", "text", "int"], [...others.values()]),
  ]);
  return found.flat();
}

async function readWorking(
  transaction: SqlTransaction,
  settlements: readonly Settlement[],
  context: SqlStoreContext,
): Promise<Working> {
  const webhookIds = [...new Set(settlements.map(({ webhookId }) => webhookId))];
  const [locked, leases, found, heads] = await Promise.all([
    transaction.lockRows<EndpointRow>(endpoints, "id", webhookIds),
    lockLeases(transaction, [...new Set(settlements.map(({ token }) => token))]),
    readDeliveries(transaction, settlements, context),
    transaction.forEach<{ endpoint: number; at: number | null }>(
      HEAD,
      ["text"],
      webhookIds.map((id) => [id]),
    ),
  ]);
  return {
    endpoints: new Map(locked.map((endpoint) => [endpoint.id, { ...endpoint }])),
    deliveries: await addLeases(transaction, found, leases),
    heads: new Map(heads.flatMap(({ endpoint, at }) => (at === null ? [] : [[endpoint, at]]))),
    leases,
  };
}

/** Writes the deliveries that have changed, with their leases and their places in the queue. */
async function saveDeliveries(transaction: SqlTransaction, working: Working): Promise<void> {
  const changed = [...working.deliveries.values()].filter(({ isChanged }) => isChanged);
  const ended = changed.filter(({ row }) => row.state !== "pending");
  const waiting = changed.filter(({ row }) => row.state === "pending");
  await shrinkLeases(transaction, working.leases, new Set(changed.map(({ row }) => row.position)));
  for (const [columns, own] of [
    [ENDED_COLUMNS, ended],
    [WAITING_COLUMNS, waiting],
  ] as const) {
    await transaction.update(
      deliveries,
      ["position"],
      columns,
      own.map(({ row }) => [row.position, ...columns.map((column) => row[column])]),
    );
  }
  await transaction.remove(
    queue,
    ["endpoint", "at", "delivery"],
    changed.flatMap(({ row, queuedBefore }) =>
      queuedBefore === null ? [] : [[row.endpoint, queuedBefore, row.position]],
    ),
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
function findHeads({ deliveries: all, heads }: Working): ReadonlyMap<number, number> | undefined {
  const found = new Map(heads);
  for (const { row, isChanged, queuedBefore } of all.values()) {
    if (!isChanged) continue;
    if (queuedBefore !== null) return undefined;
    if (row.state !== "pending") continue;
    found.set(row.endpoint, Math.min(found.get(row.endpoint) ?? row.queued_at, row.queued_at));
  }
  return found;
}

/**
 * The events of deliveries that were completed. `alone` have no other delivery, so that they need
 * no lock; a late success counts for one that may be completed already.
 */
function listEnded({ deliveries: all }: Working): {
  readonly alone: readonly CompletableEvent[];
  readonly others: readonly number[];
} {
  const ended = [...all.values()].filter(({ row, isChanged }) => isChanged && row.state !== "pending");
  const isAlone = ({ isOnly, before }: SettledDelivery): boolean => isOnly && before === "pending";
  return {
    alone: ended.filter(isAlone).map(({ row, account }) => ({ position: row.event, account })),
    others: ended.filter((delivery) => !isAlone(delivery)).map(({ row }) => row.event),
  };
}

const HEALTH = ["failing_since", "warned_at", "notice_at"] as const;

/** Settles deliveries of any endpoints in a transaction. Returns a result for each, in order. */
export async function recordSettlements(
  transaction: SqlTransaction,
  settlements: readonly Settlement[],
  { context, after }: { readonly context: SqlStoreContext; readonly after: AfterCommit },
): Promise<readonly SettleResult[]> {
  const working = await readWorking(transaction, settlements, context);
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
  const ended = listEnded(working);
  const locked = await lockEvents(transaction, ended.others);
  await saveDeliveries(transaction, working);
  const heads = findHeads(working);
  await offerAndSave(transaction, [...touched], { context, now, after, heads });
  await saveHealth(transaction, [...unhealthy]);
  for (const { notice_at } of unhealthy) if (notice_at !== null) noteWake(after, notice_at);
  await completeEvents(transaction, locked, { context, now });
  await keepCompleted(transaction, ended.alone, { context, now });
  return results;
}
