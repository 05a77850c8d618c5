/**
 * Appends events. It only inserts rows and locks none, so an event can be written in a transaction
 * of the host, however long that lasts.
 */

import { PostbellError } from "../../src/core/errors.js";
import type { EventRecord, WebhookStore } from "../../src/webhooks/store.js";
import {
  type AppendRequest,
  encodeReceivers,
  type PlannedEvent,
  planEvent,
  readAccounts,
} from "./append-plan.js";
import type { NewEvent, SqlTransaction } from "./database.js";
import { toDeliveryId } from "./delivery-rows.js";
import { insertEvents } from "./new-events.js";
import { remember } from "./remembered-ids.js";
import type { SqlStoreContext } from "./store-context.js";
import { encodeStoredText } from "./text.js";

export type AppendResult = Awaited<ReturnType<WebhookStore["append"]>>;

const KNOWN = `SELECT account, id, digest, receivers FROM {events} WHERE account = $1 AND id = $2
  UNION ALL
  SELECT account, id, digest, receivers FROM {remembered} WHERE account = $1 AND id = $2 AND expires_at > $3`;

interface KnownRow {
  readonly account: string;
  readonly id: string;
  readonly digest: string;
  readonly receivers: string;
}

const NUL = "\u0000";
const toKey = ({ account, id }: Pick<EventRecord, "account" | "id">): string => account + NUL + id;

const toResult = (
  result: "stored" | "duplicate",
  eventId: string,
  receivers: readonly string[],
): AppendResult => ({
  result,
  deliveries: receivers.map((webhookId) => ({ id: toDeliveryId(webhookId, eventId, 0), webhookId })),
});

const toKnownResult = ({ event }: AppendRequest, { digest, receivers }: KnownRow): AppendResult =>
  digest === encodeStoredText(event.digest)
    ? toResult("duplicate", event.id, JSON.parse(receivers) as string[])
    : { result: "conflict" };

async function readKnown(
  transaction: SqlTransaction,
  requests: readonly AppendRequest[],
): Promise<ReadonlyMap<string, KnownRow>> {
  const lists = requests.map(({ event, now }) => [event.account, event.id, now]);
  const rows = await transaction.forEach<KnownRow>(KNOWN, ["text", "text", "int"], lists);
  return new Map(rows.map((row) => [toKey(row), row]));
}

const toNewEvent = (own: PlannedEvent): NewEvent => {
  const { event, now, rememberMs, webhookId } = own.request;
  const { account, id, type, subject = null, digest, payload } = event;
  return {
    ...{ account, id, type, subject },
    digest: encodeStoredText(digest),
    payload: encodeStoredText(payload),
    bytes: Buffer.byteLength(payload),
    rememberUntil: now + rememberMs,
    receivers: encodeReceivers(own),
    isTest: webhookId !== undefined,
    endpoints: own.receivers.map(({ position }) => position),
  };
};

/** Remembers the ids of events that are not kept. */
const rememberIds = (transaction: SqlTransaction, planned: readonly PlannedEvent[]): Promise<void> =>
  remember(
    transaction,
    planned.map((own) => {
      const { event, now, rememberMs } = own.request;
      const { account, id, digest } = event;
      return {
        ...{ account, id, digest: encodeStoredText(digest), receivers: encodeReceivers(own) },
        expires_at: now + rememberMs,
      };
    }),
  );

/** Stores events that are kept. Returns those that another process stored first. */
async function storeKept(
  transaction: SqlTransaction,
  planned: readonly PlannedEvent[],
): Promise<readonly PlannedEvent[]> {
  if (planned.length === 0) return [];
  const now = planned[0]?.request.now ?? 0;
  const added = planned.map(toNewEvent);
  const positions =
    transaction.insertEvents === undefined
      ? await insertEvents(transaction, added, now)
      : await transaction.insertEvents(added, now);
  return planned.filter((_, index) => positions[index] === undefined);
}

/**
 * Appends events in one transaction. All have the same `now`. Returns a result for each, or the
 * error for an account that is full.
 */
export async function appendAll(
  transaction: SqlTransaction,
  requests: readonly AppendRequest[],
  context: SqlStoreContext,
): Promise<readonly (AppendResult | PostbellError)[]> {
  const [known, accounts] = await Promise.all([
    readKnown(transaction, requests),
    readAccounts(transaction, requests),
  ]);
  const seen = new Map<string, PlannedEvent>();
  const results = requests.map((request) => {
    const key = toKey(request.event);
    const stored = known.get(key);
    if (stored !== undefined) return toKnownResult(request, stored);
    const same = seen.get(key);
    if (same !== undefined) {
      const { digest, account, id } = same.request.event;
      const receivers = encodeReceivers(same);
      return toKnownResult(request, { account, id, digest: encodeStoredText(digest), receivers });
    }
    const planned = planEvent(request, accounts.get(request.event.account), context);
    if (planned instanceof PostbellError) return planned;
    seen.set(key, planned);
    return toResult(
      "stored",
      request.event.id,
      planned.receivers.map(({ id }) => id),
    );
  });
  const planned = [...seen.values()];
  await rememberIds(
    transaction,
    planned.filter(({ isKept }) => !isKept),
  );
  const late = await storeKept(
    transaction,
    planned.filter(({ isKept }) => isKept),
  );
  if (late.length === 0) return results;
  const first = await readKnown(
    transaction,
    late.map(({ request }) => request),
  );
  return results.map((result, index) => {
    const request = requests[index];
    const winner =
      request && late.some((own) => own.request === request) ? first.get(toKey(request.event)) : undefined;
    return request && winner ? toKnownResult(request, winner) : result;
  });
}
