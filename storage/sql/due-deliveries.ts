/** Turns due deliveries into claims, and takes them out of the queue. */

import type { Claim, ClaimRequest, EventRecord, Lane, WebhookRecord } from "../../src/webhooks/store.js";
import type { SqlTransaction } from "./database.js";
import { decodeEventTexts, toDeliveryId } from "./delivery-rows.js";
import type { DueRow } from "./due-row.js";
import type { EndpointRow } from "./endpoint-row.js";
import type { AfterCommit, SqlStoreContext } from "./store-context.js";
import { queue } from "./webhook-tables.js";

/** A claim in the course of its transaction. */
export interface Claiming {
  readonly transaction: SqlTransaction;
  readonly context: SqlStoreContext;
  readonly request: ClaimRequest;
  readonly after: AfterCommit;
  readonly claims: Claim[];
  /** The rows of the claimed deliveries, by their ids. */
  readonly rows: Map<string, DueRow>;
  /** Events by position: claims of one event share its record. */
  readonly events: Map<number, EventRecord>;
}

function getEvent({ events }: Claiming, row: DueRow, account: string): EventRecord {
  const known = events.get(row.event);
  if (known !== undefined) return known;
  const event = Object.freeze({ id: row.event_id, account, ...decodeEventTexts(row) });
  events.set(row.event, event);
  return event;
}

export function toLeasedClaim(
  claiming: Claiming,
  row: DueRow,
  endpoint: EndpointRow,
  webhook: WebhookRecord,
): Claim {
  const event = getEvent(claiming, row, webhook.account);
  const id = toDeliveryId(endpoint.id, event.id, row.serial);
  // The row is kept until its delivery is settled; the payload is not.
  row.payload = null;
  claiming.rows.set(id, row);
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
export async function takeFromQueue({ transaction }: Claiming, taken: readonly DueRow[]): Promise<void> {
  await transaction.remove(
    queue,
    ["endpoint", "at", "delivery"],
    taken.map((row) => [row.endpoint, row.at, row.position]),
  );
}
