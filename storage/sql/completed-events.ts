/** Events without a pending delivery: when they become so, and freeing them. */

import { type DeliveryState, TEST_FAILED } from "../../src/webhooks/store.js";
import { findFreePlace } from "../queue/append.js";
import { Changes } from "./changes.js";
import type { SqlTransaction, SqlValues } from "./database.js";
import type { SqlStoreContext } from "./store-context.js";
import type { RowOf } from "./table.js";
import {
  bodies,
  completed,
  type DeliveryRow,
  deliveries,
  events,
  eventTags,
  remembered,
} from "./webhook-tables.js";

export type StoredEventRow = RowOf<typeof events>;

/** An event one of whose deliveries is completed. */
export type CompletableEvent = Pick<StoredEventRow, "position" | "account" | "keep_ms">;

interface CompleteOptions {
  context: SqlStoreContext;
  now: number;
}

/** Returns tags as they are stored. */
const parseTags = (tags: string | null): string[] => (tags === null ? [] : (JSON.parse(tags) as string[]));

const toKeys = (positions: number[]): SqlValues[] => positions.map((position) => [position]);

/** Locks events, so that no other transaction adds or completes a delivery of them. */
export const lockEvents = (transaction: SqlTransaction, positions: number[]): Promise<CompletableEvent[]> =>
  transaction.lockRows<CompletableEvent>(
    events,
    "position",
    [...new Set(positions)],
    ["position", "account", "keep_ms"],
  );

/** Starts the retention of events without a pending delivery. Without retention, frees them. */
export async function keepCompleted(
  transaction: SqlTransaction,
  rows: CompletableEvent[],
  { context: { retention }, now }: CompleteOptions,
): Promise<void> {
  if (rows.length === 0) return;
  const isFreed = ({ keep_ms }: CompletableEvent): boolean => (keep_ms ?? retention.keepMs) === 0;
  const freed = rows.filter(isFreed).map(({ position }) => position);
  if (freed.length > 0)
    await freeEvents(transaction, await transaction.lockRows<StoredEventRow>(events, "position", freed), now);
  await transaction.insert(
    completed,
    ["event", "account", "place"],
    rows
      .filter((row) => !isFreed(row))
      .map(({ position, account, keep_ms }) => [position, account, findFreePlace(now, keep_ms)]),
    ["event"],
  );
}

/**
 * Completes those of the locked events that have no pending delivery any more. One that was
 * completed before is kept for longer: a late success was counted for it.
 */
export async function completeEvents(
  transaction: SqlTransaction,
  locked: CompletableEvent[],
  options: CompleteOptions,
): Promise<void> {
  if (locked.length === 0) return;
  const keys = toKeys(locked.map(({ position }) => position));
  // In this order: a settlement without the lock of its event may commit in between, and the row
  // that it inserts must not be removed for a delivery that was pending before.
  await transaction.remove(completed, ["event"], keys);
  const open = await transaction.forEach<{ event: number }>(
    "SELECT event FROM {deliveries} WHERE event = $1 AND state = 'pending' LIMIT 1",
    ["int"],
    keys,
  );
  const isOpen = new Set(open.map(({ event }) => event));
  await keepCompleted(
    transaction,
    locked.filter(({ position }) => !isOpen.has(position)),
    options,
  );
}

/**
 * Counts one more delivery of each event, which is then not completed any more. Returns the
 * positions of the events that are still stored.
 */
export async function reopenEvents(transaction: SqlTransaction, positions: number[]): Promise<Set<number>> {
  if (positions.length === 0) return new Set();
  const rows = await transaction.lockRows<StoredEventRow>(events, "position", positions, [
    "position",
    "deliveries",
  ]);
  await transaction.update(
    events,
    ["position"],
    ["deliveries"],
    rows.map(({ position, deliveries: count }) => [position, count + 1]),
  );
  await transaction.remove(completed, ["event"], toKeys(positions));
  return new Set(rows.map(({ position }) => position));
}

type FreedDelivery = Pick<DeliveryRow, "position" | "endpoint" | "event" | "state" | "reason">;

/** Deletes events that are locked, with their deliveries. */
export async function deleteEvents(
  transaction: SqlTransaction,
  rows: StoredEventRow[],
  freed: FreedDelivery[],
): Promise<void> {
  const keys = toKeys(rows.map(({ position }) => position));
  const counted = new Changes();
  for (const { endpoint, state, reason } of freed) {
    counted.add(endpoint, state as DeliveryState, -1);
    if (reason === TEST_FAILED) counted.add(endpoint, "failed_tests", -1);
  }
  for (const { bytes } of rows) counted.addTotals(-1, -bytes);
  await transaction.remove(deliveries, ["position"], toKeys(freed.map(({ position }) => position)));
  await transaction.remove(
    eventTags,
    ["account", "tag", "event"],
    rows.flatMap(({ account, tags, position }) => parseTags(tags).map((tag) => [account, tag, position])),
  );
  await transaction.remove(bodies, ["event"], keys);
  await transaction.remove(events, ["position"], keys);
  await counted.save(transaction);
}

/**
 * Deletes events that are locked, and remembers their ids as long as necessary. One that has a
 * pending delivery stays: it was resent or recovered while its only one was in flight.
 */
export async function freeEvents(
  transaction: SqlTransaction,
  rows: StoredEventRow[],
  now: number,
): Promise<void> {
  if (rows.length === 0) return;
  const keys = toKeys(rows.map(({ position }) => position));
  const all = await transaction.forEach<FreedDelivery>(
    "SELECT position, endpoint, event, state, reason FROM {deliveries} WHERE event = $1",
    ["int"],
    keys,
  );
  const open = new Set(all.filter(({ state }) => state === "pending").map(({ event }) => event));
  const freed = rows.filter(({ position }) => !open.has(position));
  await transaction.remove(completed, ["event"], keys);
  if (freed.length === 0) return;
  await deleteEvents(
    transaction,
    freed,
    all.filter(({ event }) => !open.has(event)),
  );
  await rememberEvents(transaction, freed, now);
}

/** Remembers the ids of events that are deleted, as long as necessary. */
export const rememberEvents = (
  transaction: SqlTransaction,
  rows: StoredEventRow[],
  now: number,
): Promise<void> =>
  remember(
    transaction,
    rows
      .filter(({ remember_until }) => remember_until > now)
      .map(({ account, id, digest, receivers, remember_until: expires_at }) => ({
        account,
        id,
        digest,
        receivers,
        expires_at,
      })),
  );

// Remembers the ids of events that are not stored, or not stored any more.

const COLUMNS = ["account", "id", "digest", "receivers", "expires_at"] as const;

export async function remember(transaction: SqlTransaction, rows: RowOf<typeof remembered>[]): Promise<void> {
  if (rows.length === 0) return;
  // One that has expired may still be there.
  await transaction.remove(
    remembered,
    ["account", "id"],
    rows.map(({ account, id }) => [account, id]),
  );
  await transaction.insert(
    remembered,
    COLUMNS,
    rows.map((row) => COLUMNS.map((column) => row[column])),
    ["account", "id"],
  );
}
