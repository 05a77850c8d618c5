/** Events without a pending delivery: when they become so, and freeing them. */

import { type DeliveryState, TEST_FAILED } from "../../src/webhooks/store.js";
import { Changes } from "./changes.js";
import type { SqlTransaction, SqlValues } from "./database.js";
import type { DeliveryRow } from "./delivery-rows.js";
import { remember } from "./remembered-ids.js";
import type { SqlStoreContext } from "./store-context.js";
import type { RowOf } from "./table.js";
import { bodies, completed, deliveries, events } from "./webhook-tables.js";

export type StoredEventRow = RowOf<typeof events>;

/** The columns that completing an event needs. */
const OPEN_COLUMNS = ["position", "account", "open"] as const satisfies readonly (keyof StoredEventRow)[];

/** An event, with how many of its deliveries are pending. */
export type OpenEvent = Pick<StoredEventRow, (typeof OPEN_COLUMNS)[number]>;

interface CompleteOptions {
  readonly context: SqlStoreContext;
  readonly now: number;
}

const toKeys = (positions: readonly number[]): readonly SqlValues[] =>
  positions.map((position) => [position]);

/** Starts the retention of events. Without retention, frees them. */
async function keepCompleted(
  transaction: SqlTransaction,
  rows: readonly OpenEvent[],
  { context: { retention }, now }: CompleteOptions,
): Promise<void> {
  if (rows.length === 0) return;
  if (retention.ms === 0) {
    const positions = rows.map(({ position }) => position);
    const whole = await transaction.lockRows<StoredEventRow>(events, "position", positions);
    await freeEvents(transaction, whole, now);
    return;
  }
  await transaction.insert(
    completed,
    ["event", "account", "ended_at"],
    rows.map(({ position, account }) => [position, account, now]),
  );
}

/**
 * Counts deliveries of events as completed. `closed` says how many of each event were pending.
 * Events whose last pending delivery is among them are completed.
 */
export async function completeEvents(
  transaction: SqlTransaction,
  closed: ReadonlyMap<number, number>,
  options: CompleteOptions & {
    /** Events that the transaction has locked, by position. */
    readonly known?: ReadonlyMap<number, OpenEvent>;
  },
): Promise<void> {
  if (closed.size === 0) return;
  const { known = new Map<number, OpenEvent>() } = options;
  const positions = [...closed.keys()];
  const missing = positions.filter((position) => !known.has(position));
  const locked = [
    ...positions.flatMap((position) => known.get(position) ?? []),
    ...(missing.length === 0
      ? []
      : await transaction.lockRows<OpenEvent>(events, "position", missing, OPEN_COLUMNS)),
  ];
  const rows = locked.map((row) => ({ ...row, open: row.open - (closed.get(row.position) ?? 0) }));
  await transaction.update(
    events,
    ["position"],
    ["open"],
    rows.filter(({ position }) => closed.get(position) !== 0).map(({ position, open }) => [position, open]),
  );
  // A late success is counted for an event that was completed before, which is now kept for longer.
  const again = locked.filter(({ open }) => open === 0).map(({ position }) => position);
  if (again.length > 0) await transaction.remove(completed, ["event"], toKeys(again));
  await keepCompleted(
    transaction,
    rows.filter(({ open }) => open === 0),
    options,
  );
}

/**
 * Counts one more pending delivery of each event, which is then not completed any more. Returns the
 * positions of the events that are still stored.
 */
export async function reopenEvents(
  transaction: SqlTransaction,
  positions: readonly number[],
): Promise<ReadonlySet<number>> {
  if (positions.length === 0) return new Set();
  const rows = await transaction.lockRows<OpenEvent>(events, "position", positions, OPEN_COLUMNS);
  await transaction.update(
    events,
    ["position"],
    ["open"],
    rows.map(({ position, open }) => [position, open + 1]),
  );
  await transaction.remove(completed, ["event"], toKeys(positions));
  return new Set(rows.map(({ position }) => position));
}

/** Deletes events with their deliveries, and remembers their ids as long as necessary. */
export async function freeEvents(
  transaction: SqlTransaction,
  rows: readonly StoredEventRow[],
  now: number,
): Promise<void> {
  if (rows.length === 0) return;
  const keys = toKeys(rows.map(({ position }) => position));
  const own = await transaction.forEach<Pick<DeliveryRow, "position" | "endpoint" | "state" | "reason">>(
    "SELECT position, endpoint, state, reason FROM {deliveries} WHERE event = $1",
    ["int"],
    keys,
  );
  const counted = new Changes();
  for (const { endpoint, state, reason } of own) {
    counted.add(endpoint, state as DeliveryState, -1);
    if (reason === TEST_FAILED) counted.add(endpoint, "failed_tests", -1);
  }
  for (const { bytes } of rows) counted.addTotals(-1, -bytes);
  await transaction.remove(deliveries, ["position"], toKeys(own.map(({ position }) => position)));
  await transaction.remove(bodies, ["event"], keys);
  await transaction.remove(completed, ["event"], keys);
  await transaction.remove(events, ["position"], keys);
  await remember(
    transaction,
    rows
      .filter(({ remember_until }) => remember_until > now)
      .map(({ account, id, digest, receivers, remember_until }) => ({
        ...{ account, id, digest, receivers },
        expires_at: remember_until,
      })),
  );
  await counted.save(transaction);
}
