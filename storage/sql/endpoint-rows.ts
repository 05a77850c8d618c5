/** The rows of endpoints while a transaction holds their locks: when they may be served next. */

import { MAX_HOURS } from "../queue/constants.js";
import {
  type ClaimedSecond,
  countFreeSlots,
  findOpenTime,
  findReadyTime,
  isEarlier,
  keepsTurn,
} from "../queue/endpoint.js";
import type { PastHour, RecentHour } from "../queue/recent-attempts.js";
import type { SqlTransaction } from "./database.js";
import { type AfterCommit, noteWake, type SqlStoreContext } from "./store-context.js";
import { type EndpointRow, endpoints, hours } from "./webhook-tables.js";

let lastTurn = 0;

/** So many turns are reserved at most. Endpoints beyond share numbers with those served later. */
const MAX_TURNS = 1_000;

/**
 * Returns the first of `count` numbers that are larger than all before, in this process and, a
 * millisecond later, in others.
 */
export function reserveTurns(now: number, count: number): number {
  const first = Math.max(lastTurn + 1, now * 1_024);
  lastTurn = first + Math.min(Math.max(1, count), MAX_TURNS) - 1;
  return first;
}

/** Reads endpoints by their positions, and locks them. */
export const lockEndpoints = (
  transaction: SqlTransaction,
  positions: Iterable<number>,
): Promise<EndpointRow[]> =>
  transaction.lockRows<EndpointRow>(endpoints, "position", [...new Set(positions)]);

/** Reads an endpoint of this account, as it is stored, by its id, and locks it. */
export async function lockEndpoint(
  transaction: SqlTransaction,
  { id, account }: { id: string; account: string },
): Promise<EndpointRow | undefined> {
  const [row] = await transaction.lockRows<EndpointRow>(endpoints, "id", [id]);
  return row?.account === account ? row : undefined;
}

export const countSlots = ({ slow_start, in_flight }: EndpointRow, perEndpoint: number): number =>
  countFreeSlots(slow_start, in_flight, perEndpoint);

/** Returns the newest hour with attempts. */
export const getRecentHour = (row: EndpointRow): RecentHour | null =>
  row.recent_hour === null
    ? null
    : {
        hour: row.recent_hour,
        succeeded: row.recent_succeeded,
        failed: row.recent_failed,
        durationMs: row.recent_duration_ms,
        sketch: row.recent_sketch,
      };

/** Returns what was claimed in the latest second; `null` if that was never limited. */
export const getClaimed = ({ claimed_second, claimed_count }: EndpointRow): ClaimedSecond | null =>
  claimed_second === null ? null : { second: claimed_second, count: claimed_count ?? 0 };

/** Returns how many deliveries may be claimed in a second: the limit of the endpoint, or of all. */
export const getPerSecond = ({ per_second }: EndpointRow, perSecond: number | null): number | null =>
  per_second ?? perSecond;

/**
 * Works out when an endpoint may be served next, after it was served or its queue has changed.
 * `head`: when the first delivery of its queue may be claimed; `null` if the queue is empty.
 */
export function offerEndpoint(
  endpoint: EndpointRow,
  head: number | null,
  now: number,
  { perEndpoint, perSecond, turn }: { perEndpoint: number; perSecond: number | null; turn: number },
): void {
  const openTime = findOpenTime(getPerSecond(endpoint, perSecond), getClaimed(endpoint), now);
  endpoint.ready_at = findReadyTime(head, countSlots(endpoint, perEndpoint), openTime);
  if (endpoint.ready_at !== null) endpoint.turn = turn;
}

const HEADS = "SELECT endpoint, at FROM {queue} WHERE endpoint = $1 ORDER BY at, delivery LIMIT 1";

/** Reads when the first delivery of each queue may be claimed, by the position of its endpoint. */
async function readHeads(transaction: SqlTransaction, rows: EndpointRow[]): Promise<Map<number, number>> {
  const lists = rows.map(({ position }) => [position]);
  const heads = await transaction.forEach<{ endpoint: number; at: number }>(HEADS, ["int"], lists);
  return new Map(heads.map(({ endpoint, at }) => [endpoint, at]));
}

/** The context, the time and the notes of a transaction that changes queues. */
export interface Writing {
  context: SqlStoreContext;
  now: number;
  after: AfterCommit;
}

/**
 * Offers endpoints whose queues have changed; one that is due already keeps its turn. Notes when
 * workers should claim, and writes the endpoints. `heads`: of the queues, if they are known.
 */
export async function offerAndSave(
  transaction: SqlTransaction,
  rows: EndpointRow[],
  { context: { perEndpoint, perSecond }, now, after }: Writing,
  heads?: Map<number, number>,
): Promise<void> {
  const offered = rows.filter(({ ready_at }) => !keepsTurn(ready_at, now));
  const found = heads ?? (await readHeads(transaction, offered));
  for (const row of offered) {
    const before = row.ready_at;
    const turn = reserveTurns(now, 1);
    offerEndpoint(row, found.get(row.position) ?? null, now, { perEndpoint, perSecond, turn });
    if (isEarlier(row.ready_at, before)) noteWake(after, row.ready_at);
  }
  await saveEndpoints(transaction, rows, QUEUE_COLUMNS);
}

/** The columns that a claim changes, and those that a change of the webhook or its health does. */
export const SERVED_COLUMNS = ["ready_at", "turn", "in_flight", "claimed_second", "claimed_count"] as const;
export const HEALTH_COLUMNS = [
  "status",
  "updated_at",
  "generation",
  "failing_since",
  "warned_at",
  "notice_at",
] as const;

/** The columns that settlements and additions change. */
const QUEUE_COLUMNS = (Object.keys(endpoints.columns) as (keyof EndpointRow)[]).filter(
  (column) =>
    !["position", "id", "account", "status", "updated_at", "generation"].includes(column) &&
    !column.startsWith("claimed_"),
);

/** Writes columns of endpoints that are locked. */
export const saveEndpoints = (
  transaction: SqlTransaction,
  rows: EndpointRow[],
  columns: readonly (keyof EndpointRow)[],
): Promise<void> =>
  transaction.update(
    endpoints,
    ["position"],
    columns,
    rows.map((row) => [row.position, ...columns.map((column) => row[column])]),
  );

/** Writes hours that are over. Those that they replace were 72 hours before, or more. */
export async function saveHours(
  transaction: SqlTransaction,
  past: { endpoint: number; hour: PastHour }[],
): Promise<void> {
  const byPlace = new Map(
    past.map(({ endpoint, hour }) => [`${endpoint} ${hour.hour % MAX_HOURS}`, { endpoint, hour }]),
  );
  const rows = [...byPlace.values()].map(({ endpoint, hour }) => [
    endpoint,
    hour.hour % MAX_HOURS,
    hour.hour,
    hour.succeeded,
    hour.failed,
    hour.durationMs,
    hour.p50,
    hour.p95,
  ]);
  const keys = rows.map(([endpoint = null, place = null]) => [endpoint, place]);
  await transaction.remove(hours, ["endpoint", "place"], keys);
  await transaction.insert(hours, Object.keys(hours.columns), rows);
}
