/** Inserts events with everything that belongs to them. */

import { Changes } from "./changes.js";
import type { NewEvent, SqlTransaction } from "./database.js";
import { addDeliveries, type NewDelivery } from "./delivery-rows.js";
import { bodies, completed, events } from "./webhook-tables.js";

const COLUMNS = [
  ...["account", "id", "type", "subject", "digest", "bytes", "stored_at", "remember_until"],
  ...["receivers", "is_test", "deliveries"],
] as const;

/**
 * Inserts events, table by table. Returns the position of each; none for one whose id another
 * process has just stored.
 */
export async function insertEvents(
  transaction: SqlTransaction,
  added: readonly NewEvent[],
  now: number,
): Promise<readonly (number | undefined)[]> {
  const positions = await transaction.insertNumbered(
    events,
    COLUMNS,
    added.map((event) => [
      ...[event.account, event.id, event.type, event.subject, event.digest, event.bytes, now],
      ...[event.rememberUntil, event.receivers, event.isTest ? 1 : 0, event.endpoints.length],
    ]),
    ["account", "id"],
  );
  const stored = added.flatMap((event, index) => {
    const position = positions[index];
    return position === undefined ? [] : [{ ...event, position }];
  });
  await transaction.insert(
    bodies,
    ["event", "payload"],
    stored.map(({ position, payload }) => [position, payload]),
  );
  const deliveries = stored.flatMap(({ position, endpoints }) =>
    endpoints.map((endpoint): NewDelivery => ({ endpoint, event: position, serial: 0, dueAt: now })),
  );
  await addDeliveries(transaction, deliveries, now);
  await transaction.insert(
    completed,
    ["event", "account", "ended_at"],
    stored
      .filter(({ endpoints }) => endpoints.length === 0)
      .map(({ position, account }) => [position, account, now]),
  );
  const counted = new Changes();
  for (const { endpoint } of deliveries) counted.add(endpoint, "pending", 1);
  for (const { bytes } of stored) counted.addTotals(1, bytes);
  await counted.save(transaction);
  return positions;
}
