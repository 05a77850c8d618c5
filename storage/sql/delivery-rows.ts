/** The rows of deliveries: their ids, their places in the queue, and adding new ones. */

import { formatDeliveryId } from "../../src/webhooks/store/records.js";
import type { EventRecord } from "../../src/webhooks/store.js";
import { findQueueTime } from "../queue/turns.js";
import { decodeStoredText } from "../stored-text.js";
import type { SqlTransaction } from "./database.js";
import { type DeliveryRow, deliveries, type EventTexts, queue } from "./webhook-tables.js";

/** The fields of a new delivery. */
export interface NewDelivery {
  /** The position of its webhook. */
  readonly endpoint: number;
  /** The position of its event. */
  readonly event: number;
  readonly serial: number;
  readonly dueAt: number;
}

/** Returns the place of a delivery in the queue of its endpoint. */
export const getQueuePlace = (
  { started_at, due_at, extra_at }: Pick<DeliveryRow, "started_at" | "due_at" | "extra_at">,
  now: number,
): number => findQueueTime({ startedAt: started_at, dueAt: due_at, extraAt: extra_at }, now);

const COLUMNS = [
  "endpoint",
  "event",
  "serial",
  "created_at",
  "state",
  "step",
  "due_at",
  "postponed",
  "crashes",
  "is_recovered",
  "queued_at",
  "attempts",
] as const satisfies readonly (keyof DeliveryRow)[];

/** Adds pending deliveries, with their places in the queue. The caller counts them. */
export async function addDeliveries(
  transaction: SqlTransaction,
  added: readonly NewDelivery[],
  now: number,
): Promise<void> {
  if (added.length === 0) return;
  const places = added.map(({ dueAt }) =>
    getQueuePlace({ started_at: null, due_at: dueAt, extra_at: null }, now),
  );
  const positions = await transaction.insertNumbered(
    deliveries,
    COLUMNS,
    added.map(({ endpoint, event, serial, dueAt }, index) => [
      ...[endpoint, event, serial, now, "pending", 0, dueAt, 0, 0, 0],
      ...[places[index] ?? dueAt, ""],
    ]),
  );
  await transaction.insert(
    queue,
    ["endpoint", "at", "delivery"],
    added.map(({ endpoint }, index) => [endpoint, places[index] ?? now, positions[index] ?? 0]),
  );
}

/** Returns an event from its texts. */
export function decodeEventRow(id: string, account: string, row: EventTexts): EventRecord {
  const type = decodeStoredText(row.type);
  const digest = decodeStoredText(row.digest);
  const payload = decodeStoredText(row.payload ?? "");
  if (row.subject === null) return { id, account, type, digest, payload };
  return { id, account, type, digest, payload, subject: decodeStoredText(row.subject) };
}

/** Returns the id of a delivery from the ids of its webhook and its event. */
export const toDeliveryId = (webhookId: string, eventId: string, serial: number): string =>
  formatDeliveryId({ webhookId, eventId, serial });
