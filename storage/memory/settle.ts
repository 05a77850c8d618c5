/**
 * Settles deliveries in memory: applies the result of an attempt to its delivery and its endpoint.
 */

import type { Attempt, EndpointReport, Settlement, SettleResult } from "../../src/webhooks/store.js";
import { addRecentAttempt } from "../recent-attempts.js";
import { nextSlowStart } from "../slow-start.js";
import { attemptBytes, resize } from "./bounds.js";
import { enqueue, moveToLane, offer, releaseLease } from "./claim-order.js";
import type { MemoryDelivery, MemoryEndpoint } from "./records.js";
import { makeRoom, markCompleted, reopen } from "./retention.js";
import { findDelivery, isDone, type MemoryStoreContext, type State } from "./state.js";
import { updateRecord } from "./update-record.js";

/** Attempts that one delivery keeps. The schedule has 14; further ones come from `resend`. */
const MAX_ATTEMPTS_KEPT = 50;

const DELIVERED = { state: "delivered", reason: null } as const;

/** Copies the excerpt too: a slice of a longer text would keep all of that text on the heap. */
const copyAttempt = (attempt: Attempt): Attempt =>
  attempt.excerpt === null ? { ...attempt } : { ...attempt, excerpt: structuredClone(attempt.excerpt) };

/**
 * Adds an attempt, and makes it the last one of its endpoint. The result of an attempt is never
 * refused: at a bound, the delivery drops its oldest attempts.
 */
function addAttempt(state: State, delivery: MemoryDelivery, attempt: Attempt, now: number): void {
  const { event, endpoint } = delivery;
  const kept = copyAttempt(attempt);
  endpoint.lastAttempt = kept.excerpt === null ? kept : { ...kept, excerpt: null };
  // A completed event may be freed for new data, but not for an attempt of its own.
  reopen(state, event);
  // Most deliveries have one attempt, and an array that grows reserves space for sixteen more.
  delivery.attempts = delivery.attempts.length === 0 ? [kept] : [...delivery.attempts, kept];
  resize(state, event, attemptBytes(kept));
  while (
    delivery.attempts.length > 1 &&
    (delivery.attempts.length > MAX_ATTEMPTS_KEPT || !makeRoom(state, 0, now))
  ) {
    const [oldest, ...others] = delivery.attempts;
    delivery.attempts = others;
    if (oldest) resize(state, event, -attemptBytes(oldest));
  }
}

/** Applies the report of an attempt to its endpoint: its lane, its slow start, its health. */
function applyReport(
  { state, perEndpoint }: MemoryStoreContext,
  endpoint: MemoryEndpoint,
  seen: EndpointReport,
): void {
  if (seen.generation !== endpoint.record.generation) return;
  moveToLane(state, endpoint, seen.lane);
  endpoint.slowStart = nextSlowStart(endpoint.slowStart, seen.ok, perEndpoint);
  const { status, failingSince } = endpoint.record;
  if (status !== "ENABLED") return;
  if (seen.ok && failingSince !== null) {
    updateRecord(state, endpoint, { failingSince: null, warnedAt: null, noticeAt: null });
  } else if (!seen.ok && failingSince === null) {
    updateRecord(state, endpoint, { failingSince: seen.at, warnedAt: null, noticeAt: seen.noticeAt });
  }
}

/** Finds the delivery that a settlement is for, or the reason why the settlement is not applied. */
function findSettled(state: State, settlement: Settlement): MemoryDelivery | "stale" | "gone" {
  const { id, account, token, outcome } = settlement;
  const delivery = state.leased.get(id) ?? findDelivery(state, id);
  if (delivery === undefined || isDone(delivery)) return "gone";
  const { endpoint } = delivery;
  if (endpoint.isRemoved || endpoint.account.name !== account) return "gone";
  if (outcome.state === "delivered") return delivery;
  if (delivery.state !== "pending") return "gone";
  return delivery.lease?.token === token ? delivery : "stale";
}

/** Applies one settlement. The caller offers the endpoint again. */
function apply(context: MemoryStoreContext, delivery: MemoryDelivery, settlement: Settlement): void {
  const { state } = context;
  const { id, now, outcome, startedAt, attempt, endpoint: seen } = settlement;
  releaseLease(state, delivery, id);
  delivery.startedAt = startedAt ?? delivery.startedAt;
  delivery.isRecovered = false;
  if (attempt !== null) addAttempt(state, delivery, attempt, now);
  if (seen !== null) applyReport(context, delivery.endpoint, seen);
  if (attempt !== null && seen !== null) {
    const { endpoint } = delivery;
    const { durationMs } = attempt;
    endpoint.recent = addRecentAttempt(endpoint.recent, now, { isOk: seen.ok, durationMs });
  }
  if (outcome.state === "pending") {
    delivery.step = outcome.step;
    delivery.dueAt = outcome.dueAt;
    delivery.extraAt = outcome.extraAt ?? null;
    delivery.postponed = outcome.postponed;
    delivery.crashes = outcome.crashes;
    enqueue(delivery, now);
  } else {
    markCompleted(context, delivery, outcome.state === "delivered" ? DELIVERED : outcome, now);
  }
}

/** Applies settlements one by one, and then offers each of their endpoints once. */
export function settleAll(context: MemoryStoreContext, settlements: readonly Settlement[]): SettleResult[] {
  const changed = new Map<MemoryEndpoint, number>();
  try {
    return settlements.map((settlement) => {
      const delivery = findSettled(context.state, settlement);
      if (typeof delivery === "string") return delivery;
      changed.set(delivery.endpoint, settlement.now);
      apply(context, delivery, settlement);
      return "settled";
    });
  } finally {
    for (const [endpoint, now] of changed) offer(context, endpoint, now);
  }
}
