/** The webhook store on SQL, put together from its parts. */

import { LRUCache } from "lru-cache";
import { PostbellError } from "../../src/core/errors.js";
import type { ClaimRequest, Storage, WebhookStore } from "../../src/webhooks/store.js";
import { type Batcher, createBatcher } from "../batcher.js";
import { encodeAccount } from "../stored-text.js";
import { type AppendResult, appendAll } from "./append.js";
import type { AppendRequest } from "./append-plan.js";
import { type ClaimAttempt, leaseDue } from "./claim.js";
import { createClaimedDeliveries, forgetClaimed } from "./claimed-deliveries.js";
import { createSqlDeliveryLog } from "./delivery-log.js";
import { createSqlHealthNotifications } from "./health-notifications.js";
import { recover } from "./recover.js";
import { createSqlRegistry } from "./registry.js";
import { resend } from "./resend.js";
import { recordSettlements } from "./settle.js";
import { noteWake, type SqlStoreContext, writeAndWake } from "./store-context.js";
import { readStoreStats } from "./store-stats.js";
import { createTidier, type Tidier } from "./tidier.js";
import { createWebhookCache } from "./webhook-cache.js";

/** The most events of one transaction, and the most bytes. */
const MOST_APPENDED = 200;
const MOST_APPENDED_BYTES = 4_000_000;

/** The most accounts whose webhooks a process keeps. */
const MOST_ACCOUNTS = 2_000;

export interface SqlStoreOptions {
  /** The most concurrent appends, each in a transaction of its own. */
  readonly concurrency: number;
  readonly maxSleepMs: number;
  readonly now: () => number;
  readonly watch: WebhookStore["watch"];
}

const hasDeliveries = (result: AppendResult | PostbellError | undefined): boolean =>
  result !== undefined && "deliveries" in result && result.deliveries.length > 0;

/** Appends events in transactions of the host: those of one transaction together. */
function createJoinedAppender(context: SqlStoreContext) {
  const batchers = new WeakMap<object, Batcher<AppendRequest, AppendResult | PostbellError>>();
  const { database } = context;
  const createOwn = (connection: object) =>
    createBatcher<AppendRequest, AppendResult | PostbellError>({
      run: async (requests) => {
        if (database.join === undefined) throw new TypeError("the database joins no transactions");
        return database.join(connection, (transaction) => appendAll(transaction, requests, context));
      },
      most: MOST_APPENDED,
      concurrency: 1,
    });
  return (connection: object, request: AppendRequest) => {
    const batcher = batchers.get(connection) ?? createOwn(connection);
    batchers.set(connection, batcher);
    return batcher.add(request);
  };
}

/** Appends events that are emitted at about the same time in one transaction. */
function createAppender(
  context: SqlStoreContext,
  tidier: Tidier,
  concurrency: number,
): WebhookStore["append"] {
  const batcher = createBatcher<AppendRequest, AppendResult | PostbellError>({
    run: async (requests) => {
      const results = await writeAndWake(context, async (transaction, after) => {
        const appended = await appendAll(transaction, requests, context);
        if (appended.some(hasDeliveries)) noteWake(after, requests[0]?.now ?? 0);
        return appended;
      });
      // An event that no webhook receives is completed at once.
      const completed = requests.filter((_, index) => !hasDeliveries(results[index]));
      tidier.noteCompleted(completed.map(({ event }) => event.account));
      return results;
    },
    most: MOST_APPENDED,
    concurrency,
    getBytes: ({ event }) => event.payload.length,
    mostBytes: MOST_APPENDED_BYTES,
  });
  const joined = createJoinedAppender(context);
  return async (request) => {
    // The caller may change its event while it waits for its turn.
    const copy = { ...request, event: encodeAccount(request.event) };
    const result = await (copy.transaction === undefined
      ? batcher.add(copy)
      : joined(copy.transaction, copy));
    if (result instanceof PostbellError) throw result;
    return result;
  };
}

/** How often a claim is tried that finds the locks of all endpoints taken. */
const MOST_TRIES = 5;

async function claimOnce(
  context: SqlStoreContext,
  request: ClaimRequest,
  isWaiting: boolean,
): Promise<ClaimAttempt> {
  const respond = await writeAndWake(
    context,
    (transaction, after) => leaseDue(transaction, request, { context, after, isWaiting }),
    // A lost lease has its deliveries claimed again, as if the process had died.
    { isDurable: false },
  );
  return respond();
}

export function createSqlWebhookStore(
  settings: Omit<SqlStoreContext, "webhookCache" | "receivers" | "claimed">,
  { concurrency, maxSleepMs, now, watch }: SqlStoreOptions,
): ReturnType<Storage["webhooks"]> {
  const context: SqlStoreContext = {
    ...settings,
    webhookCache: createWebhookCache(settings),
    receivers: new LRUCache({ max: MOST_ACCOUNTS }),
    claimed: createClaimedDeliveries(),
  };
  const { database, perEndpoint } = context;
  const tidier = createTidier(context);
  const registry = createSqlRegistry(context);
  return Object.freeze<WebhookStore>({
    maxSleepMs,
    now,
    watch,
    joinsTransactions: database.join !== undefined,
    partitionOf: () => 0,
    ...registry,
    async removeWebhook(request) {
      const isRemoved = await registry.removeWebhook(request);
      if (isRemoved) tidier.noteRemoved();
      return isRemoved;
    },
    ...createSqlHealthNotifications(context),
    ...createSqlDeliveryLog(context),
    append: createAppender(context, tidier, concurrency),
    async claim(request) {
      await tidier.tidy(request.now);
      for (let tries = 1; ; tries++) {
        const { response, isLocked } = await claimOnce(context, request, tries > 1);
        // A caller must not take what others have locked for nothing that is due.
        if (!isLocked || tries === MOST_TRIES) return response;
      }
    },
    async settle(given) {
      if (given.length === 0) return [];
      const settlements = given.map(encodeAccount);
      const results = await writeAndWake(context, (transaction, after) =>
        recordSettlements(transaction, settlements, { context, after }),
      );
      forgetClaimed(context.claimed, settlements);
      const completed = settlements.filter(({ outcome }) => outcome.state !== "pending");
      tidier.noteCompleted(completed.map(({ account }) => account));
      return results;
    },
    resend: (request) =>
      writeAndWake(context, (transaction, after) =>
        resend(transaction, encodeAccount(request), { context, after }),
      ),
    recover: (request) =>
      writeAndWake(context, (transaction, after) =>
        recover(transaction, encodeAccount(request), { context, after }),
      ),
    stats: () => database.read((transaction) => readStoreStats(transaction, now(), perEndpoint)),
  });
}
