/** Creates deliveries of events that a webhook missed. */

import { subscribes } from "../../src/webhooks/event-types/subscription.js";
import type { WebhookStore } from "../../src/webhooks/store.js";
import { validateCursor } from "../cursor.js";
import { decodeStoredText } from "../stored-text.js";
import { reopenEvents } from "./completed-events.js";
import type { SqlTransaction } from "./database.js";
import { addDeliveries, type NewDelivery } from "./delivery-rows.js";
import type { EndpointRow } from "./endpoint-row.js";
import { lockEndpoint, offerAndSave } from "./endpoint-rows.js";
import type { AfterCommit, SqlStoreContext } from "./store-context.js";
import { decodeEventTypes } from "./webhook-rows.js";

type RecoverRequest = Parameters<WebhookStore["recover"]>[0];
type RecoverResult = Awaited<ReturnType<WebhookStore["recover"]>>;

/** The most events that one call examines. */
const MOST_EXAMINED = 500;

/** The most later deliveries that one call examines: an event may have a hundred to a webhook. */
const MOST_DELIVERIES = 1_000;

/** The time and the position of the last event of the page before. */
const CURSOR = /^[0-9]{1,15}\.[0-9]{1,15}$/;

interface ExaminedRow {
  readonly position: number;
  readonly stored_at: number;
  readonly type: string;
  readonly is_test: number;
}

/** The deliveries of an event to the webhook: how many, how many that did not fail, the last. */
interface StandingRow {
  readonly event: number;
  readonly count: number;
  readonly others: number;
  readonly last: number | null;
}

const STANDING = `SELECT $2 AS event, count(*) AS count, coalesce(sum(CASE WHEN state = 'failed' THEN 0 ELSE 1 END), 0) AS others, max(serial) AS last
  FROM (SELECT state, serial FROM {deliveries} WHERE event = $2 AND endpoint = $1 ORDER BY serial DESC LIMIT ${MOST_DELIVERIES}) AS own`;

async function readExamined(
  transaction: SqlTransaction,
  { account, since, cursor, limit }: RecoverRequest,
): Promise<{ readonly rows: readonly ExaminedRow[]; readonly isMore: boolean }> {
  const [at = 0, position = 0] = (validateCursor(cursor, CURSOR) || "0.0").split(".").map(Number);
  const most = Math.min(limit, MOST_EXAMINED);
  const rows = await transaction.all<ExaminedRow>(
    `SELECT position, stored_at, type, is_test FROM {events}
      WHERE account = $1 AND stored_at >= $2 AND (stored_at, position) > ($3, $4) ORDER BY stored_at, position LIMIT $5`,
    [account, since, at, position, most + 1],
  );
  return { rows: rows.slice(0, most), isMore: rows.length > most };
}

/** Selects the first events that together have no more than {@link MOST_DELIVERIES}. */
function takeWithinBudget(standings: readonly StandingRow[]): number {
  let left = MOST_DELIVERIES;
  const full = standings.findIndex(({ count }) => {
    left -= Number(count);
    return left <= 0;
  });
  return full < 0 ? standings.length : full + 1;
}

async function addMissed(
  transaction: SqlTransaction,
  missed: readonly StandingRow[],
  endpoint: EndpointRow,
  { dueAt, everyMs, now }: RecoverRequest,
): Promise<number> {
  const stored = await reopenEvents(
    transaction,
    missed.map(({ event }) => Number(event)),
  );
  const added = missed
    .filter(({ event }) => stored.has(Number(event)))
    .map(
      ({ event, last }, index): NewDelivery => ({
        endpoint: endpoint.position,
        event: Number(event),
        serial: last === null ? 0 : Number(last) + 1,
        dueAt: dueAt + index * everyMs,
      }),
    );
  await addDeliveries(transaction, added, now);
  endpoint.pending += added.length;
  return added.length;
}

export async function recover(
  transaction: SqlTransaction,
  request: RecoverRequest,
  { context, after }: { readonly context: SqlStoreContext; readonly after: AfterCommit },
): Promise<RecoverResult> {
  const { webhookId, account, now } = request;
  const locked = await lockEndpoint(transaction, { id: webhookId, account });
  const [webhook] = locked
    ? await transaction.all<{ event_types: string | null }>(
        "SELECT event_types FROM {webhooks} WHERE position = $1",
        [locked.position],
      )
    : [];
  if (locked === undefined || webhook === undefined) return undefined;
  const endpoint = { ...locked };
  const types = decodeEventTypes(webhook.event_types);
  const { rows, isMore } = await readExamined(transaction, request);
  const standings = await transaction.forEach<StandingRow>(
    STANDING,
    ["int", "int"],
    rows.map(({ position }) => [endpoint.position, position]),
  );
  const taken = takeWithinBudget(standings);
  const missed = standings.filter((standing, index) => {
    const row = rows[index];
    if (row === undefined || index >= taken || row.is_test === 1) return false;
    return Number(standing.others) === 0 && subscribes(types, decodeStoredText(row.type));
  });
  const count = await addMissed(transaction, missed, endpoint, request);
  if (count > 0) await offerAndSave(transaction, [endpoint], { context, now, after });
  const last = rows[taken - 1];
  const next = (isMore || taken < rows.length) && last ? `${last.stored_at}.${last.position}` : null;
  return { count, examined: taken, next };
}
