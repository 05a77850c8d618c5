/** Deliveries and statistics as the page gets them. */

import { chooseTexts } from "../../../src/portal/app/texts.js";
import type { AttemptJson, DeliveryRowJson, StatsJson } from "../../../src/portal/shapes.js";
import { english } from "../../../src/portal/texts/en.js";

// A page does so before it renders.
chooseTexts("en", english);

export const HOUR = 3_600_000;
export const toIso = (ms: number): string => new Date(ms).toISOString();

export const failedAttempt: AttemptJson = {
  at: toIso(0),
  durationMs: 812,
  step: 0,
  isExtra: false,
  kind: "http",
  status: 500,
  code: "HTTP_500",
  excerpt: null,
};

export const pendingDelivery = (changes: Partial<DeliveryRowJson> = {}): DeliveryRowJson => ({
  id: "d",
  webhookId: "w",
  eventId: "0b7a1c5e-2f9d-4c0e-9d38-6c1f8d0a5e11",
  type: "patient.updated",
  subject: null,
  tags: [],
  state: "pending",
  reason: null,
  createdAt: toIso(0),
  startedAt: toIso(0),
  nextAttemptAt: toIso(HOUR),
  endedAt: null,
  attemptCount: 0,
  lastAttempt: null,
  ...changes,
});

/** The statistics of a webhook whose last attempt was delivered. */
export const healthyStats = (changes: Partial<StatsJson> = {}): StatsJson => ({
  pending: 0,
  delivered: 1,
  failed: 0,
  withheld: 0,
  eventTypes: null,
  health: { status: "ok", failingSince: null, warnAt: null, disableAt: null },
  rotatesAt: null,
  nextAttemptAt: null,
  lastAttempt: { at: toIso(0), kind: "delivered", status: 204, code: "HTTP_204" },
  lastDay: { attempts: 1, succeeded: 1, averageMs: 38 },
  hours: [],
  ...changes,
});
