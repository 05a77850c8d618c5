/** Records the results of claims: reads the rows of all, decides in memory, writes the changed ones. */

import { parseDeliveryId } from "../../src/webhooks/delivery/delivery-id.js";
import type { DeliveryState, Settlement, SettleResult } from "../../src/webhooks/store.js";
import { completeEvents } from "./completed-events.js";
import type { SqlTransaction } from "./database.js";
import type { DeliveryRow } from "./delivery-rows.js";
import { type EndpointRow, offerAndSave, saveHealth } from "./endpoint-rows.js";
import { applySettlement, classifySettlement, type SettledDelivery } from "./settle-decision.js";
import { type AfterCommit, noteWake, type SqlStoreContext } from "./store-context.js";
import { deliveries, endpoints, leases, queue } from "./webhook-tables.js";

const BY_LEASE =
  "SELECT l.id AS lease_id, l.token, d.* FROM {leases} l JOIN {deliveries} d ON d.position = l.delivery WHERE l.id = $1";

/** Finds a delivery without a lease: it waits, or is completed. */
const BY_KEY = `SELECT d.* FROM {events} ev JOIN {deliveries} d ON d.event = ev.position
  WHERE ev.account = $1 AND ev.id = $2 AND d.endpoint = $3 AND d.serial = $4`;

type LeasedRow = DeliveryRow & { readonly lease_id: string; readonly token: string };

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
}

const toSettled = (row: DeliveryRow, token: string | null): SettledDelivery => ({
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
    const [row] = await transaction.all<DeliveryRow>(BY_KEY, [
      account,
      key.eventId,
      endpoint.position,
      key.serial,
    ]);
    if (row) working.deliveries.set(id, toSettled({ ...row }, null));
  }
}

async function readWorking(
  transaction: SqlTransaction,
  settlements: readonly Settlement[],
): Promise<Working> {
  const ids = [...new Set(settlements.map(({ webhookId }) => webhookId))];
  const [locked, leased] = await Promise.all([
    transaction.lockRows<EndpointRow>(endpoints, "id", ids),
    transaction.forEach<LeasedRow>(
      BY_LEASE,
      ["text"],
      [...new Set(settlements.map(({ id }) => id))].map((id) => [id]),
    ),
  ]);
  const working: Working = {
    endpoints: new Map(locked.map((endpoint) => [endpoint.id, { ...endpoint }])),
    deliveries: new Map(),
  };
  for (const { lease_id, token, ...row } of leased) working.deliveries.set(lease_id, toSettled(row, token));
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
export async function settleAll(
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
  await offerAndSave(transaction, [...touched], { context, now, after });
  await saveHealth(transaction, [...unhealthy]);
  for (const { notice_at } of unhealthy) if (notice_at !== null) noteWake(after, notice_at);
  await completeEvents(transaction, listClosed(working), { context, now });
  return results;
}
