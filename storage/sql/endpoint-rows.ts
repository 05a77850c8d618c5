/** The rows of endpoints while a transaction holds their locks: when they may be served next. */

import {
  type ClaimedSecond,
  countFreeSlots,
  findOpenTime,
  findReadyTime,
  isEarlier,
  keepsTurn,
} from "../queue/endpoint.js";
import type { RecentHour } from "../queue/recent-attempts.js";
import type { SqlTransaction } from "./database.js";
import { type AfterCommit, noteWake, type SqlStoreContext } from "./store-context.js";
import type { EndpointRow, HourRow } from "./webhook-tables.js";
import { endpoints, hours } from "./webhook-tables.js";

/** The columns that claims and settlements change. The health is written by who changes it. */
const QUEUE_COLUMNS = [
  "lane",
  "ready_at",
  "turn",
  "in_flight",
  "slow_start",
  "pending",
  "delivered",
  "failed",
  "withheld",
  "failed_tests",
  "recent_hour",
  "recent_succeeded",
  "recent_failed",
  "recent_duration_ms",
  "recent_sketch",
  "last_attempt",
] as const satisfies readonly (keyof EndpointRow)[];

/** The same for a claim if the rate is limited. */
const RATED_COLUMNS = [
  ...QUEUE_COLUMNS,
  "claimed_second",
  "claimed_count",
] as const satisfies readonly (keyof EndpointRow)[];

const HEALTH_COLUMNS = [
  "status",
  "updated_at",
  "generation",
  "failing_since",
  "warned_at",
  "notice_at",
] as const satisfies readonly (keyof EndpointRow)[];

let lastTurn = 0;

/** So many turns are reserved at most. Endpoints beyond share numbers with those served later. */
const MOST_TURNS = 1_000;

/**
 * Returns the first of `count` numbers that are larger than all before, in this process and, a
 * millisecond later, in others.
 */
export function reserveTurns(now: number, count: number): number {
  const first = Math.max(lastTurn + 1, now * 1_024);
  lastTurn = first + Math.min(Math.max(1, count), MOST_TURNS) - 1;
  return first;
}

/** Reads endpoints by their positions, and locks them. */
export const lockEndpoints = (
  transaction: SqlTransaction,
  positions: Iterable<number>,
): Promise<readonly EndpointRow[]> =>
  transaction.lockRows<EndpointRow>(endpoints, "position", [...new Set(positions)]);

/** Reads an endpoint of this account, as it is stored, by its id, and locks it. */
export async function lockEndpoint(
  transaction: SqlTransaction,
  { id, account }: { readonly id: string; readonly account: string },
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

/** The limits, the time and the turn of an offer. */
interface Offer extends Pick<SqlStoreContext, "perEndpoint" | "perSecond"> {
  readonly now: number;
  readonly turn: number;
}

/**
 * Works out when an endpoint may be served next, after it was served or its queue has changed.
 * `head`: when the first delivery of its queue may be claimed; `undefined` if the queue is empty.
 */
export function offerEndpoint(
  endpoint: EndpointRow,
  head: number | undefined,
  { now, perEndpoint, perSecond, turn }: Offer,
): void {
  const openTime = findOpenTime(perSecond, getClaimed(endpoint), now);
  endpoint.ready_at = findReadyTime(head ?? null, countSlots(endpoint, perEndpoint), openTime);
  if (endpoint.ready_at !== null) endpoint.turn = turn;
}

const HEADS = "SELECT endpoint, at FROM {queue} WHERE endpoint = $1 ORDER BY at, delivery LIMIT 1";

/** Reads when the first delivery of each queue may be claimed, by the position of its endpoint. */
async function readHeads(
  transaction: SqlTransaction,
  rows: readonly EndpointRow[],
): Promise<ReadonlyMap<number, number>> {
  const lists = rows.map(({ position }) => [position]);
  const heads = await transaction.forEach<{ endpoint: number; at: number }>(HEADS, ["int"], lists);
  return new Map(heads.map(({ endpoint, at }) => [endpoint, at]));
}

/**
 * Offers endpoints whose queues have changed; one that is due already keeps its turn. Notes when
 * workers should claim, and writes the endpoints.
 */
export async function offerAndSave(
  transaction: SqlTransaction,
  rows: readonly EndpointRow[],
  {
    context,
    now,
    after,
    heads: known,
  }: {
    readonly context: SqlStoreContext;
    readonly now: number;
    readonly after: AfterCommit;
    /** The heads of the queues, if they are known. */
    readonly heads?: ReadonlyMap<number, number> | undefined;
  },
): Promise<void> {
  const { perEndpoint, perSecond } = context;
  const offered = rows.filter(({ ready_at }) => !keepsTurn(ready_at, now));
  const heads = known ?? (await readHeads(transaction, offered));
  for (const row of offered) {
    const before = row.ready_at;
    offerEndpoint(row, heads.get(row.position), { now, perEndpoint, perSecond, turn: reserveTurns(now, 1) });
    if (isEarlier(row.ready_at, before)) noteWake(after, row.ready_at);
  }
  await saveQueues(transaction, rows);
}

const save = (
  transaction: SqlTransaction,
  columns: readonly (keyof EndpointRow)[],
  rows: readonly EndpointRow[],
): Promise<void> =>
  transaction.update(
    endpoints,
    ["position"],
    columns,
    rows.map((row) => [row.position, ...columns.map((column) => row[column])]),
  );

/** Writes what claims and settlements change. */
export const saveQueues = (transaction: SqlTransaction, rows: readonly EndpointRow[]): Promise<void> =>
  save(transaction, QUEUE_COLUMNS, rows);

/** The same, with what was claimed in the latest second. */
export const saveRatedQueues = (transaction: SqlTransaction, rows: readonly EndpointRow[]): Promise<void> =>
  save(transaction, RATED_COLUMNS, rows);

/** Writes the status and the health. */
export const saveHealth = (transaction: SqlTransaction, rows: readonly EndpointRow[]): Promise<void> =>
  save(transaction, HEALTH_COLUMNS, rows);

/** Writes hours that are over. Those that they replace were 72 hours before, or more. */
export async function saveHours(transaction: SqlTransaction, rows: readonly HourRow[]): Promise<void> {
  if (rows.length === 0) return;
  const byPlace = new Map(rows.map((row) => [`${row.endpoint} ${row.place}`, row]));
  const last = [...byPlace.values()];
  const columns = Object.keys(hours.columns) as (keyof HourRow)[];
  await transaction.remove(
    hours,
    ["endpoint", "place"],
    last.map(({ endpoint, place }) => [endpoint, place]),
  );
  await transaction.insert(
    hours,
    columns,
    last.map((row) => columns.map((column) => row[column])),
  );
}
