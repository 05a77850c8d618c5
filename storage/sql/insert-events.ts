/** Inserts events with their bodies, deliveries, tags and counts, table by table. */

import { findFreePlace } from "../queue/append.js";
import { Changes } from "./changes.js";
import type { NewEvent, SqlTransaction } from "./database.js";
import { addDeliveries, type NewDelivery } from "./delivery-rows.js";
import { bodies, completed, events, eventTags } from "./webhook-tables.js";

/**
 * Inserts events with everything that belongs to them, table by table. Returns the position of
 * each; `undefined` for one whose id another process has just stored. On Postgres,
 * `storage/postgres/functions/append_events.sql` does the same.
 */
export async function insertEvents(
  transaction: SqlTransaction,
  added: NewEvent[],
  now: number,
): Promise<(number | undefined)[]> {
  const rows = added.map((event) => ({
    account: event.account,
    id: event.id,
    type: event.type,
    subject: event.subject,
    tags: event.tags === null ? null : JSON.stringify(event.tags),
    digest: event.digest,
    bytes: event.bytes,
    stored_at: now,
    remember_until: event.rememberUntil,
    receivers: event.receivers,
    is_test: event.isTest ? 1 : 0,
    deliveries: event.endpoints.length,
    keep_ms: event.keepMs ?? null,
  }));
  const positions = await transaction.insertNumbered(
    events,
    Object.keys(rows[0] ?? {}),
    rows.map((row) => Object.values(row)),
    ["account", "id"],
  );
  const payloads: [event: number, payload: string][] = [];
  const tagged: [account: string, tag: string, event: number][] = [];
  const ended: [event: number, account: string, place: number][] = [];
  const deliveries: NewDelivery[] = [];
  const counted = new Changes();
  for (const [
    index,
    { account, payload, bytes, endpoints, tags, filtered = [], keepMs = null },
  ] of added.entries()) {
    const event = positions[index];
    if (event === undefined) continue;
    payloads.push([event, payload]);
    for (const tag of tags ?? []) tagged.push([account, tag, event]);
    counted.addTotals(1, bytes);
    if (endpoints.length === 0) ended.push([event, account, findFreePlace(now, keepMs)]);
    for (const endpoint of endpoints) {
      deliveries.push({ endpoint, event, serial: 0, dueAt: now });
      counted.add(endpoint, "pending", 1);
    }
    for (const endpoint of filtered) counted.add(endpoint, "filtered", 1);
  }
  await transaction.insert(bodies, ["event", "payload"], payloads);
  await transaction.insert(eventTags, ["account", "tag", "event"], tagged);
  await addDeliveries(transaction, deliveries, now);
  await transaction.insert(completed, ["event", "account", "place"], ended);
  await counted.save(transaction);
  return positions;
}
