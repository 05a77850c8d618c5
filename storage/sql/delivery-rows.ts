/** The rows of deliveries: their ids, places in the queue and attempts, and adding new ones. */

import { formatDeliveryId } from "../../src/webhooks/store/records.js";
import type { Attempt, EventRecord } from "../../src/webhooks/store.js";
import { MAX_ATTEMPTS } from "../queue/constants.js";
import { findQueueTime } from "../queue/endpoint.js";
import { decodeStoredText, encodeStoredText } from "../stored-text.js";
import type { SqlTransaction } from "./database.js";
import { type DeliveryRow, deliveries, type EventTexts, queue } from "./webhook-tables.js";

/** The fields of a new delivery. */
export interface NewDelivery {
  /** The position of its webhook. */
  endpoint: number;
  /** The position of its event. */
  event: number;
  serial: number;
  dueAt: number;
}

/** Returns the place of a delivery in the queue of its endpoint. */
export const getQueuePlace = (
  { started_at, due_at, extra_at }: { started_at: number | null; due_at: number; extra_at: number | null },
  now: number,
): number => findQueueTime({ startedAt: started_at, dueAt: due_at, extraAt: extra_at }, now);

/** Adds pending deliveries, with their places in the queue. The caller counts them. */
export async function addDeliveries(
  transaction: SqlTransaction,
  added: NewDelivery[],
  now: number,
): Promise<void> {
  if (added.length === 0) return;
  const rows = added.map(({ endpoint, event, serial, dueAt }) => ({
    endpoint,
    event,
    serial,
    created_at: now,
    state: "pending",
    step: 0,
    due_at: dueAt,
    postponed: 0,
    crashes: 0,
    is_recovered: 0,
    queued_at: findQueueTime({ startedAt: null, dueAt, extraAt: null }, now),
    attempts: "",
  }));
  const positions = await transaction.insertNumbered(
    deliveries,
    Object.keys(rows[0] ?? {}),
    rows.map((row) => Object.values(row)),
  );
  await transaction.insert(
    queue,
    ["endpoint", "at", "delivery"],
    rows.map(({ endpoint, queued_at }, index) => [endpoint, queued_at, positions[index] ?? 0]),
  );
}

/** A waiting delivery, and when it is attempted in addition to its schedule. */
interface ExtraAttempt {
  row: DeliveryRow;
  at: number;
}

/** Has waiting deliveries attempted in addition to their schedule. */
export async function requestExtra(
  transaction: SqlTransaction,
  extras: ExtraAttempt[],
  now: number,
): Promise<void> {
  const columns = ["endpoint", "at", "delivery"];
  const places = extras.map(({ row, at }) => getQueuePlace({ ...row, extra_at: at }, now));
  await transaction.update(
    deliveries,
    ["position"],
    ["extra_at", "queued_at"],
    extras.map(({ row, at }, index) => [row.position, at, places[index] ?? at]),
  );
  await transaction.remove(
    queue,
    columns,
    extras.map(({ row }) => [row.endpoint, row.queued_at, row.position]),
  );
  await transaction.insert(
    queue,
    columns,
    extras.map(({ row }, index) => [row.endpoint, places[index] ?? 0, row.position]),
  );
}

/** Returns the attempts of a delivery, as they are stored, with one more. */
export function addAttempt(attempts: string, attempt: Attempt): string {
  const line = encodeStoredText(JSON.stringify(attempt));
  if (attempts === "") return line;
  return [...attempts.split("\n"), line].slice(-MAX_ATTEMPTS).join("\n");
}

/** Returns the last attempt of an endpoint, as it is stored. */
export const encodeLastAttempt = (attempt: Attempt): string => JSON.stringify({ ...attempt, excerpt: null });

/** Returns the tags of an event; an empty list if it has none. */
export const decodeTags = (tags: string | null): string[] =>
  tags === null ? [] : (JSON.parse(tags) as string[]).map(decodeStoredText);

/** Returns an event from its texts. */
export function decodeEventRow(id: string, account: string, row: EventTexts): EventRecord {
  const type = decodeStoredText(row.type);
  const digest = decodeStoredText(row.digest);
  const payload = decodeStoredText(row.payload ?? "");
  if (row.subject === null && row.tags === null) return { id, account, type, digest, payload };
  return {
    id,
    account,
    type,
    digest,
    payload,
    ...(row.subject !== null && { subject: decodeStoredText(row.subject) }),
    ...(row.tags !== null && { tags: decodeTags(row.tags) }),
  };
}

/** Returns the id of a delivery from the ids of its webhook and its event. */
export const toDeliveryId = (webhookId: string, eventId: string, serial: number): string =>
  formatDeliveryId({ webhookId, eventId, serial });
