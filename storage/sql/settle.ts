/**
 * Records the results of claims. The common way takes deliveries that were delivered, in one
 * statement where the database has it. The general way takes everything: it reads the rows of all
 * settlements, locks their endpoints and leases, decides, and writes the rows that changed.
 */

import {
  type DeliveryState,
  type EndpointReport,
  type Settlement,
  type SettleResult,
  TEST_FAILED,
  type WebhookStatus,
} from "../../src/webhooks/store.js";
import { applyReport, classifySettlement } from "../queue/endpoint.js";
import { addRecentAttempts, type PastHour, sumAttempts, toHour } from "../queue/recent-attempts.js";
import { type CompletableEvent, completeEvents, keepCompleted, lockEvents } from "./completed-events.js";
import type { SqlTransaction } from "./database.js";
import { addAttempt, encodeLastAttempt, getQueuePlace } from "./delivery-rows.js";
import { getRecentHour, offerAndSave, saveHours, type Writing } from "./endpoint-rows.js";
import { settleDelivered } from "./settle-delivered.js";
import { findHeads, readWorking, type SettledDelivery, saveDeliveries } from "./settle-rows.js";
import { noteWake, type SqlStoreContext, writeAndWake } from "./store-context.js";
import type { EndpointRow } from "./webhook-tables.js";

function countDelivery(endpoint: EndpointRow, { state, reason }: SettledDelivery["row"], by: 1 | -1): void {
  endpoint[state as DeliveryState] += by;
  if (reason === TEST_FAILED) endpoint.failed_tests += by;
}

/** Changes an endpoint as the report of an attempt says. Returns true if its health has changed. */
function changeEndpoint(endpoint: EndpointRow, report: EndpointReport, perEndpoint: number): boolean {
  const { generation, slow_start: slowStart, failing_since: failingSince } = endpoint;
  const status = endpoint.status as WebhookStatus;
  const change = applyReport({ generation, status, slowStart, failingSince }, report, 1, perEndpoint);
  if (change === undefined) return false;
  endpoint.lane = change.lane;
  endpoint.slow_start = change.slowStart;
  if (change.health === undefined) return false;
  endpoint.failing_since = change.health.failingSince;
  endpoint.warned_at = change.health.warnedAt;
  endpoint.notice_at = change.health.noticeAt;
  return true;
}

/**
 * Counts the attempts of settlements of one endpoint, in their order, in its row. Those of one hour
 * are added at once, so that their sketch is short. Returns the hours that are over.
 */
function countAttempts(endpoint: EndpointRow, settlements: Settlement[]): PastHour[] {
  const last = settlements.findLast(({ attempt }) => attempt !== null)?.attempt;
  if (last) endpoint.last_attempt = encodeLastAttempt(last);
  const ended: PastHour[] = [];
  const byHour = new Map<number, Settlement[]>();
  for (const settlement of settlements) {
    if (settlement.attempt === null || settlement.endpoint === null) continue;
    const hour = toHour(settlement.now);
    const group = byHour.get(hour);
    if (group === undefined) byHour.set(hour, [settlement]);
    else group.push(settlement);
  }
  for (const group of byHour.values()) {
    const added = sumAttempts(group);
    const { newest, past } = addRecentAttempts(getRecentHour(endpoint), group[0]?.now ?? 0, added);
    endpoint.recent_hour = newest.hour;
    endpoint.recent_succeeded = newest.succeeded;
    endpoint.recent_failed = newest.failed;
    endpoint.recent_duration_ms = newest.durationMs;
    endpoint.recent_sketch = newest.sketch;
    if (past !== null) ended.push(past);
  }
  return ended;
}

/** Applies a settlement that is recorded to the rows of its delivery and its endpoint. */
function applySettlement(delivery: SettledDelivery, endpoint: EndpointRow, settlement: Settlement): void {
  const { row } = delivery;
  const { now, outcome, startedAt, attempt } = settlement;
  delivery.isChanged = true;
  if (delivery.isInFlight) endpoint.in_flight -= 1;
  delivery.isInFlight = false;
  delivery.token = null;
  row.started_at = startedAt ?? row.started_at;
  row.is_recovered = 0;
  if (attempt !== null) row.attempts = addAttempt(row.attempts, attempt);
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

/** Settles deliveries of any endpoints in a transaction. Returns a result for each, in order. */
async function settleAny(
  transaction: SqlTransaction,
  settlements: Settlement[],
  writing: Writing,
): Promise<SettleResult[]> {
  const { context, after } = writing;
  const working = await readWorking(transaction, settlements, context);
  const touched = new Map<EndpointRow, Settlement[]>();
  const unhealthy = new Set<EndpointRow>();
  const results = settlements.map((settlement): SettleResult => {
    const endpoint = working.endpoints.get(settlement.webhookId);
    const delivery = working.deliveries.get(settlement.id);
    if (endpoint?.account !== settlement.account || delivery?.row.endpoint !== endpoint.position)
      return "gone";
    const result = classifySettlement(delivery.row.state as DeliveryState, delivery.token, settlement);
    if (result !== "settled") return result;
    const { endpoint: report } = settlement;
    if (report !== null && changeEndpoint(endpoint, report, context.perEndpoint)) unhealthy.add(endpoint);
    applySettlement(delivery, endpoint, settlement);
    const group = touched.get(endpoint);
    if (group === undefined) touched.set(endpoint, [settlement]);
    else group.push(settlement);
    return result;
  });
  const past = [...touched].flatMap(([endpoint, group]) =>
    countAttempts(endpoint, group).map((hour) => ({ endpoint: endpoint.position, hour })),
  );
  const changed = [...working.deliveries.values()].filter(({ isChanged }) => isChanged);
  // Those that had no other delivery when they were read need no lock. A late success counts for an
  // event that may be completed already.
  const alone: CompletableEvent[] = [];
  const shared: number[] = [];
  for (const { row, account, isOnly, before } of changed) {
    if (row.state === "pending") continue;
    if (isOnly && before === "pending") alone.push({ position: row.event, account, keep_ms: null });
    else shared.push(row.event);
  }
  const locked = await lockEvents(transaction, shared);
  await saveDeliveries(transaction, working, changed);
  await offerAndSave(transaction, [...touched.keys()], writing, findHeads(working, changed));
  await saveHours(transaction, past);
  for (const { notice_at } of unhealthy) if (notice_at !== null) noteWake(after, notice_at);
  await completeEvents(transaction, locked, writing);
  await keepCompleted(transaction, alone, writing);
  return results;
}

/** Settles deliveries of any endpoints. Returns a result for each, in order. */
export async function settleDeliveries(
  context: SqlStoreContext,
  settlements: Settlement[],
): Promise<SettleResult[]> {
  const others = await settleDelivered(context, settlements);
  if (others.length === 0) return settlements.map(() => "settled");
  const now = others[0]?.now ?? 0;
  const results = await writeAndWake(context, (transaction, after) =>
    settleAny(transaction, others, { context, now, after }),
  );
  const byOther = new Map(others.map((settlement, index) => [settlement, results[index]]));
  return settlements.map((settlement) => byOther.get(settlement) ?? "settled");
}
