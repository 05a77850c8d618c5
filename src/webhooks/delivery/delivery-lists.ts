/**
 * Lists deliveries that no single call of a storage lists: those of one event, and those of all
 * webhooks of an account.
 */

import { PostbellError } from "../../core/errors.js";
import { invalidField } from "../call-arguments.js";
import { formatDeliveryId } from "../store/records.js";
import type { DeliveryRecord, WebhookRecord, WebhookStore } from "../store.js";

type StoreQuery = Parameters<WebhookStore["listDeliveries"]>[0];

/** The deliveries to list. Each webhook's log is read from {@link getLogStart} on. */
export type LogQuery = Omit<StoreQuery, "webhookId">;

/** A page of a list, newest first. */
export interface LogPage {
  rows: LogRow[];
  next: string | null;
}

export interface LogRow {
  delivery: DeliveryRecord;
  webhook: WebhookRecord;
}

/** The most that the clocks of two processes on one storage may differ. */
export const CLOCK_SKEW_MS = 60_000;

/**
 * Returns the time from which a log is read. It begins with the registration of its webhook:
 * earlier events of the account need not be examined.
 */
function getLogStart({ createdAt }: WebhookRecord, since: number | undefined): number {
  const earliest = createdAt - CLOCK_SKEW_MS;
  return Math.max(since ?? earliest, earliest);
}

/** The most calls of the storage, or of a hook, that one list makes at the same time. */
const AT_ONCE = 20;

/** Reads something for each item in order, for some items at a time. */
export async function readEach<T, R>(
  items: readonly T[],
  read: (item: T) => Promise<R>,
  atOnce = AT_ONCE,
): Promise<R[]> {
  const found: R[] = [];
  for (let first = 0; first < items.length; first += atOnce)
    found.push(...(await Promise.all(items.slice(first, first + atOnce).map((item) => read(item)))));
  return found;
}

/** Deliveries of the same millisecond are listed in this order. */
const sortById = (webhooks: readonly WebhookRecord[]): WebhookRecord[] =>
  webhooks.toSorted((a, b) => (a.id < b.id ? -1 : 1));

const newestFirst = (a: LogRow, b: LogRow): number => b.delivery.createdAt - a.delivery.createdAt;

type LogReader = Pick<WebhookStore, "listDeliveries">;

/** Lists the deliveries of a single webhook, newest first. */
export async function listWebhookDeliveries(
  store: LogReader,
  [webhook]: readonly WebhookRecord[],
  query: LogQuery,
): Promise<LogPage> {
  if (webhook === undefined) return { rows: [], next: null };
  const since = getLogStart(webhook, query.since);
  const { deliveries, next } = await store.listDeliveries({ ...query, webhookId: webhook.id, since });
  return { rows: deliveries.map((delivery) => ({ delivery, webhook })), next };
}

// The deliveries of one event.

/** Deliveries that are read together. Most events have one. */
const READ_TOGETHER = 10;

/** The most deliveries of an event that are read: `recover` may create them without a limit. */
const MAX_READ = 200;

/** Reads the deliveries of an event, oldest first. Their serials count up without a gap. */
async function readAll(store: WebhookStore, webhookId: string, eventId: string): Promise<DeliveryRecord[]> {
  const found: DeliveryRecord[] = [];
  while (found.length < MAX_READ) {
    const ids = Array.from({ length: READ_TOGETHER }, (_, index) =>
      formatDeliveryId({ webhookId, eventId, serial: found.length + index }),
    );
    const records = await Promise.all(ids.map((id) => store.getDelivery(id)));
    const end = records.indexOf(undefined);
    found.push(...records.slice(0, end === -1 ? undefined : end).filter((record) => record !== undefined));
    if (end !== -1) break;
  }
  return found;
}

export const isWanted = (
  { state, type, createdAt }: DeliveryRecord,
  wanted: Pick<StoreQuery, "state" | "type" | "since" | "until">,
): boolean =>
  (wanted.state === undefined || state === wanted.state) &&
  (wanted.type === undefined || type === wanted.type) &&
  createdAt >= (wanted.since ?? Number.NEGATIVE_INFINITY) &&
  createdAt < (wanted.until ?? Number.POSITIVE_INFINITY);

/** Returns the webhooks that have a delivery of the event: most of an account have none. */
async function findReceivers(
  store: WebhookStore,
  eventId: string,
  webhooks: readonly WebhookRecord[],
): Promise<readonly WebhookRecord[]> {
  if (webhooks.length === 1) return webhooks;
  const firsts = await readEach(webhooks, ({ id: webhookId }) =>
    store.getDelivery(formatDeliveryId({ webhookId, eventId, serial: 0 })),
  );
  return webhooks.filter((_, index) => firsts[index] !== undefined);
}

/** Lists the deliveries of an event to some webhooks, newest first. */
export async function listEventDeliveries(
  store: WebhookStore,
  eventId: string,
  webhooks: readonly WebhookRecord[],
  { cursor = "0", limit, since, ...wanted }: LogQuery,
): Promise<LogPage> {
  // The cursor is the number of deliveries on the previous pages.
  if (!/^[0-9]{1,9}$/.test(cursor))
    throw invalidField("cursor", "cursor must be the `next` of the previous page.");
  const receivers = await findReceivers(store, eventId, sortById(webhooks));
  const readWanted = async (webhook: WebhookRecord): Promise<LogRow[]> => {
    const all = await readAll(store, webhook.id, eventId);
    return all
      .filter((delivery) => isWanted(delivery, { ...wanted, since: getLogStart(webhook, since) }))
      .reverse()
      .map((delivery) => ({ delivery, webhook }));
  };
  const matching = (await readEach(receivers, readWanted, AT_ONCE / READ_TOGETHER)).flat().sort(newestFirst);
  const end = Number(cursor) + limit;
  return {
    rows: matching.slice(Number(cursor), end),
    next: end < matching.length ? String(end) : null,
  };
}

// The deliveries of all webhooks of an account, without an index. A page reads the newest part of
// each log and merges what is certain: the deliveries created after the time that every part
// reaches. The next page begins at a time, in all logs. Only if the deliveries of one millisecond
// do not fit on a page, they are listed webhook by webhook.

/** Where a page begins. */
interface Place {
  /** It has deliveries that were created before this time. */
  before: number;
  /** Set within the last millisecond before `before`: the webhook that is listed next. */
  webhookId?: string | undefined;
  /** Where the storage continues in the log of that webhook. */
  cursor?: string | undefined;
}

/** `<time>`, or `<time>_<webhook>_<cursor of the storage>`. */
const CURSOR = /^([0-9]{1,15})(?:_([0-9a-f-]{36})_([\x21-\x7e]{0,200}))?$/;

const formatPlace = ({ before, webhookId, cursor = "" }: Place): string =>
  webhookId === undefined ? String(before) : `${before}_${webhookId}_${cursor}`;

/** @throws `invalid_argument` for a text that is not the cursor of such a page. */
function parsePlace(cursor: string | undefined): Place {
  if (cursor === undefined) return { before: Number.POSITIVE_INFINITY };
  const [, before, webhookId, inner] = (typeof cursor === "string" && CURSOR.exec(cursor)) || [];
  if (before !== undefined) return { before: Number(before), webhookId, cursor: inner || undefined };
  const message = "cursor must be the `next` of the previous page.";
  throw new PostbellError("invalid_argument", message, { field: "cursor" });
}

/** The newest part of a log. */
interface LogPart {
  rows: LogRow[];
  /** The part has everything that was created after this time. */
  reaches: number;
}

async function readPart(store: LogReader, webhook: WebhookRecord, query: LogQuery): Promise<LogPart> {
  let { cursor } = query;
  for (;;) {
    const { deliveries, next, examinedTo } = await store.listDeliveries({
      ...query,
      webhookId: webhook.id,
      since: getLogStart(webhook, query.since),
      cursor,
    });
    const rows = deliveries.map((delivery) => ({ delivery, webhook }));
    if (next === null) return { rows, reaches: Number.NEGATIVE_INFINITY };
    const reaches = examinedTo ?? deliveries.at(-1)?.createdAt;
    if (reaches !== undefined) return { rows, reaches };
    // A storage that does not say how far it got: it is asked until it finds a delivery.
    cursor = next;
  }
}

/** Lists the deliveries of one millisecond, by webhook, from the place on. */
async function listMillisecond(
  store: LogReader,
  webhooks: readonly WebhookRecord[],
  { before, webhookId = "", cursor }: Place,
  query: LogQuery,
): Promise<LogPage> {
  const rows: LogRow[] = [];
  const time = before - 1;
  const left = webhooks.filter(({ id }) => id >= webhookId);
  for (const [index, webhook] of left.entries()) {
    if (index === AT_ONCE || rows.length === query.limit)
      return { rows, next: formatPlace({ before, webhookId: webhook.id }) };
    const { deliveries, next } = await store.listDeliveries({
      ...query,
      webhookId: webhook.id,
      since: Math.max(time, getLogStart(webhook, query.since)),
      until: Math.min(before, query.until ?? before),
      cursor: webhook.id === webhookId ? cursor : undefined,
      limit: query.limit - rows.length,
    });
    rows.push(...deliveries.map((delivery) => ({ delivery, webhook })));
    if (next !== null) return { rows, next: formatPlace({ before, webhookId: webhook.id, cursor: next }) };
  }
  return { rows, next: time > 0 ? formatPlace({ before: time }) : null };
}

/** Returns how many of the rows fit on a page that does not end within a millisecond. */
function countWhole(rows: LogRow[], limit: number): number {
  if (rows.length <= limit) return rows.length;
  let count = limit;
  while (count > 0 && rows[count - 1]?.delivery.createdAt === rows[count]?.delivery.createdAt) count -= 1;
  return count;
}

/**
 * Lists the deliveries of an account, newest first, and those of one millisecond by webhook. A page
 * may be short or empty and still have a `next`.
 */
export async function listAccountDeliveries(
  store: LogReader,
  unsorted: readonly WebhookRecord[],
  { cursor, limit, ...filter }: LogQuery,
): Promise<LogPage> {
  const webhooks = sortById(unsorted);
  const place = parsePlace(cursor);
  const query = { ...filter, limit };
  if (place.webhookId !== undefined) return listMillisecond(store, webhooks, place, query);

  const before = Math.min(place.before, filter.until ?? Number.POSITIVE_INFINITY);
  const perWebhook = Math.min(limit, Math.max(10, Math.ceil((4 * limit) / webhooks.length)));
  const until = before === Number.POSITIVE_INFINITY ? undefined : before;
  const parts = await readEach(webhooks, (webhook) =>
    readPart(store, webhook, { ...filter, until, limit: perWebhook }),
  );
  const reached = parts.reduce((most, { reaches }) => Math.max(most, reaches), Number.NEGATIVE_INFINITY);
  const rows = parts.flatMap((part) => part.rows).sort(newestFirst);
  const certain = rows.filter(({ delivery }) => delivery.createdAt > reached);
  const count = countWhole(certain, limit);
  const following = certain[count];
  if (count > 0 && following !== undefined)
    return { rows: certain.slice(0, count), next: formatPlace({ before: following.delivery.createdAt + 1 }) };
  // More deliveries of one millisecond than fit on a page.
  if (following !== undefined) {
    const first = { before: following.delivery.createdAt + 1 };
    return listMillisecond(store, webhooks, first, query);
  }
  if (reached === Number.NEGATIVE_INFINITY) return { rows: certain, next: null };
  const rest = { before: reached + 1 };
  const isStuck =
    count === 0 && (rest.before >= before || rows.some(({ delivery }) => delivery.createdAt === reached));
  return isStuck ? listMillisecond(store, webhooks, rest, query) : { rows: certain, next: formatPlace(rest) };
}
