/** Applies a settlement to the rows of its delivery and its endpoint. Does no I/O. */

import {
  type Attempt,
  type DeliveryState,
  type EndpointReport,
  type Settlement,
  TEST_FAILED,
  type WebhookStatus,
} from "../../src/webhooks/store.js";
import { MAX_ATTEMPTS, MAX_HOURS } from "../queue/constants.js";
import { applyReport } from "../queue/endpoint.js";
import { addRecentAttempts, type PastHour, sumAttempts, toHour } from "../queue/recent-attempts.js";
import { encodeStoredText } from "../stored-text.js";
import { getQueuePlace } from "./delivery-rows.js";
import { getRecentHour } from "./endpoint-rows.js";
import type { DeliveryRow, EndpointRow, HourRow } from "./webhook-tables.js";

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

/** Returns the attempts of a delivery, as they are stored, with one more. */
export function addAttempt(attempts: string, attempt: Attempt): string {
  const line = encodeStoredText(JSON.stringify(attempt));
  if (attempts === "") return line;
  return [...attempts.split("\n"), line].slice(-MAX_ATTEMPTS).join("\n");
}

/** Returns the last attempt of an endpoint, as it is stored. */
export const encodeLastAttempt = (attempt: Attempt): string => JSON.stringify({ ...attempt, excerpt: null });

/** Changes an endpoint as the report of an attempt says. */
function changeEndpoint(endpoint: EndpointRow, report: EndpointReport, perEndpoint: number): void {
  const { generation, slow_start: slowStart, failing_since: failingSince } = endpoint;
  const status = endpoint.status as WebhookStatus;
  const change = applyReport({ generation, status, slowStart, failingSince }, report, 1, perEndpoint);
  if (change === undefined) return;
  endpoint.lane = change.lane;
  endpoint.slow_start = change.slowStart;
  if (change.health === undefined) return;
  endpoint.failing_since = change.health.failingSince;
  endpoint.warned_at = change.health.warnedAt;
  endpoint.notice_at = change.health.noticeAt;
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
  const ended: PastHour[] = [];
  for (let from = 0; from < counted.length; ) {
    const { now } = counted[from] as Settlement;
    const others = counted.slice(from).findIndex((other) => toHour(other.now) !== toHour(now));
    const to = others < 0 ? counted.length : from + others;
    const added = sumAttempts(counted.slice(from, to));
    const { newest, past } = addRecentAttempts(getRecentHour(endpoint), now, added);
    endpoint.recent_hour = newest.hour;
    endpoint.recent_succeeded = newest.succeeded;
    endpoint.recent_failed = newest.failed;
    endpoint.recent_duration_ms = newest.durationMs;
    endpoint.recent_sketch = newest.sketch;
    if (past !== null) ended.push(past);
    from = to;
  }
  return ended.map(({ hour, succeeded, failed, durationMs, p50, p95 }) => ({
    endpoint: endpoint.position,
    place: hour % MAX_HOURS,
    hour,
    succeeded,
    failed,
    duration_ms: durationMs,
    p50,
    p95,
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
  if (seen !== null) changeEndpoint(endpoint, seen, perEndpoint);
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
