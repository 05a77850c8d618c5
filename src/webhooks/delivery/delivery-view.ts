/** Converts stored deliveries to the form that hosts see. Pure. */

import type { DeliveryRecord } from "../store.js";
import type { Delivery } from "./deliveries.js";

export const toDateOrNull = (ms: number | null): Date | null => (ms === null ? null : new Date(ms));

export const hideExcerpts = (record: DeliveryRecord): DeliveryRecord => ({
  ...record,
  attempts: record.attempts.map((attempt) => ({ ...attempt, excerpt: null })),
});

export const hasExcerpt = ({ attempts }: DeliveryRecord): boolean =>
  attempts.some(({ excerpt }) => excerpt !== null);

export const toDelivery = (record: DeliveryRecord): Delivery => ({
  id: record.id,
  webhookId: record.webhookId,
  eventId: record.eventId,
  type: record.type,
  state: record.state,
  reason: record.reason,
  createdAt: new Date(record.createdAt),
  startedAt: toDateOrNull(record.startedAt),
  nextAttemptAt: toDateOrNull(record.dueAt),
  endedAt: toDateOrNull(record.endedAt),
  attempts: record.attempts.map((attempt) => ({ ...attempt, at: new Date(attempt.at) })),
});
