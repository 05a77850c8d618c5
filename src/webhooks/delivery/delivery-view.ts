/** Converts stored deliveries to the form that hosts see. Pure. */

import type { DeliveryRecord } from "../store.js";
import type { Delivery } from "./deliveries.js";

export const toDateOrNull = (ms: number | null): Date | null => (ms === null ? null : new Date(ms));

/** Hides what only the manager of a webhook may see: excerpts of responses, and the subject. */
export const hideDetails = (record: DeliveryRecord): DeliveryRecord => ({
  ...record,
  subject: null,
  attempts: record.attempts.map((attempt) => ({ ...attempt, excerpt: null })),
});

export const hasDetails = ({ subject, attempts }: DeliveryRecord): boolean =>
  subject !== null || attempts.some(({ excerpt }) => excerpt !== null);

/**
 * Hides the subject of a record that the subscriber may not read, also if `canRead` has not been
 * called yet: each attempt calls it.
 */
export const hideUnsentSubject = (record: DeliveryRecord): DeliveryRecord =>
  record.state === "withheld" || record.attempts.length === 0 ? { ...record, subject: null } : record;

export const toDelivery = (record: DeliveryRecord): Delivery => ({
  id: record.id,
  webhookId: record.webhookId,
  eventId: record.eventId,
  type: record.type,
  subject: record.subject,
  state: record.state,
  reason: record.reason,
  createdAt: new Date(record.createdAt),
  startedAt: toDateOrNull(record.startedAt),
  nextAttemptAt: toDateOrNull(record.dueAt),
  endedAt: toDateOrNull(record.endedAt),
  attempts: record.attempts.map((attempt) => ({ ...attempt, at: new Date(attempt.at) })),
});
