/** Applies a settlement to the rows of its delivery and its endpoint. Does no I/O. */

import {
  type Attempt,
  type DeliveryState,
  type EndpointReport,
  type Settlement,
  type SettleResult,
  TEST_FAILED,
} from "../../src/webhooks/store.js";
import { nextSlowStart } from "../endpoint-limits.js";
import {
  addRecentAttempts,
  KEPT_HOURS,
  type PastHour,
  type RecentHour,
  sumAttempts,
  toHour,
} from "../recent-attempts.js";
import { encodeStoredText } from "../stored-text.js";
import { getQueuePlace } from "./delivery-rows.js";
import type { DeliveryRow, EndpointRow, HourRow } from "./webhook-tables.js";

/** Attempts that one delivery keeps. The schedule has 14; further ones come from `resend`. */
const MAX_ATTEMPTS_KEPT = 50;

/** The columns of a delivery that settlements read or change. */
export type SettledRow = Omit<DeliveryRow, "serial" | "created_at">;

/** A delivery in the course of a transaction that settles it. */
export interface SettledDelivery {
  readonly id: string;
  readonly row: SettledRow;
  readonly account: string;
  /** True if its event had no other delivery when the row was read. */
  readonly isOnly: boolean;
  isInFlight: boolean;
  /** The token of its lease, if that is one of those that settle; else `null`. */
  token: string | null;
  /** Its state when the transaction began. */
  readonly before: DeliveryState;
  /** Its place in the queue when the transaction began; `null` if it had none. */
  readonly queuedBefore: number | null;
  isChanged: boolean;
}

/** The fields of `EndpointRow` that count deliveries. */
const getCount = (endpoint: EndpointRow, state: DeliveryState): number => endpoint[state];

function countDelivery(
  endpoint: EndpointRow,
  { state, reason }: { readonly state: string; readonly reason: string | null },
  by: 1 | -1,
): void {
  const counted = state as DeliveryState;
  endpoint[counted] = getCount(endpoint, counted) + by;
  if (reason === TEST_FAILED) endpoint.failed_tests += by;
}

/** Decides if a settlement is applied. */
export function classifySettlement({ row, token }: SettledDelivery, settlement: Settlement): SettleResult {
  if (row.state === "delivered" || row.state === "withheld") return "gone";
  if (settlement.outcome.state === "delivered") return "settled";
  if (row.state !== "pending") return "gone";
  return token === settlement.token ? "settled" : "stale";
}

/** Returns the attempts of a delivery, as they are stored, with one more. */
export function addAttempt(attempts: string, attempt: Attempt): string {
  const line = encodeStoredText(JSON.stringify(attempt));
  if (attempts === "") return line;
  return [...attempts.split("\n"), line].slice(-MAX_ATTEMPTS_KEPT).join("\n");
}

/** Returns the last attempt of an endpoint, as it is stored. */
export const encodeLastAttempt = (attempt: Attempt): string => JSON.stringify({ ...attempt, excerpt: null });

/** Applies the report of an attempt to its endpoint: its lane, its slow start, its health. */
function applyReport(endpoint: EndpointRow, seen: EndpointReport, perEndpoint: number): void {
  if (seen.generation !== endpoint.generation) return;
  endpoint.lane = seen.lane;
  endpoint.slow_start = nextSlowStart(endpoint.slow_start, seen.ok, perEndpoint);
  if (endpoint.status !== "ENABLED") return;
  if (seen.ok && endpoint.failing_since !== null) {
    endpoint.failing_since = null;
    endpoint.warned_at = null;
    endpoint.notice_at = null;
  } else if (!seen.ok && endpoint.failing_since === null) {
    endpoint.failing_since = seen.at;
    endpoint.warned_at = null;
    endpoint.notice_at = seen.noticeAt;
  }
}

/**
 * Counts the attempts of settlements of one endpoint, in their order, in its row. Those of one hour
 * are added at once, so that their sketch is short. Returns the hours that are over.
 */
export function countAttempts(endpoint: EndpointRow, settlements: readonly Settlement[]): readonly HourRow[] {
  const last = settlements.findLast(({ attempt }) => attempt !== null)?.attempt;
  if (last) endpoint.last_attempt = encodeLastAttempt(last);
  const counted = settlements.filter(
    (settlement) => settlement.attempt !== null && settlement.endpoint !== null,
  );
  if (counted.length === 0) return [];
  let hours = JSON.parse(endpoint.recent) as readonly RecentHour[];
  const ended: PastHour[] = [];
  for (let from = 0; from < counted.length; ) {
    const { now } = counted[from] as Settlement;
    const others = counted.slice(from).findIndex((other) => toHour(other.now) !== toHour(now));
    const to = others < 0 ? counted.length : from + others;
    const added = addRecentAttempts(hours, now, sumAttempts(counted.slice(from, to)));
    hours = added.hours;
    ended.push(...added.ended);
    from = to;
  }
  endpoint.recent = JSON.stringify(hours);
  return ended.map(({ hour, succeeded, failed, durationMs, p50, p95 }) => ({
    ...{ endpoint: endpoint.position, place: hour % KEPT_HOURS, hour, succeeded, failed },
    ...{ duration_ms: Math.round(durationMs), p50, p95 },
  }));
}

/** Applies a settlement that was classified as `settled`, but for {@link countAttempts}. */
export function applySettlement(
  delivery: SettledDelivery,
  endpoint: EndpointRow,
  settlement: Settlement,
  perEndpoint: number,
): void {
  const { row } = delivery;
  const { now, outcome, startedAt, attempt, endpoint: seen } = settlement;
  delivery.isChanged = true;
  if (delivery.isInFlight) endpoint.in_flight -= 1;
  delivery.isInFlight = false;
  delivery.token = null;
  row.started_at = startedAt ?? row.started_at;
  row.is_recovered = 0;
  if (attempt !== null) row.attempts = addAttempt(row.attempts, attempt);
  if (seen !== null) applyReport(endpoint, seen, perEndpoint);
  countDelivery(endpoint, row, -1);
  if (outcome.state === "pending") {
    row.step = outcome.step;
    row.due_at = outcome.dueAt;
    row.extra_at = outcome.extraAt ?? null;
    row.postponed = outcome.postponed;
    row.crashes = outcome.crashes;
    row.queued_at = getQueuePlace(row, now);
  } else {
    row.state = outcome.state;
    row.reason = outcome.state === "delivered" ? null : outcome.reason;
    row.ended_at = now;
  }
  countDelivery(endpoint, row, 1);
}
