/**
 * The port to a storage for webhooks, events and deliveries: what every backend has to do, and
 * nothing about how. Everything that the port consists of is exported from here.
 *
 * Rules for all methods:
 *
 * - Each method is atomic.
 * - Each is idempotent in effect: a call whose result was lost may be repeated.
 * - Each takes `now` from {@link WebhookStore.now} and settles within a few seconds.
 * - Returned values are copies, or frozen: changing them changes nothing in the store.
 * - A method that cannot reach its backend rejects with `storage_unavailable`. One that would
 *   exceed a limit rejects with `storage_full`, and nothing was stored. `settle` is never refused
 *   for lack of room.
 * - A webhook named together with another account is treated like one that does not
 *   exist.
 *
 * All times are epoch milliseconds. `storageContract` of `postbell/testing` checks these rules.
 */

import type { Clock } from "../core/clock.js";
import type { Logger } from "../core/logger.js";
import type { AccountListStore, ErasureStore } from "./store/account-store.js";
import type { DataKeyStore } from "./store/data-key-store.js";
import type { DeliveryLogStore } from "./store/delivery-log-store.js";
import type { DeliveryQueueStore } from "./store/delivery-queue-store.js";
import type { Retention } from "./store/records.js";
import type { AuditLogStore, EndpointHealthStore, RegistrationStore } from "./store/registration-store.js";

export type { AccountListStore, AccountSummary, ErasedRecords, ErasureStore } from "./store/account-store.js";
export type {
  Claim,
  ClaimRequest,
  ClaimResponse,
  EndpointReport,
  Lane,
  Settlement,
  SettleResult,
} from "./store/claims.js";
export type { AddedDataKey, DataKeyStore } from "./store/data-key-store.js";
export type {
  DeliveryLogStore,
  DeliveryStats,
  EventKey,
  FoundEvent,
  HourStats,
  RecentAttempts,
  StoredEventRecord,
} from "./store/delivery-log-store.js";
export {
  type AppendedEvent,
  type AppendRequest,
  type AppendResponse,
  type AppendResult,
  type DeliveryQueueStore,
  type EventToAppend,
  FIRST_ATTEMPT_HEAD_START_MS,
  MAX_KEEP_MS,
  REMEMBER_MS,
} from "./store/delivery-queue-store.js";
export {
  type Attempt,
  type AttemptSummary,
  type CreateFilterTest,
  type DeliveryRecord,
  type DeliveryState,
  type EventRecord,
  type EventStanding,
  MAX_RESENT,
  type Page,
  type RecoverableState,
  type Retention,
  type SecretRotation,
  TEST_FAILED,
  type WebhookChange,
  type WebhookRecord,
  type WebhookStatus,
} from "./store/records.js";
export type {
  AuditLogStore,
  AuditRecord,
  EndpointHealthStore,
  RegistrationStore,
} from "./store/registration-store.js";

/** The storage that `createWebhooks({ storage })` takes. Several services may share it. */
export interface Storage {
  /**
   * Returns the webhook store on this storage. Two services on one storage see the same records.
   * Does no I/O yet.
   */
  webhooks(context: StorageContext): WebhookStore;
  /** Releases what the storage itself opened. Calling it again changes nothing. */
  close(): Promise<void>;
}

/** The settings that a service passes to its storage. */
export interface StorageContext {
  readonly clock: Clock;
  readonly logger: Logger;
  /**
   * How many deliveries of one webhook may be in flight, over all processes. Every service on one
   * storage passes the same value.
   */
  readonly perEndpoint: number;
  /**
   * How many deliveries of one webhook may be claimed in one second of the storage's time, over
   * all processes; absent or `null` for any number. Every service on one storage passes the same
   * value.
   */
  readonly perSecond?: number | null | undefined;
  /** Every service on one storage passes the same value. */
  readonly retention: Retention;
}

/**
 * The port itself, in eight parts, plus time, notification and counts.
 *
 * `docs/guides/write-a-storage.md` explains the rules for all methods.
 */
export interface WebhookStore
  extends RegistrationStore,
    DeliveryQueueStore,
    DeliveryLogStore,
    EndpointHealthStore,
    AuditLogStore,
    ErasureStore,
    AccountListStore,
    DataKeyStore {
  /**
   * The longest time that a process may sleep without claiming, whatever `claim` returned. It
   * bounds how late a process notices the work of another one.
   */
  readonly maxSleepMs: number;
  /**
   * Returns the storage's time, which every call gets as `now`: one clock for all processes
   * that share the storage.
   */
  now(): number;
  /**
   * Notifies `listener` that deliveries or health steps may be due at `at`, whoever made them so. A
   * notification may come late, twice or never. The listener neither throws nor calls the store.
   * Returns a function that ends it.
   */
  watch(listener: (at: number) => void): () => void;
  /**
   * Returns the partition that holds a webhook and its deliveries, as a small number: 0 if there is
   * only one. All settlements of one call belong to one partition, so that an unavailable partition
   * does not delay the others. Does no I/O.
   */
  partitionOf(webhookId: string): number;
  /**
   * Returns why the storage has no connection at present, if it knows: `ECONNREFUSED
   * 127.0.0.1:6379`. The error of a call that takes too long names it. Does no I/O.
   */
  connectionProblem?(): string | undefined;
  /** Counts what the store holds, for operators and tests. */
  stats(): Promise<StoreStats>;
}

/** The contents of a store, in numbers. */
export interface StoreStats {
  readonly webhooks: number;
  /** Events kept, with or without a pending delivery. */
  readonly events: number;
  readonly pending: number;
  /** The part of `pending` that is under lease. */
  readonly leased: number;
  /**
   * Deliveries that are due and not under lease, of endpoints with a free slot whose rate allows a
   * claim in this second. If there are very many such endpoints or deliveries, a store may count
   * only some of them.
   */
  readonly due: number;
  /**
   * Webhooks by their health: ENABLED and healthy, failing, failing and warned, DISABLED. `null` if
   * there are too many to count quickly.
   */
  readonly endpoints: Readonly<Record<"ok" | "failing" | "warned" | "disabled", number>> | null;
  /** Completed deliveries that are kept. */
  readonly ended: number;
  /** The size of the store as the storage measures it. */
  readonly bytes: number;
}
