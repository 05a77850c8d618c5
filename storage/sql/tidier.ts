/** Decides when a process frees what is past its retention: not at every claim. */

import { KEPT_FROM } from "../queue/constants.js";
import { completeEvents, freeEvents, lockEvents, type StoredEventRow } from "./completed-events.js";
import type { SqlTransaction } from "./database.js";
import type { SqlStoreContext } from "./store-context.js";
import {
  type DeliveryRow,
  deliveries,
  events,
  queue,
  remembered,
  removals,
  replays,
} from "./webhook-tables.js";

/** How late a process notices what others have left to free. */
const INTERVAL_MS = 1_000;

/** The most accounts whose number of events one call checks. */
const MAX_ACCOUNTS = 5;

/** The most accounts that wait for a check. Others are noted again when they complete more. */
const MAX_NOTED = 10_000;

/** An account may exceed its number of events by this part of it before it is checked. */
const TOLERANCE = 0.05;

export interface Tidier {
  /** Frees a part of what is over, if the time for it has come. */
  tidy(now: number): Promise<void>;
  /** Notes the account of each event, or each delivery, that was completed. */
  noteCompleted(accounts: readonly string[]): void;
  /** Notes that a webhook was removed. */
  noteRemoved(): void;
}

export function createTidier(context: SqlStoreContext): Tidier {
  const { database, retention, logger } = context;
  const due = Math.max(1, Math.floor(retention.events * TOLERANCE));
  /** Completed deliveries by account since its last check. */
  const completed = new Map<string, number>();
  let at = Number.NEGATIVE_INFINITY;
  let isRunning = false;

  const listDue = (): string[] => {
    const accounts: string[] = [];
    for (const [account, count] of completed) {
      if (count >= due) accounts.push(account);
      if (accounts.length === MAX_ACCOUNTS) break;
    }
    return accounts;
  };

  return {
    async tidy(now) {
      const accounts = listDue();
      if (isRunning || (now < at && accounts.length === 0)) return;
      isRunning = true;
      try {
        const next = await database.write((transaction) => tidy(transaction, now, context, accounts), {
          isDurable: false,
        });
        at = Math.min(next, now + INTERVAL_MS);
        if (next > now) for (const account of accounts) completed.delete(account);
      } catch (error) {
        // The claim that follows reports an outage. Nothing else may stop deliveries.
        at = now + INTERVAL_MS;
        logger.warn({ error }, "old events could not be freed; trying again later");
      } finally {
        isRunning = false;
      }
    },
    noteRemoved() {
      at = Number.NEGATIVE_INFINITY;
    },
    noteCompleted(accounts) {
      for (const account of accounts) {
        if (completed.size >= MAX_NOTED && !completed.has(account)) continue;
        completed.set(account, (completed.get(account) ?? 0) + 1);
      }
    },
  };
}

/** The most rows that one call frees. */
const MAX_FREED = 200;

/** Returns as many events as have, together, about {@link MAX_FREED} deliveries. */
async function takeWithinBudget(transaction: SqlTransaction, positions: number[]): Promise<number[]> {
  const counts = await transaction.forEach<{ event: number; count: number }>(
    `SELECT $1 AS event, count(*) AS count FROM (SELECT 1 FROM {deliveries} WHERE event = $1 AND serial > 0 LIMIT ${MAX_FREED}) AS later`,
    ["int"],
    positions.map((position) => [position]),
  );
  const taken: number[] = [];
  let left = MAX_FREED;
  for (const { event, count } of counts) {
    if (left <= 0) break;
    taken.push(Number(event));
    left -= 1 + Number(count);
  }
  return taken;
}

/** Frees completed events. */
async function freeCompleted(
  transaction: SqlTransaction,
  positions: number[],
  now: number,
): Promise<boolean> {
  if (positions.length === 0) return true;
  const taken = await takeWithinBudget(transaction, positions);
  const rows = await transaction.lockRows<StoredEventRow>(events, "position", taken);
  await freeEvents(transaction, rows, now);
  return positions.length < MAX_FREED && taken.length === positions.length;
}

const listPositions = (rows: readonly { event: number }[]): number[] => rows.map(({ event }) => event);

/** Finds events of a range of places that has ended, the first first. */
const EXPIRED_EVENTS = `SELECT event FROM {completed} WHERE place >= $1 AND place <= $2 ORDER BY place LIMIT ${MAX_FREED}`;

/** Frees events whose retention is over. Returns false if more may be left. */
async function freeExpired(
  transaction: SqlTransaction,
  now: number,
  { retention }: SqlStoreContext,
): Promise<boolean> {
  const ranges = [
    [0, now - retention.keepMs],
    [KEPT_FROM, KEPT_FROM + now],
  ];
  let isDone = true;
  for (const range of ranges) {
    const rows = await transaction.all<{ event: number }>(EXPIRED_EVENTS + transaction.skipLocked, range);
    if (!(await freeCompleted(transaction, listPositions(rows), now))) isDone = false;
  }
  return isDone;
}

/** Frees the events of an account beyond those that it may have, the first place first. */
async function freeBeyondLimit(
  transaction: SqlTransaction,
  account: string,
  now: number,
  { retention }: SqlStoreContext,
): Promise<boolean> {
  const [first] = await transaction.all<{ place: number; event: number }>(
    "SELECT place, event FROM {completed} WHERE account = $1 ORDER BY place DESC, event DESC LIMIT 1 OFFSET $2",
    [account, retention.events],
  );
  if (first === undefined) return true;
  const rows = await transaction.all<{ event: number }>(
    `SELECT event FROM {completed} WHERE account = $1 AND (place < $2 OR (place = $2 AND event <= $3))
      ORDER BY place, event LIMIT ${MAX_FREED}${transaction.skipLocked}`,
    [account, first.place, first.event],
  );
  return freeCompleted(transaction, listPositions(rows), now);
}

type RemovedRow = Pick<DeliveryRow, "position" | "event" | "serial" | "state" | "queued_at">;

/** Deletes some deliveries of one removed webhook. Returns false if more may be left. */
async function freeRemoved(
  transaction: SqlTransaction,
  now: number,
  context: SqlStoreContext,
): Promise<boolean> {
  const [removal] = await transaction.all<{ endpoint: number }>(
    `SELECT endpoint FROM {removals} ORDER BY endpoint LIMIT 1${transaction.skipLocked}`,
  );
  if (removal === undefined) return true;
  const { endpoint } = removal;
  const rows = await transaction.all<RemovedRow>(
    `SELECT position, event, serial, state, queued_at FROM {deliveries} WHERE endpoint = $1 ORDER BY created_at, position LIMIT ${MAX_FREED}`,
    [endpoint],
  );
  if (rows.length === 0) {
    await transaction.remove(removals, ["endpoint"], [[endpoint]]);
    return false;
  }
  const keys = rows.map(({ position }) => [position]);
  await transaction.remove(
    queue,
    ["endpoint", "at", "delivery"],
    rows.map(({ queued_at, position }) => [endpoint, queued_at, position]),
  );
  await transaction.remove(deliveries, ["position"], keys);
  const closed = rows.filter(({ state }) => state === "pending").map(({ event }) => event);
  await completeEvents(transaction, await lockEvents(transaction, closed), { context, now });
  return false;
}

const EXPIRED = [
  [remembered, ["account", "id"]],
  [replays, ["account", "key"]],
] as const;

/** Deletes remembered ids and idempotency keys whose time is over. */
async function forgetExpired(transaction: SqlTransaction, now: number): Promise<boolean> {
  let isDone = true;
  for (const [table, keys] of EXPIRED) {
    const rows = await transaction.all<Record<string, string>>(
      `SELECT ${keys.join(", ")} FROM {${table.name}} WHERE expires_at <= $1 ORDER BY expires_at LIMIT ${MAX_FREED}`,
      [now],
    );
    if (rows.length === MAX_FREED) isDone = false;
    await transaction.remove(
      table,
      keys,
      rows.map((row) => keys.map((key) => row[key] ?? "")),
    );
  }
  return isDone;
}

/** Reads when the next event or id is over. */
async function readNextEnd(transaction: SqlTransaction, { retention }: SqlStoreContext): Promise<number> {
  const [first] = await transaction.all<Record<"ended" | "kept" | "remembered" | "replays", number | null>>(
    `SELECT (SELECT min(place) FROM {completed} WHERE place < $1) AS ended,
      (SELECT min(place) FROM {completed} WHERE place >= $1) AS kept,
      (SELECT min(expires_at) FROM {remembered}) AS remembered, (SELECT min(expires_at) FROM {replays}) AS replays`,
    [KEPT_FROM],
  );
  const times = [
    first?.ended == null ? null : Number(first.ended) + retention.keepMs,
    first?.kept == null ? null : Number(first.kept) - KEPT_FROM,
    first?.remembered ?? null,
    first?.replays ?? null,
  ];
  return Math.min(...times.map((at) => (at === null ? Number.POSITIVE_INFINITY : Number(at))));
}

/** Frees a part of what is over. Returns when more is to be done: `now` if something is left. */
async function tidy(
  transaction: SqlTransaction,
  now: number,
  context: SqlStoreContext,
  accounts: string[],
): Promise<number> {
  const done = [
    await freeExpired(transaction, now, context),
    await freeRemoved(transaction, now, context),
    await forgetExpired(transaction, now),
  ];
  for (const account of accounts) done.push(await freeBeyondLimit(transaction, account, now, context));
  return done.every((is) => is) ? readNextEnd(transaction, context) : now;
}
