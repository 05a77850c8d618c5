/**
 * The messages for `node:diagnostics_channel`, by which a host follows what all webhook services of
 * its process do. Without a subscriber, nothing is built or called. `docs/guides/watch.md`
 * documents the messages, `docs/decisions/diagnostics.md` says why telemetry and the audit log do
 * not use them.
 */

import { channel } from "node:diagnostics_channel";
import type { Attempt, Claim, EventRecord, Settlement } from "./store.js";
import type { AuditEntry } from "./webhook.js";

const events = channel("postbell:event");
const attempts = channel("postbell:attempt");
const deliveries = channel("postbell:delivery");
const audits = channel("postbell:audit");

/** True if {@link publishAudit} has somebody to report to. */
export const hasAuditSubscribers = (): boolean => audits.hasSubscribers;

/** Publishes the events that one call has stored, in one message. Never throws. */
export function publishEvents(
  stored: readonly EventRecord[],
  emitted: readonly { id: string; deliveries: readonly unknown[] }[],
): void {
  if (!events.hasSubscribers || emitted.length === 0) return;
  events.publish({
    events: emitted.map(({ id, deliveries: { length } }, index) => ({
      id,
      account: stored[index]?.account,
      type: stored[index]?.type,
      deliveries: length,
    })),
  });
}

/** Publishes an attempt, without the excerpt of the response. Never throws. */
export function publishAttempt(
  { id, webhook, event }: Claim,
  { at, durationMs, step, isExtra, kind, status, code }: Attempt,
): void {
  if (!attempts.hasSubscribers) return;
  attempts.publish({
    account: webhook.account,
    webhookId: webhook.id,
    deliveryId: id,
    eventId: event.id,
    type: event.type,
    at: new Date(at),
    durationMs,
    step,
    isExtra,
    kind,
    status,
    code,
  });
}

/**
 * Publishes the deliveries that one call has settled as completed, in one message. Never throws.
 */
export function publishDeliveries(
  settled: readonly { flight: { claim: Claim }; result: { id: string; outcome: Settlement["outcome"] } }[],
  isRecorded: (index: number) => boolean,
): void {
  if (!deliveries.hasSubscribers) return;
  const ended = settled.filter(
    ({ result }, index) => result.outcome.state !== "pending" && isRecorded(index),
  );
  if (ended.length === 0) return;
  deliveries.publish({
    deliveries: ended.map(({ flight: { claim }, result: { id, outcome } }) => ({
      id,
      account: claim.webhook.account,
      webhookId: claim.webhook.id,
      eventId: claim.event.id,
      type: claim.event.type,
      state: outcome.state,
      reason: "reason" in outcome ? outcome.reason : null,
    })),
  });
}

/** Publishes entries of the audit log, also if the service keeps none. Never throws. */
export function publishAudit(entries: readonly AuditEntry[]): void {
  if (audits.hasSubscribers) audits.publish({ entries });
}
