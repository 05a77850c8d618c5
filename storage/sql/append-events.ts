/**
 * Appends events in a transaction: decides which webhooks get each, and inserts them. It locks no
 * row, so an event can be written in a transaction of the host, however long that lasts.
 */

import { PostbellError } from "../../src/core/errors.js";
import type { AppendRequest, AppendResult, EventToAppend, WebhookStatus } from "../../src/webhooks/store.js";
import { applyFilters, compareKnown, type FilteredReceivers, isKept, receives } from "../queue/append.js";
import { encodeStoredText } from "../stored-text.js";
import { Changes } from "./changes.js";
import { remember } from "./completed-events.js";
import type { NewEvent, SqlTransaction } from "./database.js";
import { toDeliveryId } from "./delivery-rows.js";
import { insertEvents } from "./insert-events.js";
import type { AccountWebhook, SqlStoreContext } from "./store-context.js";
import { decodeEventTypes, parseFilter } from "./webhook-rows.js";

/** An event that waits to be stored. */
export interface AppendEntry
  extends Pick<AppendRequest, "rememberMs" | "now" | "webhookId" | "createFilterTest"> {
  /** With its account as it is stored. */
  event: EventToAppend;
  /** True if it is stored only if the item before it was. */
  follows: boolean;
}

/** The result for an item. `undefined`: it follows one that was not stored, and was not tried. */
export type ItemResult = AppendResult | undefined;

export const isNotStored = (result: ItemResult): boolean => result !== undefined && !("deliveries" in result);

/** An event that is stored or remembered. */
interface KnownEvent {
  account: string;
  id: string;
  digest: string;
  /** A JSON list of the ids of the webhooks that got it. */
  receivers: string;
}

const KNOWN = `SELECT account, id, digest, receivers FROM {events} WHERE account = $1 AND id = $2
  UNION ALL
  SELECT account, id, digest, receivers FROM {remembered} WHERE account = $1 AND id = $2 AND expires_at > $3`;

const RECEIVERS = `SELECT w.account, w.id, w.position, w.event_types, w.filter, e.status, e.updated_at, e.pending
  FROM {webhooks} w JOIN {endpoints} e ON e.position = w.position WHERE w.account = $1 ORDER BY w.position`;

/** An account, as the events of one batch see it. */
interface Account {
  webhooks: readonly AccountWebhook[];
  pending: number;
}

const NUL = "\u0000";
const toKey = ({ account, id }: { account: string; id: string }): string => account + NUL + id;

async function readKnown(
  transaction: SqlTransaction,
  items: AppendEntry[],
): Promise<Map<string, KnownEvent>> {
  const rows = await transaction.forEach<KnownEvent>(
    KNOWN,
    ["text", "text", "int"],
    items.map(({ event, now }) => [event.account, event.id, now]),
  );
  return new Map(rows.map((row) => [toKey(row), row]));
}

const listAccounts = (items: AppendEntry[]): string[] => [
  ...new Set(items.map(({ event }) => event.account)),
];

/** Reads the webhooks of accounts. */
async function readAccounts(transaction: SqlTransaction, names: string[]): Promise<Map<string, Account>> {
  type Row = Omit<AccountWebhook, "types" | "filter"> & {
    account: string;
    event_types: string | null;
    filter: string | null;
    pending: number;
  };
  const rows = await transaction.forEach<Row>(
    RECEIVERS,
    ["text"],
    names.map((name) => [name]),
  );
  const accounts = new Map(names.map((name) => [name, { webhooks: [] as AccountWebhook[], pending: 0 }]));
  for (const row of rows) {
    const account = accounts.get(row.account);
    const { event_types, filter } = row;
    account?.webhooks.push({
      ...row,
      types: decodeEventTypes(event_types),
      filter: parseFilter(filter),
    });
    if (account) account.pending += row.pending;
  }
  return accounts;
}

/** An event that is new, with the webhooks that get it. */
interface PlannedEvent extends FilteredReceivers<AccountWebhook> {
  item: AppendEntry;
  isKept: boolean;
}

/** The results for items, and the events among them that are new. */
interface Plan {
  items: AppendEntry[];
  results: ItemResult[];
  planned: PlannedEvent[];
  accounts: Map<string, Account>;
}

const getFilter = ({ filter }: AccountWebhook) => filter;

/** Decides which webhooks get an event, and if the event is kept. */
function planEvent(
  item: AppendEntry,
  account: Account,
  { retention, pendingPerAccount }: SqlStoreContext,
): PlannedEvent | PostbellError {
  const { event, webhookId } = item;
  const subscribed = account.webhooks.filter(({ id, status, types: eventTypes }) =>
    receives({ id, status: status as WebhookStatus, eventTypes }, event.type, webhookId),
  );
  const { receivers, filtered } = applyFilters(subscribed, getFilter, event, item);
  if (account.pending + receivers.length > pendingPerAccount) {
    return new PostbellError(
      "storage_full",
      `The account has reached limits.pendingPerAccount (${pendingPerAccount}); nothing was stored. Raise it, or try again later.`,
      { field: "limits.pendingPerAccount" },
    );
  }
  account.pending += receivers.length;
  const appended = {
    isTest: webhookId !== undefined,
    receivers: receivers.length,
    webhooks: account.webhooks.length,
    retentionMs: event.keepMs ?? retention.keepMs,
  };
  return { item, receivers, filtered, isKept: isKept(appended) };
}

const encodeReceivers = ({ receivers }: PlannedEvent): string =>
  JSON.stringify(receivers.map(({ id }) => id));

function toKnownResult(
  { event }: AppendEntry,
  { digest, receivers }: Pick<KnownEvent, "digest" | "receivers">,
  account: Account | undefined,
): AppendResult {
  const result = compareKnown(digest, encodeStoredText(event.digest));
  if (result === "conflict") return { result };
  return toResult(result, event.id, JSON.parse(receivers) as string[], account);
}

const toResult = (
  result: "stored" | "duplicate",
  eventId: string,
  receivers: string[],
  account: Account | undefined,
): AppendResult => ({
  result,
  deliveries: receivers.map((webhookId) => ({ id: toDeliveryId(webhookId, eventId, 0), webhookId })),
  webhooks: account?.webhooks.length ?? 0,
});

function planAll(
  items: AppendEntry[],
  stored: Map<string, KnownEvent>,
  accounts: Map<string, Account>,
  context: SqlStoreContext,
): Plan {
  const planned = new Map<string, PlannedEvent>();
  const planItem = (item: AppendEntry): AppendResult => {
    const key = toKey(item.event);
    const account = accounts.get(item.event.account) ?? { webhooks: [], pending: 0 };
    const before = stored.get(key);
    if (before !== undefined) return toKnownResult(item, before, account);
    const same = planned.get(key);
    if (same !== undefined) {
      const digest = encodeStoredText(same.item.event.digest);
      return toKnownResult(item, { digest, receivers: encodeReceivers(same) }, account);
    }
    const event = planEvent(item, account, context);
    if (event instanceof PostbellError) return { result: "refused", error: event };
    planned.set(key, event);
    const receivers = event.receivers.map(({ id }) => id);
    return toResult("stored", item.event.id, receivers, account);
  };
  let hasStopped = false;
  const results = items.map((item) => {
    hasStopped &&= item.follows;
    if (hasStopped) return undefined;
    const result = planItem(item);
    hasStopped = isNotStored(result);
    return result;
  });
  return { items, results, planned: [...planned.values()], accounts };
}

function toNewEvent(planned: PlannedEvent): NewEvent {
  const { event, now, rememberMs, webhookId } = planned.item;
  return {
    account: event.account,
    id: event.id,
    type: encodeStoredText(event.type),
    subject: event.subject === undefined ? null : encodeStoredText(event.subject),
    tags: event.tags?.map(encodeStoredText) ?? null,
    digest: encodeStoredText(event.digest),
    payload: encodeStoredText(event.payload),
    bytes: Buffer.byteLength(event.payload),
    rememberUntil: now + rememberMs,
    receivers: encodeReceivers(planned),
    isTest: webhookId !== undefined,
    endpoints: planned.receivers.map(({ position }) => position),
    ...(event.keepMs !== undefined && { keepMs: event.keepMs }),
    ...(planned.filtered.length > 0 && { filtered: planned.filtered.map(({ position }) => position) }),
  };
}

/** Counts the events that filters refused and that are not stored. */
async function countFiltered(transaction: SqlTransaction, forgotten: PlannedEvent[]): Promise<void> {
  const counted = new Changes();
  for (const { filtered } of forgotten)
    for (const { position } of filtered) counted.add(position, "filtered", 1);
  await counted.save(transaction);
}

/** Returns the results of a plan. `late`: events that other processes have stored first. */
async function listResults(
  transaction: SqlTransaction,
  { items, results, accounts }: Plan,
  late: PlannedEvent[],
): Promise<ItemResult[]> {
  if (late.length === 0) return results;
  const lost = late.map(({ item }) => item);
  const first = await readKnown(transaction, lost);
  return results.map((result, index) => {
    const item = items[index];
    const winner = item && lost.includes(item) ? first.get(toKey(item.event)) : undefined;
    return item && winner ? toKnownResult(item, winner, accounts.get(item.event.account)) : result;
  });
}

/**
 * Appends events without reading first, as if nothing had changed since the webhooks of their
 * accounts were read. Returns `undefined`, and stores nothing, if that is not so.
 */
async function appendAssumed(
  transaction: SqlTransaction,
  items: AppendEntry[],
  context: SqlStoreContext,
): Promise<ItemResult[] | undefined> {
  if (transaction.appendEvents === undefined) return undefined;
  const accounts = new Map<string, Account>();
  for (const name of listAccounts(items)) {
    const webhooks = context.receivers.get(name);
    if (webhooks === undefined) return undefined;
    accounts.set(name, { webhooks, pending: 0 });
  }
  const plan = planAll(items, new Map(), accounts, context);
  const { planned, results } = plan;
  if (!planned.every((event) => event.isKept)) return undefined;
  if (results.some((result) => result === undefined || result.result === "refused")) return undefined;
  const assumed = [...accounts].map(([account, { webhooks, pending }]) => ({
    account,
    webhooks: webhooks.map(({ position, updated_at }) => `${position}:${updated_at}`).join(","),
    maxPending: context.pendingPerAccount - pending,
  }));
  const now = items[0]?.now ?? 0;
  const positions = await transaction.appendEvents(planned.map(toNewEvent), now, assumed);
  if (positions === undefined) return undefined;
  const late = planned.filter((_, index) => positions[index] === undefined);
  return listResults(transaction, plan, late);
}

/**
 * Appends events in one transaction. All have the same `now`. Returns what became of each,
 * `undefined` for one that was not tried.
 */
export async function appendEvents(
  transaction: SqlTransaction,
  items: AppendEntry[],
  context: SqlStoreContext,
): Promise<ItemResult[]> {
  const assumed = await appendAssumed(transaction, items, context);
  if (assumed !== undefined) return assumed;
  const [stored, accounts] = await Promise.all([
    readKnown(transaction, items),
    readAccounts(transaction, listAccounts(items)),
  ]);
  if (transaction.appendEvents !== undefined)
    for (const [name, { webhooks }] of accounts) context.receivers.set(name, webhooks);
  const plan = planAll(items, stored, accounts, context);
  const forgotten = plan.planned.filter((event) => !event.isKept);
  await countFiltered(transaction, forgotten);
  await remember(
    transaction,
    forgotten.map((event) => ({
      account: event.item.event.account,
      id: event.item.event.id,
      digest: encodeStoredText(event.item.event.digest),
      receivers: encodeReceivers(event),
      expires_at: event.item.now + event.item.rememberMs,
    })),
  );
  const added = plan.planned.filter((event) => event.isKept);
  if (added.length === 0) return plan.results;
  const now = items[0]?.now ?? 0;
  const rows = added.map(toNewEvent);
  const positions = await (transaction.appendEvents?.(rows, now) ?? insertEvents(transaction, rows, now));
  const late = added.filter((_, index) => positions?.[index] === undefined);
  return listResults(transaction, plan, late);
}
