/** The times and limits that the storage contract uses unless a test chooses others. */

import type { Retention } from "../../webhooks/store.js";

export const SECOND_MS = 1_000;
export const MINUTE_MS = 60 * SECOND_MS;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

export const LEASE_MS = 60 * SECOND_MS;
/** Deliveries that one endpoint may have in flight. */
export const PER_ENDPOINT = 5;
/** ENABLED webhooks of one account. */
export const ENABLED_LIMIT = 15;
/** Webhooks of one account. */
export const ACCOUNT_LIMIT = 100;
/** How long the id of an event is remembered. */
export const REMEMBER_EVENTS_MS = 24 * HOUR_MS;
export const RETENTION: Retention = { ms: 72 * HOUR_MS, events: 10_000 };
/** From the first failure of an endpoint to its first health step. */
export const NOTICE_MS = 72 * HOUR_MS;
/** The `room` of a claim that may not return anything. */
export const NO_ROOM = { fast: 0, slow: 0 } as const;
/** The health of an endpoint that does not fail. */
export const HEALTHY = { failingSince: null, warnedAt: null, noticeAt: null } as const;
