/**
 * Appends events. It only inserts rows and locks none, so an event can be written in a transaction
 * of the host, however long that lasts.
 */

import { isPostbellError, PostbellError } from "../../src/core/errors.js";
import { retry } from "../../src/core/retry.js";
import type { AppendRequest, AppendResult, WebhookStore } from "../../src/webhooks/store.js";
import { type Batcher, createBatcher } from "../batcher.js";
import { encodeAccount, encodeStoredText } from "../stored-text.js";
import {
  type AppendEntry,
  type AppendPlan,
  type AppendState,
  encodeReceivers,
  groupReceivers,
  type ItemResult,
  isNotStored,
  type PlannedEvent,
  planAll,
  toKey,
  toKnownResult,
} from "./append-plan.js";
import { remember } from "./completed-events.js";
import type { NewEvent, SqlTransaction, SqlValues } from "./database.js";
import {
  KNOWN,
  KNOWN_TYPES,
  type KnownRow,
  RECEIVERS,
  RECEIVERS_TYPES,
  type ReceiverRow,
} from "./database.js";
import { insertEvents } from "./new-events.js";
import { noteWake, type SqlStoreContext, writeAndWake } from "./store-context.js";
import type { Tidier } from "./tidier.js";

/** The most events of one transaction, and the most bytes. */
const MOST_APPENDED = 200;
const MOST_APPENDED_BYTES = 4_000_000;

const listKeys = (items: readonly AppendEntry[]): readonly SqlValues[] =>
  items.map(({ event, now }) => [event.account, event.id, now]);

const readKnown = (
  transaction: SqlTransaction,
  items: readonly AppendEntry[],
): Promise<readonly KnownRow[]> => transaction.forEach<KnownRow>(KNOWN, KNOWN_TYPES, listKeys(items));

const groupKnown = (rows: readonly KnownRow[]): ReadonlyMap<string, KnownRow> =>
  new Map(rows.map((row) => [toKey(row), row]));

const listAccounts = (items: readonly AppendEntry[]): readonly string[] => [
  ...new Set(items.map(({ event }) => event.account)),
];

/** Reads what is known of events, and the webhooks of their accounts. */
async function readForAppend(
  transaction: SqlTransaction,
  items: readonly AppendEntry[],
  { receivers: cache }: SqlStoreContext,
): Promise<AppendState> {
  const names = listAccounts(items);
  const lists = names.map((name) => [name]);
  const [known, receivers] = await Promise.all([
    readKnown(transaction, items),
    transaction.forEach<ReceiverRow>(RECEIVERS, RECEIVERS_TYPES, lists),
  ]);
  const accounts = groupReceivers(names, receivers);
  if (transaction.appendEvents !== undefined)
    for (const [name, { webhooks }] of accounts) cache.set(name, webhooks);
  return { known: groupKnown(known), accounts };
}

const toNewEvent = (own: PlannedEvent): NewEvent => {
  const { event, now, rememberMs, webhookId } = own.item;
  const { account, id, type, subject, digest, payload } = event;
  return {
    ...{ account, id },
    type: encodeStoredText(type),
    subject: subject === undefined ? null : encodeStoredText(subject),
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
      const { event, now, rememberMs } = own.item;
      const { account, id, digest } = event;
      return {
        ...{ account, id, digest: encodeStoredText(digest), receivers: encodeReceivers(own) },
        expires_at: now + rememberMs,
      };
    }),
  );

/** Returns the results of a plan. `late`: events that other processes have stored first. */
async function listResults(
  transaction: SqlTransaction,
  { items, results, accounts }: AppendPlan,
  late: readonly PlannedEvent[],
): Promise<AppendPlan["results"]> {
  if (late.length === 0) return results;
  const lost = late.map(({ item }) => item);
  const first = groupKnown(await readKnown(transaction, lost));
  return results.map((result, index) => {
    const item = items[index];
    const winner = item && lost.includes(item) ? first.get(toKey(item.event)) : undefined;
    return item && winner ? toKnownResult(item, winner, accounts) : result;
  });
}

const NOTHING_KNOWN: ReadonlyMap<string, KnownRow> = new Map();

/**
 * Appends events without reading first, as if nothing had changed since the webhooks of their
 * accounts were read. Returns `undefined`, and stores nothing, if that is not so.
 */
async function appendAssumed(
  transaction: SqlTransaction,
  items: readonly AppendEntry[],
  context: SqlStoreContext,
): Promise<AppendPlan["results"] | undefined> {
  const names = listAccounts(items);
  const rows = names.flatMap((name) => context.receivers.get(name) ?? []);
  if (transaction.appendEvents === undefined || names.some((name) => !context.receivers.has(name)))
    return undefined;
  const accounts = groupReceivers(
    names,
    rows.map((row) => ({ ...row, pending: 0 })),
  );
  const plan = planAll(items, { known: NOTHING_KNOWN, accounts }, context);
  const { planned, results } = plan;
  const isPlain =
    planned.every(({ isKept }) => isKept) &&
    !results.some((result) => result?.result === "refused" || result === undefined);
  if (!isPlain) return undefined;
  const assumed = [...accounts].map(([account, { webhooks, pending }]) => ({
    account,
    webhooks: webhooks.map(({ position, updated_at }) => `${position}:${updated_at}`).join(","),
    maxPending: context.pendingPerAccount - pending,
  }));
  const now = items[0]?.now ?? 0;
  const positions = await transaction.appendEvents(planned.map(toNewEvent), now, assumed);
  if (positions === undefined) return undefined;
  return listResults(
    transaction,
    plan,
    planned.filter((_, index) => positions[index] === undefined),
  );
}

/** Stores events that are kept. Returns those that another process stored first. */
async function storeKept(
  transaction: SqlTransaction,
  planned: readonly PlannedEvent[],
): Promise<readonly PlannedEvent[]> {
  if (planned.length === 0) return [];
  const now = planned[0]?.item.now ?? 0;
  const added = planned.map(toNewEvent);
  const positions =
    transaction.appendEvents === undefined
      ? await insertEvents(transaction, added, now)
      : await transaction.appendEvents(added, now);
  return planned.filter((_, index) => positions?.[index] === undefined);
}

/**
 * Appends events in one transaction. All have the same `now`. Returns what became of each,
 * `undefined` for one that was not tried.
 */
async function appendAll(
  transaction: SqlTransaction,
  items: readonly AppendEntry[],
  context: SqlStoreContext,
): Promise<AppendPlan["results"]> {
  const assumed = await appendAssumed(transaction, items, context);
  if (assumed !== undefined) return assumed;
  const plan = planAll(items, await readForAppend(transaction, items, context), context);
  await rememberIds(
    transaction,
    plan.planned.filter(({ isKept }) => !isKept),
  );
  const late = await storeKept(
    transaction,
    plan.planned.filter(({ isKept }) => isKept),
  );
  return listResults(transaction, plan, late);
}

const hasDeliveries = (result: ItemResult): boolean =>
  result !== undefined && "deliveries" in result && result.deliveries.length > 0;

/** Splits the results of flattened lists by list again, without those that were not tried. */
function regroup(
  lists: readonly (readonly unknown[])[],
  results: readonly ItemResult[],
): readonly (readonly AppendResult[])[] {
  let end = 0;
  return lists.map(({ length }) => {
    end += length;
    return results.slice(end - length, end).filter((result) => result !== undefined);
  });
}

/**
 * Appends events in transactions of the host: those of one transaction together. What another
 * process has crossed cannot be undone here, so the host is told to roll its transaction back.
 */
function createJoinedAppender(context: SqlStoreContext) {
  const batchers = new WeakMap<object, Batcher<readonly AppendEntry[], readonly AppendResult[]>>();
  const { database } = context;
  const createOwn = (connection: object) =>
    createBatcher<readonly AppendEntry[], readonly AppendResult[]>({
      run: async (lists) => {
        if (database.join === undefined) throw new TypeError("the database joins no transactions");
        const items = lists.flat();
        return database.join(connection, async (transaction) => {
          const results = await appendAll(transaction, items, context);
          if (isOutOfOrder(items, results)) throw crossed();
          return regroup(lists, results);
        });
      },
      most: MOST_APPENDED,
      getCount: ({ length }) => length,
      concurrency: 1,
    });
  return (connection: object, list: readonly AppendEntry[]) => {
    const batcher = batchers.get(connection) ?? createOwn(connection);
    batchers.set(connection, batcher);
    return batcher.add(list);
  };
}

/** Splits the events of a request into lists that fit in a transaction each. */
function splitRequest({ events, rememberMs, now, webhookId }: AppendRequest): readonly AppendEntry[][] {
  const lists: AppendEntry[][] = [];
  let bytes = 0;
  for (const given of events) {
    // The caller may change its event while it waits for its turn.
    const event = encodeAccount(given);
    const list = lists.at(-1);
    bytes += event.payload.length;
    const isFull = list === undefined || list.length === MOST_APPENDED || bytes > MOST_APPENDED_BYTES;
    const item = { event, rememberMs, now, webhookId, follows: !isFull };
    if (!isFull) list.push(item);
    else {
      lists.push([item]);
      bytes = event.payload.length;
    }
  }
  return lists;
}

/** How often a list is appended whose events other processes store at the same time. */
const MOST_APPENDS = 5;

/** Thrown to undo a transaction: another process has stored an event of a list first. */
class StoredOutOfOrder extends Error {}

/** True if an item was stored that follows one that was not. */
const isOutOfOrder = (items: readonly AppendEntry[], results: readonly ItemResult[]): boolean =>
  results.some(
    (result, index) => isNotStored(result) && items[index + 1]?.follows === true && results[index + 1],
  );

const crossed = (): PostbellError =>
  new PostbellError(
    "storage_unavailable",
    "Another process stored an event of the list at the same time. No event of the list may be kept: roll the transaction back, and run it again as a whole.",
    { field: "transaction", effect: "none" },
  );

/** Appends events that are emitted at about the same time in one transaction. */
export function createAppender(
  context: SqlStoreContext,
  tidier: Tidier,
  concurrency: number,
): WebhookStore["append"] {
  const appendOnce = (items: readonly AppendEntry[]): Promise<readonly ItemResult[]> =>
    writeAndWake(context, async (transaction, after) => {
      const appended = await appendAll(transaction, items, context);
      if (isOutOfOrder(items, appended)) throw new StoredOutOfOrder();
      if (appended.some(hasDeliveries)) noteWake(after, items[0]?.now ?? 0);
      return appended;
    });
  const appendItems = (items: readonly AppendEntry[]): Promise<readonly ItemResult[]> =>
    retry(() => appendOnce(items), {
      clock: context.clock,
      retries: MOST_APPENDS - 1,
      shouldRetry: (error) => error instanceof StoredOutOfOrder,
      pauseMs: () => 0,
    });
  const batcher = createBatcher<readonly AppendEntry[], readonly AppendResult[]>({
    run: async (lists) => {
      const items = lists.flat();
      const results = await appendItems(items);
      // An event that no webhook receives is completed at once.
      const completed = items.filter((_, index) => !hasDeliveries(results[index]));
      tidier.noteCompleted(completed.map(({ event }) => event.account));
      return regroup(lists, results);
    },
    most: MOST_APPENDED,
    concurrency,
    getCount: ({ length }) => length,
    getBytes: (list) => list.reduce((sum, { event }) => sum + event.payload.length, 0),
    mostBytes: MOST_APPENDED_BYTES,
  });
  const joined = createJoinedAppender(context);
  return async (request) => {
    const { transaction } = request;
    const results: AppendResult[] = [];
    for (const list of splitRequest(request)) {
      if (isNotStored(results.at(-1))) break;
      try {
        results.push(...(await (transaction === undefined ? batcher.add(list) : joined(transaction, list))));
      } catch (error) {
        // The lists before it are stored.
        if (results.length === 0 || !isPostbellError(error)) throw error;
        results.push({ result: "refused", error });
      }
    }
    return { results };
  };
}
