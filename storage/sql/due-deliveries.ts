/** Reads due deliveries with their events, and takes them out of the queue. */

import type { Claim, ClaimRequest, EventRecord, Lane, WebhookRecord } from "../../src/webhooks/store.js";
import type { SqlTransaction } from "./database.js";
import { type DeliveryRow, toDeliveryId } from "./delivery-rows.js";
import type { EndpointRow } from "./endpoint-row.js";
import type { AfterCommit, SqlStoreContext } from "./store-context.js";
import { decodeStoredText } from "./text.js";
import { queue } from "./webhook-tables.js";

export const DUE = `SELECT q.endpoint, q.at, d.position, d.event, d.serial, d.started_at, d.step, d.due_at, d.extra_at,
    d.postponed, d.crashes, d.is_recovered, ev.id AS event_id, ev.type, ev.subject, ev.digest, b.payload
  FROM {queue} q JOIN {deliveries} d ON d.position = q.delivery
    JOIN {events} ev ON ev.position = d.event LEFT JOIN {bodies} b ON b.event = d.event
  WHERE q.endpoint = $1 AND q.at <= $2 ORDER BY q.at, q.delivery LIMIT $3`;

export type DueRow = Omit<
  DeliveryRow,
  "created_at" | "state" | "reason" | "ended_at" | "queued_at" | "attempts"
> & {
  readonly at: number;
  readonly event_id: string;
  readonly type: string;
  readonly subject: string | null;
  readonly digest: string;
  /** Null if the database has lost it: the core then reports the event as unreadable. */
  readonly payload: string | null;
};

/** A claim in the course of its transaction. */
export interface Claiming {
  readonly transaction: SqlTransaction;
  readonly context: SqlStoreContext;
  readonly request: ClaimRequest;
  readonly after: AfterCommit;
  readonly claims: Claim[];
  /** The positions of the claimed deliveries. */
  readonly positions: number[];
  /** Events by position: claims of one event share its record. */
  readonly events: Map<number, EventRecord>;
}

function getEvent({ events }: Claiming, row: DueRow, account: string): EventRecord {
  const known = events.get(row.event);
  if (known !== undefined) return known;
  const { event_id: id, type, subject } = row;
  const digest = decodeStoredText(row.digest);
  const payload = decodeStoredText(row.payload ?? "");
  const event = Object.freeze({
    ...{ id, account, type, digest, payload },
    ...(subject !== null && { subject }),
  });
  events.set(row.event, event);
  return event;
}

export function toLeasedClaim(
  claiming: Claiming,
  row: DueRow,
  endpoint: EndpointRow,
  webhook: WebhookRecord,
): Claim {
  const event = getEvent(claiming, row, endpoint.account);
  const id = toDeliveryId(endpoint.id, event.id, row.serial);
  claiming.context.claimedPositions.set(id, row.position);
  return {
    id,
    token: claiming.request.token,
    lane: endpoint.lane as Lane,
    webhook,
    event,
    startedAt: row.started_at,
    step: row.step,
    isExtra: row.extra_at !== null,
    dueAt: row.due_at,
    postponed: row.postponed,
    crashes: row.crashes,
    isRecovered: row.is_recovered === 1,
  };
}

/** Takes deliveries out of the queue. */
export async function takeFromQueue(
  { transaction, positions }: Claiming,
  taken: readonly DueRow[],
): Promise<void> {
  await transaction.remove(
    queue,
    ["endpoint", "at", "delivery"],
    taken.map((row) => [row.endpoint, row.at, row.position]),
  );
  for (const { position } of taken) positions.push(position);
}
