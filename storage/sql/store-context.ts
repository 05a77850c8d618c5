/** The context that all parts of one webhook store on SQL share. */

import { LRUCache } from "lru-cache";
import type { Clock } from "../../src/core/clock.js";
import type { Logger } from "../../src/core/logger.js";
import type { EventFilter } from "../../src/webhooks/event-types/event-filter.js";
import type { Retention, Settlement } from "../../src/webhooks/store.js";
import type { Seal } from "../seal.js";
import type { SqlDatabase, SqlTransaction, TransactionOptions } from "./database.js";
import type { WebhookCache } from "./webhook-rows.js";
import type { DueRow } from "./webhook-tables.js";

export interface SqlStoreContext {
  database: SqlDatabase;
  seal: Seal;
  clock: Clock;
  logger: Logger;
  perEndpoint: number;
  /** `null` for any number. */
  perSecond: number | null;
  retention: Retention;
  pendingPerAccount: number;
  webhookCache: WebhookCache;
  /** The webhooks of accounts as they were lately. What is planned by them is checked again. */
  receivers: LRUCache<string, readonly AccountWebhook[]>;
  claimed: ClaimedDeliveries;
  /** Tells workers that deliveries or health steps may be due at `at`. */
  notifyWorkers: (at: number) => void;
}

/** A webhook of an account, as appends see it. */
export interface AccountWebhook {
  id: string;
  position: number;
  status: string;
  /** Grows with every change that decides who gets an event. */
  updated_at: number;
  /** `null`: every type. */
  types: readonly string[] | null;
  filter: EventFilter | null;
}

/** Gathers what to do after a commit. Each run of a transaction has one. */
export interface AfterCommit {
  /** When workers should claim: the earliest of all times that were noted. */
  wakeAt: number;
}

export function noteWake(after: AfterCommit, at: number): void {
  after.wakeAt = Math.min(after.wakeAt, at);
}

/** Runs `work` in a transaction, and then notifies the workers of what it has noted. */
export async function writeAndWake<T>(
  { database, notifyWorkers }: SqlStoreContext,
  work: (transaction: SqlTransaction, after: AfterCommit) => Promise<T>,
  options?: TransactionOptions,
): Promise<T> {
  let after: AfterCommit = { wakeAt: Number.POSITIVE_INFINITY };
  const result = await database.write((transaction) => {
    after = { wakeAt: Number.POSITIVE_INFINITY };
    return work(transaction, after);
  }, options);
  if (after.wakeAt !== Number.POSITIVE_INFINITY) notifyWorkers(after.wakeAt);
  return result;
}

// The rows of deliveries that this process has claimed. While a lease names a delivery, nothing
// but settling it changes its row, so it is not read again. Its event may get another delivery
// meanwhile, which `completed` allows for.

/**
 * More than a process has in flight by default. A claim counts in full until its last delivery is
 * settled. A delivery that is not known is read when it is settled.
 */
const MAX_CLAIMED = 10_000;

/** The rows of each claim, by its token, and by the ids of the deliveries. */
type ClaimedDeliveries = LRUCache<string, Map<string, DueRow>>;

export const createClaimedDeliveries = (): ClaimedDeliveries =>
  new LRUCache({ maxSize: MAX_CLAIMED, sizeCalculation: ({ size }) => size });

/** Forgets deliveries that were settled. */
export function forgetClaimed(claimed: ClaimedDeliveries, settlements: Settlement[]): void {
  for (const { id, token } of settlements) {
    const rows = claimed.get(token);
    if (rows?.delete(id) && rows.size === 0) claimed.delete(token);
  }
}
