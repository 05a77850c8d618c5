/** Records the results of claims: reads the rows of all, decides, and writes those that changed. */

import type { Settlement, SettleResult } from "../../src/webhooks/store.js";
import { type CompletableEvent, completeEvents, keepCompleted, lockEvents } from "./completed-events.js";
import type { SqlTransaction } from "./database.js";
import type { DeliveryRow } from "./delivery-rows.js";
import type { EndpointRow } from "./endpoint-row.js";
import { offerAndSave, saveHealth } from "./endpoint-rows.js";
import { shrinkLeases } from "./lease-rows.js";
import {
  applySettlement,
  classifySettlement,
  countAttempts,
  type SettledDelivery,
} from "./settle-decision.js";
import { readWorking, type Working } from "./settle-rows.js";
import { type AfterCommit, noteWake, type SqlStoreContext } from "./store-context.js";
import { deliveries, queue } from "./webhook-tables.js";

/** The columns that change when a delivery is completed, and those when it waits again. */
const ENDED_COLUMNS = [
  ...["state", "reason", "started_at", "ended_at", "is_recovered", "attempts"],
] as const satisfies readonly (keyof DeliveryRow)[];
const WAITING_COLUMNS = [
  ...["started_at", "step", "due_at", "extra_at", "postponed", "crashes"],
  ...["is_recovered", "queued_at", "attempts"],
] as const satisfies readonly (keyof DeliveryRow)[];

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
 * The events of deliveries that were completed. `alone` had no other delivery when they were read,
 * and need no lock; a late success counts for one that may be completed already.
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
  const stored = new Map([...working.endpoints].map(([id, endpoint]) => [id, { ...endpoint }]));
  const touched = new Map<EndpointRow, Settlement[]>();
  const results = settlements.map((settlement): SettleResult => {
    const endpoint = working.endpoints.get(settlement.webhookId);
    const delivery = working.deliveries.get(settlement.id);
    if (endpoint?.account !== settlement.account || delivery?.row.endpoint !== endpoint.position)
      return "gone";
    const result = classifySettlement(delivery, settlement);
    if (result !== "settled") return result;
    applySettlement(delivery, endpoint, settlement, context.perEndpoint);
    const own = touched.get(endpoint);
    if (own === undefined) touched.set(endpoint, [settlement]);
    else own.push(settlement);
    return result;
  });
  for (const [endpoint, own] of touched) countAttempts(endpoint, own);
  const changed = [...touched.keys()];
  const unhealthy = changed.filter((endpoint) => {
    const before = stored.get(endpoint.id);
    return HEALTH.some((column) => endpoint[column] !== before?.[column]);
  });
  const now = settlements[0]?.now ?? 0;
  const ended = listEnded(working);
  const locked = await lockEvents(transaction, ended.others);
  await saveDeliveries(transaction, working);
  const heads = findHeads(working);
  await offerAndSave(transaction, changed, { context, now, after, heads });
  await saveHealth(transaction, unhealthy);
  for (const { notice_at } of unhealthy) if (notice_at !== null) noteWake(after, notice_at);
  await completeEvents(transaction, locked, { context, now });
  await keepCompleted(transaction, ended.alone, { context, now });
  return results;
}
