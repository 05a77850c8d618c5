/** Appends events that are emitted at about the same time in one transaction, or in the host's. */

import { isPostbellError, PostbellError } from "../../src/core/errors.js";
import { retry } from "../../src/core/retry.js";
import type { AppendRequest, AppendResult, WebhookStore } from "../../src/webhooks/store.js";
import { type Batcher, createBatcher } from "../batcher.js";
import { encodeAccount } from "../stored-text.js";
import { type AppendEntry, appendEvents, type ItemResult, isNotStored } from "./append-events.js";
import { noteWake, type SqlStoreContext, writeAndWake } from "./store-context.js";
import type { Tidier } from "./tidier.js";

/** The most events of one transaction, and the most bytes. */
const MAX_APPENDED = 200;
const MAX_APPENDED_BYTES = 4_000_000;

const hasDeliveries = (result: ItemResult): boolean =>
  result !== undefined && "deliveries" in result && result.deliveries.length > 0;

/** Splits the results of flattened lists by list again, without those that were not tried. */
function regroup(lists: readonly AppendEntry[][], results: ItemResult[]): AppendResult[][] {
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
  const batchers = new WeakMap<object, Batcher<AppendEntry[], AppendResult[]>>();
  const { database } = context;
  const createJoined = (connection: object) =>
    createBatcher<AppendEntry[], AppendResult[]>({
      run: async (lists) => {
        if (database.join === undefined) throw new TypeError("the database joins no transactions");
        const items = lists.flat();
        return database.join(connection, async (transaction) => {
          const results = await appendEvents(transaction, items, context);
          if (isOutOfOrder(items, results)) throw crossed();
          return regroup(lists, results);
        });
      },
      maxItems: MAX_APPENDED,
      getCount: ({ length }) => length,
      concurrency: 1,
    });
  return (connection: object, list: AppendEntry[]) => {
    const batcher = batchers.get(connection) ?? createJoined(connection);
    batchers.set(connection, batcher);
    return batcher.add(list);
  };
}

/** Splits the events of a request into lists that fit in a transaction each. */
function splitRequest({
  events,
  rememberMs,
  now,
  webhookId,
  createFilterTest,
}: AppendRequest): AppendEntry[][] {
  const lists: AppendEntry[][] = [];
  let bytes = 0;
  for (const emitted of events) {
    // The caller may change its event while it waits for its turn.
    const event = encodeAccount(emitted);
    const list = lists.at(-1);
    bytes += event.payload.length;
    const isFull = list === undefined || list.length === MAX_APPENDED || bytes > MAX_APPENDED_BYTES;
    const item = { event, rememberMs, now, webhookId, createFilterTest, follows: !isFull };
    if (!isFull) list.push(item);
    else {
      lists.push([item]);
      bytes = event.payload.length;
    }
  }
  return lists;
}

/** How often a list is appended whose events other processes store at the same time. */
const MAX_TRIES = 5;

/** Thrown to undo a transaction: another process has stored an event of a list first. */
class StoredOutOfOrder extends Error {}

/** True if an item was stored that follows one that was not. */
const isOutOfOrder = (items: AppendEntry[], results: ItemResult[]): boolean =>
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
  const appendOnce = (items: AppendEntry[]): Promise<ItemResult[]> =>
    writeAndWake(context, async (transaction, after) => {
      const appended = await appendEvents(transaction, items, context);
      if (isOutOfOrder(items, appended)) throw new StoredOutOfOrder();
      if (appended.some(hasDeliveries)) noteWake(after, items[0]?.now ?? 0);
      return appended;
    });
  const appendItems = (items: AppendEntry[]): Promise<ItemResult[]> =>
    retry(() => appendOnce(items), {
      clock: context.clock,
      retries: MAX_TRIES - 1,
      shouldRetry: (error) => error instanceof StoredOutOfOrder,
      pauseMs: () => 0,
    });
  const batcher = createBatcher<AppendEntry[], AppendResult[]>({
    run: async (lists) => {
      const items = lists.flat();
      const results = await appendItems(items);
      // An event that no webhook receives is completed at once.
      const completed = items.filter((_, index) => !hasDeliveries(results[index]));
      tidier.noteCompleted(completed.map(({ event }) => event.account));
      return regroup(lists, results);
    },
    maxItems: MAX_APPENDED,
    concurrency,
    getCount: ({ length }) => length,
    getBytes: (list) => list.reduce((sum, { event }) => sum + event.payload.length, 0),
    maxBytes: MAX_APPENDED_BYTES,
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
