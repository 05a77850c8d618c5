/** Reads the rows that settlements are about, and locks their endpoints and leases. */

import { parseDeliveryId } from "../../src/webhooks/delivery/delivery-id.js";
import type { DeliveryState, Settlement } from "../../src/webhooks/store.js";
import type { SqlTransaction, SqlValues } from "./database.js";
import type { DueRow } from "./due-row.js";
import type { EndpointRow } from "./endpoint-row.js";
import { decodePositions, type LeaseRow, lockLeases } from "./lease-rows.js";
import type { SettledDelivery, SettledRow } from "./settle-decision.js";
import type { SqlStoreContext } from "./store-context.js";
import { endpoints, leases } from "./webhook-tables.js";

/**
 * The queries in brackets leave Postgres one index to read deliveries by, whatever it knows of how
 * many there are.
 */
const FOUND = `SELECT $1 AS id, ev.account, ev.deliveries AS event_deliveries, d.position, d.endpoint, d.event, d.state, d.reason,
    d.started_at, d.step, d.due_at, d.extra_at, d.ended_at, d.postponed, d.crashes, d.is_recovered, d.queued_at, d.attempts
  FROM {deliveries} d JOIN {events} ev ON ev.position = d.event
  WHERE d.event = (SELECT position FROM {events} WHERE account = $2 AND id = $3)
    AND d.endpoint = (SELECT position FROM {endpoints} WHERE id = $4) AND d.serial = $5`;

/** The deliveries among some that wait in the queue: they are not in flight. */
const QUEUED = "SELECT delivery FROM {queue} WHERE endpoint = $1 AND at = $2 AND delivery = $3";

/** When the first delivery of an endpoint may be claimed. */
const HEAD = `SELECT position AS endpoint, (SELECT min(at) FROM {queue} q WHERE q.endpoint = ep.position) AS at
  FROM {endpoints} ep WHERE id = $1`;

interface FoundRow extends SettledRow {
  /** The id of the delivery. */
  readonly id: string;
  readonly account: string;
  /** How many deliveries its event has had. */
  readonly event_deliveries: number;
}

/** A delivery that this process has claimed, and its settlement. */
interface ClaimedRow {
  readonly settlement: Settlement;
  readonly row: DueRow;
}

/** The rows that a list of settlements is about. */
export interface Working {
  readonly endpoints: ReadonlyMap<string, EndpointRow>;
  /** By id of the delivery. */
  readonly deliveries: ReadonlyMap<string, SettledDelivery>;
  /** When the first delivery of each queue may be claimed, by the position of its endpoint. */
  readonly heads: ReadonlyMap<number, number>;
  readonly leases: readonly LeaseRow[];
}

/** The tokens of leases, by the positions of the deliveries that they name. */
const mapTokens = (rows: readonly LeaseRow[]): ReadonlyMap<number, string> =>
  new Map(rows.flatMap((lease) => decodePositions(lease).map((position) => [position, lease.token])));

/** A delivery that is in flight, as its claim read it. */
function toClaimed({ settlement: { id, account, token }, row }: ClaimedRow): SettledDelivery {
  return {
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
      attempts: row.attempts ?? "",
    },
    isOnly: row.event_deliveries === 1,
    isInFlight: true,
    token,
    before: "pending",
    queuedBefore: null,
    isChanged: false,
  };
}

/** Reads the deliveries of settlements, each once, and finds out which of them are in flight. */
async function readDeliveries(
  transaction: SqlTransaction,
  settlements: readonly Settlement[],
  tokens: ReadonlyMap<number, string>,
): Promise<readonly SettledDelivery[]> {
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
    const before = row.state as DeliveryState;
    const isWaiting = waiting.has(row.position);
    return {
      ...{ id: row.id, row, account: row.account, before, isChanged: false },
      isOnly: row.event_deliveries === 1,
      isInFlight: before === "pending" && !isWaiting,
      token: tokens.get(row.position) ?? null,
      queuedBefore: isWaiting ? row.queued_at : null,
    };
  });
}

/** Lists the settlements of deliveries that are still leased under the claim of this process. */
function listClaimed(
  settlements: readonly Settlement[],
  tokens: ReadonlyMap<number, string>,
  { claimed }: SqlStoreContext,
): readonly ClaimedRow[] {
  const found = new Map<string, ClaimedRow>();
  for (const settlement of settlements) {
    const { id, token } = settlement;
    const row = claimed.get(token)?.get(id);
    if (row === undefined || row.attempts === null || tokens.get(row.position) !== token) continue;
    found.set(id, { settlement, row });
  }
  return [...found.values()];
}

/**
 * Locks the leases of deliveries that are in flight under other claims than those that settle them:
 * a late success takes them out of these leases. That is rare, and there are few leases. Of
 * transactions that wait for each other, Postgres ends one, which is run again.
 */
async function lockOthers(
  transaction: SqlTransaction,
  settlements: readonly Settlement[],
  deliveries: readonly SettledDelivery[],
): Promise<readonly LeaseRow[]> {
  const delivered = new Set(
    settlements.filter(({ outcome }) => outcome.state === "delivered").map(({ id }) => id),
  );
  const late = deliveries.filter(
    ({ id, isInFlight, token }) => isInFlight && token === null && delivered.has(id),
  );
  if (late.length === 0) return [];
  const positions = new Set(late.map(({ row }) => row.position));
  const all = await transaction.all<LeaseRow>("SELECT * FROM {leases}");
  const own = all.filter((lease) => decodePositions(lease).some((position) => positions.has(position)));
  return transaction.lockRows<LeaseRow>(
    leases,
    "position",
    own.map(({ position }) => position),
  );
}

export async function readWorking(
  transaction: SqlTransaction,
  settlements: readonly Settlement[],
  context: SqlStoreContext,
): Promise<Working> {
  const webhookIds = [...new Set(settlements.map(({ webhookId }) => webhookId))];
  const [locked, own, heads] = await Promise.all([
    transaction.lockRows<EndpointRow>(endpoints, "id", webhookIds),
    lockLeases(transaction, [...new Set(settlements.map(({ token }) => token))]),
    transaction.forEach<{ endpoint: number; at: number | null }>(
      HEAD,
      ["text"],
      webhookIds.map((id) => [id]),
    ),
  ]);
  const tokens = mapTokens(own);
  const claimed = listClaimed(settlements, tokens, context);
  const known = new Set(claimed.map(({ settlement }) => settlement.id));
  const others = await readDeliveries(
    transaction,
    settlements.filter(({ id }) => !known.has(id)),
    tokens,
  );
  const deliveries = [...claimed.map(toClaimed), ...others];
  return {
    endpoints: new Map(locked.map((endpoint) => [endpoint.id, { ...endpoint }])),
    deliveries: new Map(deliveries.map((delivery) => [delivery.id, delivery])),
    heads: new Map(heads.flatMap(({ endpoint, at }) => (at === null ? [] : [[endpoint, at]]))),
    leases: [...own, ...(await lockOthers(transaction, settlements, others))],
  };
}
