/** Explains why an endpoint did or did not get an event: a decision over records. Pure. */

import { subscribes, TEST_EVENT_TYPE } from "../event-types/catalogue.js";
import type { DeliveryRecord, WebhookRecord } from "../store.js";

/**
 * Why an endpoint did or did not get an event.
 *
 * - `delivered`: it did. `due`: an attempt is in flight, or waits for a free slot. `rate`: the
 *   same, and the rate of the webhook may hold it back. `waiting`: its next attempt is planned.
 * - `failed`: no attempt succeeded, and none is left. `not_permitted`: its subscriber may not read
 *   the record. `disabled`: the webhook is DISABLED, or was when it mattered.
 * - `type_not_subscribed`, `filtered`, `registered_later`: the webhook was not to get it.
 *   `other_test`: it is a test of another webhook.
 * - `event_unknown`: there is no such event, or it is no longer kept.
 */
export type ExplanationReason =
  | "delivered"
  | "due"
  | "rate"
  | "waiting"
  | "failed"
  | "not_permitted"
  | "disabled"
  | "type_not_subscribed"
  | "filtered"
  | "registered_later"
  | "other_test"
  | "event_unknown";

export const EXPLANATION_REASONS: readonly ExplanationReason[] = [
  "delivered",
  "due",
  "rate",
  "waiting",
  "failed",
  "not_permitted",
  "disabled",
  "type_not_subscribed",
  "filtered",
  "registered_later",
  "other_test",
  "event_unknown",
];

interface Finding {
  readonly reason: ExplanationReason;
  /** One or two sentences in English, for people. */
  readonly text: string;
}

/** Why an endpoint did or did not get an event, as data and in words. */
export interface Explanation extends Finding {
  /** When the next attempt is due; `null` without one. */
  readonly nextAttemptAt: Date | null;
  /** The delivery that decides; `null` if the webhook has none of this event. */
  readonly deliveryId: string | null;
}

interface ExplainedEvent {
  type: string;
  storedAt: number;
}

/** The records that decide. */
export interface ExplainedRecords {
  now: number;
  webhook: WebhookRecord;
  /** `undefined` if it does not exist, or the caller may not know of it. */
  event: ExplainedEvent | undefined;
  /** The deliveries of the event to the webhook, newest first. */
  deliveries: readonly DeliveryRecord[];
  /** True if the filter of the webhook refuses the event. */
  isFiltered: boolean;
  /** The deliveries that the webhook may get in a second; `null` for any number. */
  perSecond: number | null;
}

const toIso = (ms: number): string => new Date(ms).toISOString();

function describeLastAttempt({ attempts }: DeliveryRecord): string {
  const last = attempts.at(-1);
  return last === undefined
    ? "It was not attempted yet."
    : `Its last attempt, at ${toIso(last.at)}, ended with ${last.code}.`;
}

function explainPending(delivery: DeliveryRecord, { now, webhook, perSecond }: ExplainedRecords): Finding {
  const at = delivery.dueAt ?? now;
  if (webhook.status === "DISABLED") {
    const text = `The webhook is DISABLED, so attempts are skipped. Enable it: the next one is due at ${toIso(at)}.`;
    return { reason: "disabled", text };
  }
  if (at > now) {
    const text = `The next attempt is due at ${toIso(at)}. ${describeLastAttempt(delivery)}`;
    return { reason: "waiting", text };
  }
  const waits = "An attempt is in flight, or waits for a free slot";
  const last = describeLastAttempt(delivery);
  if (perSecond === null) return { reason: "due", text: `${waits}. ${last}` };
  const text = `${waits} or for its turn: the webhook gets at most ${perSecond} deliveries in a second. ${last}`;
  return { reason: "rate", text };
}

function explainCompleted(delivery: DeliveryRecord): Finding {
  const at = delivery.endedAt === null ? "" : ` at ${toIso(delivery.endedAt)}`;
  if (delivery.state === "delivered") return { reason: "delivered", text: `It was delivered${at}.` };
  if (delivery.state === "withheld") {
    const text = `It was withheld${at}: the subscriber of the webhook may not read the record. Grant access, then recover what was withheld.`;
    return { reason: "not_permitted", text };
  }
  if (delivery.reason === "disabled") {
    const text = `It ended${at}: the webhook was DISABLED until its last attempt. Recover what has failed.`;
    return { reason: "disabled", text };
  }
  const text = `It failed${at} for the reason ${delivery.reason}. ${describeLastAttempt(delivery)} Recover what has failed.`;
  return { reason: "failed", text };
}

/** Explains an event that the webhook has no delivery of. */
function explainMissing(
  { type, storedAt }: ExplainedEvent,
  { webhook, isFiltered }: ExplainedRecords,
): Finding {
  if (type === TEST_EVENT_TYPE)
    return { reason: "other_test", text: "It is a test, which went to another webhook only." };
  if (storedAt < webhook.createdAt) {
    const text = `It was emitted at ${toIso(storedAt)}, before the webhook was registered at ${toIso(webhook.createdAt)}.`;
    return { reason: "registered_later", text };
  }
  if (!subscribes(webhook.eventTypes, type))
    return { reason: "type_not_subscribed", text: `The webhook does not subscribe to '${type}'.` };
  if (isFiltered)
    return { reason: "filtered", text: "The filter of the webhook does not let this event pass." };
  const text =
    webhook.status === "DISABLED"
      ? "The webhook is DISABLED. Enable it, then recover what it missed."
      : "The webhook was DISABLED when the event was emitted, or wanted other events then. Recover what it missed.";
  return { reason: "disabled", text };
}

/** Explains why an endpoint did or did not get an event. Any delivery that succeeded decides. */
export function explainDelivery(records: ExplainedRecords): Explanation {
  const { event, deliveries } = records;
  const delivery =
    deliveries.find(({ state }) => state === "delivered") ??
    deliveries.find(({ state }) => state === "pending") ??
    deliveries[0];
  if (delivery !== undefined) {
    const isPending = delivery.state === "pending";
    const { reason, text } = isPending ? explainPending(delivery, records) : explainCompleted(delivery);
    const nextAttemptAt = delivery.dueAt === null ? null : new Date(delivery.dueAt);
    return { reason, text, nextAttemptAt, deliveryId: delivery.id };
  }
  const { reason, text }: Finding =
    event === undefined
      ? { reason: "event_unknown", text: "There is no such event, or it is no longer kept." }
      : explainMissing(event, records);
  return { reason, text, nextAttemptAt: null, deliveryId: null };
}
