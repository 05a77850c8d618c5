/**
 * Appends events. It only inserts rows and locks none, so an event can be written in a transaction
 * of the host, however long that lasts.
 */

import { PostbellError } from "../../src/core/errors.js";
import { subscribes } from "../../src/webhooks/event-types/subscription.js";
import type { EventRecord, WebhookStore } from "../../src/webhooks/store.js";
import { Changes } from "./changes.js";
import type { SqlTransaction } from "./database.js";
import { addDeliveries, type NewDelivery, toDeliveryId } from "./delivery-rows.js";
import { remember } from "./remembered-ids.js";
import type { SqlStoreContext } from "./store-context.js";
import { encodeText } from "./text.js";
import { decodeEventTypes } from "./webhook-rows.js";
import { bodies, completed, events } from "./webhook-tables.js";

export type AppendRequest = Parameters<WebhookStore["append"]>[0];
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

const RECEIVERS = `SELECT w.account, w.id, w.position, w.event_types, e.status, e.pending
  FROM {webhooks} w JOIN {endpoints} e ON e.position = w.position WHERE w.account = $1 ORDER BY w.position`;

interface ReceiverRow {
  readonly account: string;
  readonly id: string;
  readonly position: number;
  readonly event_types: string | null;
  readonly status: string;
  readonly pending: number;
}

/** An account, as the events of one batch see it. */
interface Account {
  readonly webhooks: readonly (ReceiverRow & { readonly types: readonly string[] | null })[];
  pending: number;
}

/** An event that is new, with the webhooks that get it. */
interface Planned {
  readonly request: AppendRequest;
  readonly receivers: readonly ReceiverRow[];
  readonly isKept: boolean;
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
  digest === encodeText(event.digest)
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

async function readAccounts(
  transaction: SqlTransaction,
  requests: readonly AppendRequest[],
): Promise<ReadonlyMap<string, Account>> {
  const names = [...new Set(requests.map(({ event }) => event.account))];
  const rows = await transaction.forEach<ReceiverRow>(
    RECEIVERS,
    ["text"],
    names.map((name) => [name]),
  );
  const accounts = new Map(
    names.map((name) => [name, { webhooks: [] as Account["webhooks"][number][], pending: 0 }]),
  );
  for (const row of rows) {
    const account = accounts.get(row.account);
    account?.webhooks.push({ ...row, types: decodeEventTypes(row.event_types) });
    if (account) account.pending += row.pending;
  }
  return accounts;
}

/** Decides which webhooks get an event, and if the event is kept. */
function plan(
  request: AppendRequest,
  account: Account | undefined,
  { retention, pendingPerAccount }: SqlStoreContext,
): Planned | PostbellError {
  const { event, webhookId } = request;
  const receivers = (account?.webhooks ?? []).filter(
    ({ status, types, id }) =>
      status === "ENABLED" && (webhookId === undefined ? subscribes(types, event.type) : id === webhookId),
  );
  if (account !== undefined && account.pending + receivers.length > pendingPerAccount) {
    return new PostbellError(
      "storage_full",
      `The account has reached limits.pendingPerAccount (${pendingPerAccount}); nothing was stored. Raise it, or try again later.`,
      { field: "limits.pendingPerAccount" },
    );
  }
  if (account !== undefined) account.pending += receivers.length;
  // An event without receivers is stored only if a webhook may recover it later.
  const isRecoverable = webhookId === undefined && retention.ms > 0 && (account?.webhooks.length ?? 0) > 0;
  return { request, receivers, isKept: receivers.length > 0 || isRecoverable };
}

const listReceiverIds = ({ receivers }: Planned): string => JSON.stringify(receivers.map(({ id }) => id));

/** Inserts events. Returns their positions; none for one that another process has just inserted. */
const insertEvents = (
  transaction: SqlTransaction,
  planned: readonly Planned[],
): Promise<readonly (number | undefined)[]> =>
  transaction.insertNumbered(
    events,
    [
      ...["account", "id", "type", "subject", "digest", "bytes", "stored_at", "remember_until"],
      ...["receivers", "is_test", "open"],
    ],
    planned.map((own) => {
      const { event, now, rememberMs, webhookId } = own.request;
      const { account, id, type, subject = null, digest, payload } = event;
      return [
        ...[
          account,
          id,
          type,
          subject,
          encodeText(digest),
          Buffer.byteLength(payload),
          now,
          now + rememberMs,
        ],
        ...[listReceiverIds(own), webhookId === undefined ? 0 : 1, own.receivers.length],
      ];
    }),
    ["account", "id"],
  );

/** Remembers the ids of events that are not kept. */
const rememberIds = (transaction: SqlTransaction, planned: readonly Planned[]): Promise<void> =>
  remember(
    transaction,
    planned.map((own) => {
      const { event, now, rememberMs } = own.request;
      const { account, id, digest } = event;
      return {
        ...{ account, id, digest: encodeText(digest), receivers: listReceiverIds(own) },
        expires_at: now + rememberMs,
      };
    }),
  );

/** Stores events that are kept. Returns those that another process stored first. */
async function storeKept(
  transaction: SqlTransaction,
  planned: readonly Planned[],
): Promise<readonly Planned[]> {
  const positions = await insertEvents(transaction, planned);
  const stored = planned.flatMap((own, index) => {
    const position = positions[index];
    return position === undefined ? [] : [{ ...own, position }];
  });
  await transaction.insert(
    bodies,
    ["event", "payload"],
    stored.map(({ position, request }) => [position, encodeText(request.event.payload)]),
  );
  const now = planned[0]?.request.now ?? 0;
  const added = stored.flatMap(({ position, receivers }) =>
    receivers.map(
      (webhook): NewDelivery => ({ endpoint: webhook.position, event: position, serial: 0, dueAt: now }),
    ),
  );
  await addDeliveries(transaction, added, now);
  await transaction.insert(
    completed,
    ["event", "account", "ended_at"],
    stored
      .filter(({ receivers }) => receivers.length === 0)
      .map(({ position, request }) => [position, request.event.account, now]),
  );
  const counted = new Changes();
  for (const { endpoint } of added) counted.add(endpoint, "pending", 1);
  for (const { request } of stored) counted.addTotals(1, Buffer.byteLength(request.event.payload));
  await counted.save(transaction);
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
  const seen = new Map<string, Planned>();
  const results = requests.map((request) => {
    const key = toKey(request.event);
    const stored = known.get(key);
    if (stored !== undefined) return toKnownResult(request, stored);
    const same = seen.get(key);
    if (same !== undefined) {
      const { digest, account, id } = same.request.event;
      const receivers = listReceiverIds(same);
      return toKnownResult(request, { account, id, digest: encodeText(digest), receivers });
    }
    const planned = plan(request, accounts.get(request.event.account), context);
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
