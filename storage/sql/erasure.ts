/** Erases accounts and events on SQL. */

import type { DeliveryState, ErasureStore } from "../../src/webhooks/store.js";
import { encodeStoredText } from "../stored-text.js";
import { deleteEvents, rememberEvents, type StoredEventRow } from "./completed-events.js";
import type { SqlTransaction } from "./database.js";
import { lockEndpoints, offerAndSave, type Writing } from "./endpoint-rows.js";
import { decodePositions, type LeaseRow, shrinkLeases } from "./leases.js";
import { deleteEndpoints } from "./registry.js";
import { type SqlStoreContext, writeAndWake } from "./store-context.js";
import {
  audit,
  completed,
  type DeliveryRow,
  type EndpointRow,
  events,
  leases,
  queue,
  remembered,
  replays,
} from "./webhook-tables.js";

/** The most rows of one kind that a call erases; of events, with deliveries, at least one. */
const MAX_PER_CALL = 200;

/** `next` as long as something may be left. The calls need no position: they take what is first. */
const GO_ON = "more";

type ErasedDelivery = Pick<
  DeliveryRow,
  "position" | "endpoint" | "event" | "state" | "reason" | "queued_at"
> & {
  /** Its position if it waits in the queue; null if it is in flight, or completed. */
  waiting: number | null;
};

const DELIVERIES = `SELECT d.position, d.endpoint, d.event, d.state, d.reason, d.queued_at, q.delivery AS waiting
  FROM {deliveries} d LEFT JOIN {queue} q ON q.endpoint = d.endpoint AND q.at = d.queued_at AND q.delivery = d.position
  WHERE d.event = $1`;

const readDeliveries = (transaction: SqlTransaction, positions: number[]): Promise<ErasedDelivery[]> =>
  transaction.forEach(
    DELIVERIES,
    ["int"],
    positions.map((position) => [position]),
  );

const isPending = ({ state }: { state: string }): boolean => (state as DeliveryState) === "pending";

/** Takes deliveries in flight out of their leases, so that no settlement finds them. */
async function endLeases(
  transaction: SqlTransaction,
  inFlight: ErasedDelivery[],
  endpoints: Map<number, EndpointRow>,
): Promise<void> {
  if (inFlight.length === 0) return;
  const positions = new Set(inFlight.map(({ position }) => position));
  // There are few leases: one for each claim that is not settled.
  const all = await transaction.all<LeaseRow>("SELECT * FROM {leases}");
  const naming = all.filter((lease) => decodePositions(lease).some((position) => positions.has(position)));
  const rows = await transaction.lockRows<LeaseRow>(
    leases,
    "position",
    naming.map(({ position }) => position),
  );
  await shrinkLeases(transaction, rows, positions);
  for (const { endpoint } of inFlight) {
    const row = endpoints.get(endpoint);
    if (row !== undefined) row.in_flight -= 1;
  }
}

interface ErasedEvents {
  /** The positions of the events that were erased. */
  erased: number[];
  deliveries: number;
}

/**
 * Erases events with their deliveries in every state. An event that got a delivery to another
 * endpoint meanwhile is left out: the lock of that endpoint would come too late.
 */
async function eraseEvents(
  transaction: SqlTransaction,
  positions: number[],
  { remembersIds, ...writing }: Writing & { remembersIds: boolean },
): Promise<ErasedEvents> {
  const before = await readDeliveries(transaction, positions);
  const expected = new Set(before.filter(isPending).map(({ endpoint }) => endpoint));
  const locked = await lockEndpoints(transaction, expected);
  const endpoints = new Map(locked.map((row) => [row.position, row]));
  const rows = await transaction.lockRows<StoredEventRow>(events, "position", positions);
  const all = await readDeliveries(
    transaction,
    rows.map(({ position }) => position),
  );
  const changed = new Set(
    all.filter((row) => isPending(row) && !expected.has(row.endpoint)).map(({ event }) => event),
  );
  const erased = rows.filter(({ position }) => !changed.has(position));
  const freed = all.filter(({ event }) => !changed.has(event));
  if (erased.length === 0) return { erased: [], deliveries: 0 };
  const pending = freed.filter(isPending);
  const waiting = pending.filter((row) => row.waiting !== null);
  await endLeases(
    transaction,
    pending.filter((row) => row.waiting === null),
    endpoints,
  );
  await transaction.remove(
    queue,
    ["endpoint", "at", "delivery"],
    waiting.map((row) => [row.endpoint, row.queued_at, row.position]),
  );
  await transaction.remove(
    completed,
    ["event"],
    erased.map(({ position }) => [position]),
  );
  await deleteEvents(transaction, erased, freed);
  if (remembersIds) await rememberEvents(transaction, erased, writing.now);
  await offerAndSave(transaction, locked, writing);
  return { erased: erased.map(({ position }) => position), deliveries: freed.length };
}

/** Returns the first of some events, with about {@link MAX_PER_CALL} deliveries together. */
async function takeWithinBudget(transaction: SqlTransaction, positions: number[]): Promise<number[]> {
  const counts = await transaction.forEach<{ event: number; count: number }>(
    `SELECT $1 AS event, count(*) AS count FROM (SELECT 1 FROM {deliveries} WHERE event = $1 LIMIT ${MAX_PER_CALL}) AS found`,
    ["int"],
    positions.map((position) => [position]),
  );
  const taken: number[] = [];
  let left = MAX_PER_CALL;
  for (const { event, count } of counts) {
    if (left <= 0) break;
    taken.push(Number(event));
    left -= 1 + Number(count);
  }
  return taken;
}

/** Deletes rows of an account in a table with positions, or with these keys. */
async function eraseRows(
  transaction: SqlTransaction,
  table: typeof audit | typeof remembered | typeof replays,
  keys: readonly string[],
  account: string,
): Promise<number> {
  const rows = await transaction.all<Record<string, string | number>>(
    `SELECT ${keys.join(", ")} FROM {${table.name}} WHERE account = $1 ORDER BY ${keys.join(", ")} LIMIT ${MAX_PER_CALL}`,
    [account],
  );
  await transaction.remove(
    table,
    keys,
    rows.map((row) => keys.map((key) => row[key] ?? "")),
  );
  return rows.length;
}

async function eraseWebhooks(transaction: SqlTransaction, account: string): Promise<number> {
  const rows = await transaction.all<{ position: number }>(
    `SELECT position FROM {webhooks} WHERE account = $1 ORDER BY position LIMIT ${MAX_PER_CALL}`,
    [account],
  );
  const locked = await lockEndpoints(
    transaction,
    rows.map(({ position }) => position),
  );
  await deleteEndpoints(
    transaction,
    locked.map(({ position }) => position),
  );
  return locked.length;
}

/** Erases a part of an account, as it is stored: the first kind of record that it still has. */
async function eraseAccount(
  transaction: SqlTransaction,
  account: string,
  writing: Writing,
): Promise<Awaited<ReturnType<ErasureStore["eraseAccount"]>>> {
  await transaction.lock(`account ${account}`);
  const nothing = { webhooks: 0, events: 0, deliveries: 0, auditEntries: 0, rememberedIds: 0 };
  const webhooks = await eraseWebhooks(transaction, account);
  if (webhooks > 0) return { erased: { ...nothing, webhooks }, next: GO_ON };
  const rows = await transaction.all<{ position: number }>(
    `SELECT position FROM {events} WHERE account = $1 ORDER BY stored_at, position LIMIT ${MAX_PER_CALL}`,
    [account],
  );
  if (rows.length > 0) {
    const taken = await takeWithinBudget(
      transaction,
      rows.map(({ position }) => position),
    );
    const { erased, deliveries } = await eraseEvents(transaction, taken, { ...writing, remembersIds: false });
    return { erased: { ...nothing, events: erased.length, deliveries }, next: GO_ON };
  }
  const auditEntries = await eraseRows(transaction, audit, ["position"], account);
  const ids = await eraseRows(transaction, remembered, ["account", "id"], account);
  const keys = await eraseRows(transaction, replays, ["account", "key"], account);
  const isDone = auditEntries < MAX_PER_CALL && ids < MAX_PER_CALL && keys < MAX_PER_CALL;
  return { erased: { ...nothing, auditEntries, rememberedIds: ids + keys }, next: isDone ? null : GO_ON };
}

export function createSqlErasure(context: SqlStoreContext): ErasureStore {
  return {
    eraseAccount: ({ account, now }) =>
      writeAndWake(context, (transaction, after) =>
        eraseAccount(transaction, encodeStoredText(account), { context, now, after }),
      ),

    eraseEvents: ({ account, ids, now }) =>
      writeAndWake(context, async (transaction, after) => {
        const found = await transaction.forEach<{ position: number; id: string }>(
          "SELECT position, id FROM {events} WHERE account = $1 AND id = $2",
          ["text", "text"],
          [...new Set(ids)].map((id) => [encodeStoredText(account), id]),
        );
        const taken = new Set(
          await takeWithinBudget(
            transaction,
            found.map(({ position }) => position),
          ),
        );
        const writing = { context, now, after, remembersIds: true };
        const { erased, deliveries } = await eraseEvents(transaction, [...taken], writing);
        const left = found.filter(({ position }) => !erased.includes(position)).map(({ id }) => id);
        return { events: erased.length, deliveries, left };
      }),
  };
}
