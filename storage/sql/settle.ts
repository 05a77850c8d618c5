/**
 * Records the results of claims. The common way takes deliveries that were delivered, in one
 * statement where the database has it. The general way takes everything: it reads the rows of all
 * settlements, locks their endpoints and leases, decides, and writes the rows that changed.
 */

import { parseDeliveryId } from "../../src/webhooks/store/records.js";
import type { DeliveryState, Settlement, SettleResult } from "../../src/webhooks/store.js";
import { classifySettlement } from "../queue/endpoint.js";
import { type CompletableEvent, completeEvents, keepCompleted, lockEvents } from "./completed-events.js";
import type { SqlTransaction, SqlValues } from "./database.js";
import { offerAndSave, saveHealth, saveHours } from "./endpoint-rows.js";
import { decodePositions, type LeaseRow, lockLeases, shrinkLeases } from "./serve-endpoints.js";
import { applySettlement, countAttempts, type SettledDelivery, type SettledRow } from "./settle-decision.js";
import { settleDelivered } from "./settle-delivered.js";
import { type AfterCommit, noteWake, type SqlStoreContext, writeAndWake } from "./store-context.js";
import type { DeliveryRow, DueRow, EndpointRow } from "./webhook-tables.js";
import { deliveries, endpoints, leases, queue } from "./webhook-tables.js";

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

/** When the first delivery of an endpoint may be claimed, unless it is ready as it is. */
const HEAD = `SELECT position AS endpoint, (SELECT min(at) FROM {queue} q WHERE q.endpoint = ep.position) AS at
  FROM {endpoints} ep WHERE id = $1 AND (ready_at IS NULL OR ready_at > $2)`;

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
interface Working {
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

async function readWorking(
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
      ["text", "int"],
      webhookIds.map((id) => [id, settlements[0]?.now ?? 0]),
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
async function settleAny(
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
    const result = classifySettlement(delivery.row.state as DeliveryState, delivery.token, settlement);
    if (result !== "settled") return result;
    applySettlement(delivery, endpoint, settlement, context.perEndpoint);
    const own = touched.get(endpoint);
    if (own === undefined) touched.set(endpoint, [settlement]);
    else own.push(settlement);
    return result;
  });
  const ended = [...touched].flatMap(([endpoint, own]) => countAttempts(endpoint, own));
  const changed = [...touched.keys()];
  const unhealthy = changed.filter((endpoint) => {
    const before = stored.get(endpoint.id);
    return HEALTH.some((column) => endpoint[column] !== before?.[column]);
  });
  const now = settlements[0]?.now ?? 0;
  const completed = listEnded(working);
  const locked = await lockEvents(transaction, completed.others);
  await saveDeliveries(transaction, working);
  const heads = findHeads(working);
  await offerAndSave(transaction, changed, { context, now, after, heads });
  await saveHealth(transaction, unhealthy);
  await saveHours(transaction, ended);
  for (const { notice_at } of unhealthy) if (notice_at !== null) noteWake(after, notice_at);
  await completeEvents(transaction, locked, { context, now });
  await keepCompleted(transaction, completed.alone, { context, now });
  return results;
}

/** Settles deliveries of any endpoints. Returns a result for each, in order. */
export async function settleDeliveries(
  context: SqlStoreContext,
  settlements: readonly Settlement[],
): Promise<readonly SettleResult[]> {
  const others = await settleDelivered(context, settlements);
  if (others.length === 0) return settlements.map(() => "settled");
  const results = await writeAndWake(context, (transaction, after) =>
    settleAny(transaction, others, { context, after }),
  );
  const byOther = new Map(others.map((settlement, index) => [settlement, results[index]]));
  return settlements.map((settlement) => byOther.get(settlement) ?? "settled");
}
