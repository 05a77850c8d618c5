/** The rows of due deliveries, with their events. */

import type { DeliveryRow, EventTexts } from "./delivery-rows.js";

/** The most characters of attempts of a delivery that is remembered until it is settled. */
const MOST_REMEMBERED = 1_000;

export const DUE = `SELECT q.endpoint, q.at, d.position, d.event, d.serial, d.started_at, d.step, d.due_at, d.extra_at,
    d.postponed, d.crashes, d.is_recovered, ev.id AS event_id, ev.type, ev.subject, ev.digest, b.payload, ev.deliveries AS event_deliveries,
    CASE WHEN length(d.attempts) <= ${MOST_REMEMBERED} THEN d.attempts END AS attempts
  FROM {queue} q JOIN {deliveries} d ON d.position = q.delivery
    JOIN {events} ev ON ev.position = d.event LEFT JOIN {bodies} b ON b.event = d.event
  WHERE q.endpoint = $1 AND q.at <= $2 ORDER BY q.at, q.delivery LIMIT $3`;

export type DueRow = Omit<
  DeliveryRow,
  "created_at" | "state" | "reason" | "ended_at" | "queued_at" | "attempts"
> &
  EventTexts & {
    readonly at: number;
    /** How many deliveries its event had had. */
    readonly event_deliveries: number;
    /** Null if they are too long to be remembered. */
    readonly attempts: string | null;
    readonly event_id: string;
    /** Null if the database has lost it: the core then reports the event as unreadable. */
    payload: string | null;
  };
