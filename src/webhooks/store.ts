/**
 * The port to a storage for webhooks, events and deliveries: what every backend has to do, and nothing about how.
 *
 * Rules for all methods: each is atomic; each is idempotent in effect, so that a call whose answer was lost may be made again; each takes `now`
 * from {@link WebhookStore.now}; each settles within a few seconds; what it returns is a copy, or frozen, so that changing it changes nothing in the store. A method that cannot reach
 * its backend rejects with the code `storage_unavailable`, one that would pass a bound with `storage_full`, and then nothing was stored; `settle` is never refused for lack of room.
 * A webhook named with another account than its own is treated like one that does not exist.
 * `storageContract` in `postbell/testing` holds a backend to this page.
 *
 * All times are epoch milliseconds.
 */

import type { Clock } from "../core/clock.js";
import type { Logger } from "../core/logger.js";

/** What `createWebhooks({ storage })` takes: a connection, or a heap, that several services may share. */
export interface Storage {
  /** The webhook store on this storage. Two services on one storage see the same records. Does no I/O yet. */
  webhooks(context: StorageContext): WebhookStore;
  /** Lets go of what the storage itself opened. Calling it again changes nothing. */
  close(): Promise<void>;
}

/** What a storage is given by the service that binds it. */
export interface StorageContext {
  readonly clock: Clock;
  readonly logger: Logger;
  /** How many deliveries of one webhook may be under way at once, over all processes. Every service on one storage gives the same. */
  readonly perEndpoint: number;
  /** The same for every service on one storage. */
  readonly retention: Retention;
}

/** Only ENABLED webhooks get deliveries of new events. */
export type WebhookStatus = "ENABLED" | "DISABLED";

/** A registration as it is stored. */
export interface WebhookRecord {
  readonly id: string;
  readonly account: string;
  /** Names the API key that owns the webhook (it is not the key): the one that `canRead` is asked for. */
  readonly subscriberId: string;
  readonly url: string;
  readonly status: WebhookStatus;
  /** `null`: every type, also future ones. Else exact types, `prefix.*` or `*`. */
  readonly eventTypes: readonly string[] | null;
  readonly createdAt: number;
  /** Larger after each change by a user or by the service, also within one millisecond. */
  readonly updatedAt: number;
  readonly secret: string;
  /** The secret before a rotation; it signs until `rotateAt`. */
  readonly previousSecret: string | null;
  readonly rotateAt: number | null;
  /** Counts new URLs and re-enablings: a report on an attempt under an older generation says nothing about this endpoint's health. */
  readonly generation: number;
  /** The first failure since the last 2xx (or since the creation, re-enabling or a new URL). */
  readonly failingSince: number | null;
  /** When the host was told that the endpoint is failing, or telling it was given up. */
  readonly warnedAt: number | null;
  /** When the next step of the health decision is due; see `claimHealthNotifications`. */
  readonly noticeAt: number | null;
}

/** What a user may change. An absent key leaves the field as it is. */
export interface WebhookChange {
  readonly url?: string | undefined;
  readonly status?: WebhookStatus | undefined;
  readonly eventTypes?: readonly string[] | null | undefined;
  /** A new secret. What signs now goes on signing until `rotateAt`, also where a rotation is under way already; not at all where `rotateAt` is not after `now`. */
  readonly rotation?: { readonly secret: string; readonly rotateAt: number } | undefined;
  /** Hands the webhook over to another key of its account. */
  readonly subscriberId?: string | undefined;
}

/** An event as it is stored. */
export interface EventRecord {
  /** A UUID; unique within its account. */
  readonly id: string;
  readonly account: string;
  readonly type: string;
  /** What the emitter gave, as a digest: the same id with another digest is a conflict. */
  readonly digest: string;
  /** The serialised event (see `bundle.ts`). A store hands it back character by character and never looks inside. */
  readonly payload: string;
}

/** How long and how much of what has ended is kept. */
export interface Retention {
  /**
   * Milliseconds that an event is kept, with all its deliveries and their attempts, after the last of them has ended; later calls free it then, some at a time. 0 frees at once.
   */
  readonly ms: number;
  /** Events an account may have with no open delivery; beyond it later calls free the oldest first, with their deliveries, some at a time. */
  readonly events: number;
}

/**
 * `pending` covers waiting and under way. The others are ends, and an end never turns back, except that a 2xx that was
 * really read outranks `failed`.
 */
export type DeliveryState = "pending" | "delivered" | "failed" | "withheld";

/** One HTTP exchange, or one that did not come about. */
export interface Attempt {
  readonly at: number;
  readonly durationMs: number;
  /** Which step of the schedule it was, from 0. */
  readonly step: number;
  /** True for one that a user asked for beside the schedule. */
  readonly isExtra: boolean;
  readonly kind: "delivered" | "http" | "dns" | "connect" | "tls" | "timeout" | "refused";
  readonly status: number | null;
  /** A short stable word: `ECONNREFUSED`, `NO_USABLE_ADDRESS`, `HTTP_500` … */
  readonly code: string;
  /** The first characters of the answer to a failed attempt. */
  readonly excerpt: string | null;
}

/** A delivery as the log tells it: one event for one webhook. */
export interface DeliveryRecord {
  /** `<webhook id>.<event id>`, with `.<n>` for the n-th one made by `resend` or `recover`. */
  readonly id: string;
  readonly webhookId: string;
  readonly eventId: string;
  readonly type: string;
  readonly state: DeliveryState;
  /** Why it ended other than delivered: `exhausted`, `disabled`, `access_denied`, `access_unknown`, `crashed`, `payload_unreadable`, `payload_missing`, `record_unreadable`. */
  readonly reason: string | null;
  readonly createdAt: number;
  /** When its first attempt was due and somebody was there to make it (or to skip it): the schedule counts from here. */
  readonly startedAt: number | null;
  /** The step it waits for. */
  readonly step: number;
  /** When that step is due; `null` once it has ended. */
  readonly dueAt: number | null;
  readonly endedAt: number | null;
  /** The latest 50, oldest first. A schedule has at most 14 unless the host sets another one; `resend` adds more. */
  readonly attempts: readonly Attempt[];
}

/** What the latest attempt came to. */
export type AttemptSummary = Pick<Attempt, "at" | "kind" | "status" | "code">;

/** The deliveries of one webhook, counted: those pending, and the ended ones that are kept. */
export interface DeliveryStats extends Readonly<Record<DeliveryState, number>> {
  /** When the delivery at the head of its queue is due; `null` where none waits. */
  readonly nextDueAt: number | null;
  /** The attempt that was recorded last, of any delivery. */
  readonly lastAttempt: AttemptSummary | null;
}

/**
 * Endpoints whose last attempt was quick are `fast`. New ones, and those whose last attempt was slow, are `slow`, and are served
 * from a budget of their own, so that hanging endpoints cannot take the slots of the others.
 */
export type Lane = "fast" | "slow";

/** A delivery under lease: nobody else gets it before `leaseUntil`. */
export interface Claim {
  readonly id: string;
  readonly token: string;
  readonly lane: Lane;
  /** As it is now, `secret` included: the url, status and secrets that this attempt has to use. */
  readonly webhook: WebhookRecord;
  readonly event: EventRecord;
  readonly startedAt: number | null;
  readonly step: number;
  /** True where a user asked for an attempt now, beside the schedule: it uses up no step. `dueAt` is when the step is due. */
  readonly isExtra: boolean;
  readonly dueAt: number;
  /** How often in a row it was put off because `canRead` gave no answer. */
  readonly postponed: number;
  /** How often a lease on it ran out without a word since its last attempt: the process died, or stalled. */
  readonly crashes: number;
  /** True where this claim takes over such a lease. */
  readonly isRecovered: boolean;
}

/** Who claims, how much, and until when. */
export interface ClaimRequest {
  readonly now: number;
  /** Made by the caller for this request; the claims of the answer carry it. */
  readonly token: string;
  readonly leaseUntil: number;
  /** How many to give at most from each lane. */
  readonly room: Readonly<Record<Lane, number>>;
}

/** What an attempt showed of the endpoint. `null` where it showed nothing: no request was made. */
export interface EndpointReport {
  readonly ok: boolean;
  /** Generation of the webhook that the attempt was made under. */
  readonly generation: number;
  readonly at: number;
  /** Where the endpoint starts to fail with this report: when the first health step is due. */
  readonly noticeAt: number;
  readonly lane: Lane;
}

/** What becomes of a claimed delivery. */
export interface Settlement {
  readonly id: string;
  readonly webhookId: string;
  readonly account: string;
  readonly token: string;
  readonly now: number;
  readonly outcome:
    | { readonly state: "delivered" }
    | { readonly state: "failed" | "withheld"; readonly reason: string }
    | {
        readonly state: "pending";
        readonly step: number;
        readonly dueAt: number;
        readonly postponed: number;
        readonly crashes: number;
        /** When an extra attempt is due, beside the step: of a claim with `isExtra` that was put off or given back. Absent or `null`: none is owed (any more). */
        readonly extraAt?: number | null | undefined;
      };
  /** The start of the schedule; `null` leaves it as it is. */
  readonly startedAt: number | null;
  readonly attempt: Attempt | null;
  readonly endpoint: EndpointReport | null;
}

/**
 * `settled`: recorded. `stale`: the token is not the one that holds the lease, and the report is not a 2xx: dropped, since a failure under an old lease proves nothing.
 * `gone`: there is no such delivery (any more), or it has ended.
 */
export type SettleResult = "settled" | "stale" | "gone";

/** Which part of a list. */
export interface Page {
  /** As `next` of the page before; what is none is refused with `invalid_argument`. */
  readonly cursor?: string | undefined;
  readonly limit: number;
}

/**
 * A first attempt goes before every retry that has been due for less than this: after an outage of an endpoint, new events do not
 * queue up behind thousands of retries, and those retries still get their turn.
 */
export const FIRST_ATTEMPT_HEAD_START_MS = 3_600_000;

/** An event's id is remembered this long: emitting it again within that time adds nothing. */
export const REMEMBER_MS = 86_400_000;

/** The port itself. What holds for all methods stands in `docs/guides/write-a-storage.md`. */
export interface WebhookStore {
  /** The longest a dispatcher may sleep without asking again, whatever `claim` said: how late another process's work may be noticed. */
  readonly maxSleepMs: number;
  /** The storage's own time, which every call gets as `now`: one clock for all processes that share the storage. */
  now(): number;
  /**
   * Tells `listener` when deliveries or notices may be due at `at`, made so by anyone. A hint: it may come late, twice or never. The listener takes note: it neither throws nor calls the store.
   * Returns a function that ends it.
   */
  watch(listener: (at: number) => void): () => void;

  /**
   * The partition that holds a webhook and its deliveries, as a small number: 0 where there is only one. All settlements of one call belong to one partition,
   * so that an unavailable partition does not delay the others. Does no I/O.
   */
  partitionOf(webhookId: string): number;
  /** A new UUID for a webhook of this account, from which the store can tell where the account lives. */
  newWebhookId(account: string): string;
  /**
   * Stores a webhook, unless the account has `accountLimit` webhooks, or, for an ENABLED one, `enabledLimit` ENABLED ones. With an idempotency key that the account used before
   * `expiresAt` of that use: the record as it was created then (`replayed`), or `key_reused` if the digest differs.
   * An id that is stored already adds nothing: `created`, with the webhook as it is now.
   */
  createWebhook(request: {
    readonly webhook: WebhookRecord;
    readonly enabledLimit: number;
    /** Of ENABLED and DISABLED webhooks together. */
    readonly accountLimit: number;
    readonly idempotency: {
      readonly key: string;
      readonly digest: string;
      readonly expiresAt: number;
    } | null;
    readonly now: number;
  }): Promise<
    | { readonly result: "created" | "replayed"; readonly webhook: WebhookRecord }
    | { readonly result: "enabled_limit" | "account_limit" | "key_reused" }
  >;
  /** Of any account; `undefined` where there is none. */
  getWebhook(id: string): Promise<WebhookRecord | undefined>;
  /** Webhooks of an account, oldest first. */
  listWebhooks(
    request: { readonly account: string } & Page,
  ): Promise<{ readonly webhooks: readonly WebhookRecord[]; readonly next: string | null }>;
  /**
   * Applies a change. Enabling counts against `enabledLimit`, not counting the webhook itself. A new url or DISABLED → ENABLED raises the generation and
   * clears the health; ENABLED → DISABLED clears it too. Pending deliveries stay and go to the new url.
   * With `owner`, nothing is changed unless the webhook's `subscriberId` is that one: `not_owner`, judged in the same step as the change.
   */
  updateWebhook(request: {
    readonly id: string;
    readonly account: string;
    readonly change: WebhookChange;
    readonly owner?: string | undefined;
    readonly enabledLimit: number;
    readonly now: number;
  }): Promise<
    | { readonly result: "updated"; readonly webhook: WebhookRecord }
    | { readonly result: "enabled_limit" | "not_found" | "not_owner" }
  >;
  /**
   * Removes a webhook with its deliveries, also those under way: at once for all other methods, while later calls may free what it held, some at a time.
   * False where there is none.
   */
  removeWebhook(request: {
    readonly id: string;
    readonly account: string;
    readonly now: number;
  }): Promise<boolean>;

  /**
   * Stores an event with one delivery, due now, for each webhook of its account that is ENABLED at this moment and subscribes to its type: all or nothing.
   * Remembers the id for `rememberMs`, and as long as the event is kept, with or without deliveries: the same id and digest again adds nothing and returns the first deliveries (`duplicate`),
   * another digest is a `conflict`. The event is kept, for `recover`, also where no webhook was ENABLED, provided the account has any.
   */
  append(request: {
    readonly event: EventRecord;
    readonly rememberMs: number;
    readonly now: number;
    /**
     * For a test: the event goes to this webhook alone, if it is ENABLED, whatever types it subscribes to, and `recover` never makes a delivery of it. With no delivery it is not kept.
     */
    readonly webhookId?: string | undefined;
    /** Where the caller has slots free: the storage may lease in the same step what is due, the new deliveries among it. */
    readonly claim?: ClaimRequest | undefined;
  }): Promise<
    | {
        readonly result: "stored" | "duplicate";
        readonly deliveries: readonly { readonly id: string; readonly webhookId: string }[];
        /** Where the storage checks that the event has reached a replica: whether it has. */
        readonly confirmed?: boolean | undefined;
        /** What `claim` would have answered; absent where the storage leased nothing with it. */
        readonly claimed?: Awaited<ReturnType<WebhookStore["claim"]>> | undefined;
      }
    | { readonly result: "conflict" }
  >;

  /**
   * Leases what is due: deliveries whose time has come, and those whose lease has run out (`crashes` is then one more). Never more than `room`, per endpoint never more than
   * `perEndpoint`, and after a failure of the endpoint only 1, 2, 3 … with each success (slow start). Endpoints take turns. Within an endpoint: earliest due first, first attempts with a head start.
   * Deliveries of DISABLED webhooks are handed out too: their step has to be skipped by somebody.
   * `nextAt`: no delivery becomes due and no lease runs out before it, as far as the store knows now (`null`: none is waiting or under lease); not after `now` where `room` was too small for all.
   * Atomic for each delivery, not over all: a storage in several parts may ask them in turn, and endpoints take turns within a part. It may stop after some hundred leases that ran out; `nextAt` then says so.
   * Claims of one event may share its record, so that it is read once. Made again after a lost answer it leases what is still due; what the lost answer held comes back when its lease runs out.
   */
  claim(
    request: ClaimRequest,
  ): Promise<{ readonly claims: readonly Claim[]; readonly nextAt: number | null }>;

  /**
   * Records what became of claims, each once, and resolves with a result for each, in their order. All are of one partition. Each is recorded or not at all; where the call
   * rejects, some may have been, and all may be settled again. A `delivered` counts whatever the token, also after `failed`: a 2xx that was read is true. Anything else counts only from the lease's holder,
   * which stops being one when another claim takes the delivery over; between `leaseUntil` and then a report may be taken or be `stale`.
   * `endpoint` moves the health (first failure sets `failingSince` and `noticeAt`, a success clears both and `warnedAt`; an older generation moves nothing, and a DISABLED webhook keeps its health as it is),
   * the lane, and the slow start.
   */
  settle(settlements: readonly Settlement[]): Promise<readonly SettleResult[]>;

  /** With all attempts that are kept; `undefined` where there is no such delivery (any more). */
  getDelivery(id: string): Promise<DeliveryRecord | undefined>;
  /**
   * Newest first, those created at or after `since` and before `until`. A page may be short, or empty, and still have a `next`: the work of one call is bounded, whatever the log
   * of the account holds. `next` is `null` only at the end of the log.
   */
  listDeliveries(
    request: {
      readonly webhookId: string;
      readonly state?: DeliveryState | undefined;
      readonly type?: string | undefined;
      readonly since?: number | undefined;
      readonly until?: number | undefined;
    } & Page,
  ): Promise<{ readonly deliveries: readonly DeliveryRecord[]; readonly next: string | null }>;
  /** What the log of a webhook comes to, without reading it. `undefined` where there is no such webhook. */
  deliveryStats(webhookId: string): Promise<DeliveryStats | undefined>;
  /**
   * One more attempt: a pending delivery becomes due now, as an extra that uses up no step (one under way stays as it is); for an ended one a new delivery of the same event is made, unless a later
   * one is pending already, which then becomes due now. Returns the id of the delivery that will be attempted; `undefined` where the delivery or its event is gone.
   */
  resend(request: {
    readonly id: string;
    readonly account: string;
    readonly now: number;
  }): Promise<string | undefined>;
  /**
   * Makes a delivery of each kept event of the webhook's account that was stored at or after `since`, that the webhook subscribes to, and that it neither has pending nor got delivered or withheld.
   * The first of them is due at `dueAt`, each further one `everyMs` later: with a `dueAt` after `now` none has the head start of a first attempt, so that new events go before them.
   * Examines at most `limit` events, oldest first, or fewer, so that the work of one call is bounded; `examined` says how many. `next` continues from there; `null`: all were examined.
   * `undefined` where there is no such webhook.
   */
  recover(
    request: {
      readonly webhookId: string;
      readonly account: string;
      readonly since: number;
      readonly dueAt: number;
      readonly everyMs: number;
      readonly now: number;
    } & Page,
  ): Promise<{ readonly count: number; readonly examined: number; readonly next: string | null } | undefined>;

  /**
   * Leases webhooks whose `noticeAt` has come, by moving it to `leaseUntil`: if the process dies, another one takes the step up.
   * `nextAt` as in `claim`.
   */
  claimHealthNotifications(request: {
    readonly now: number;
    readonly leaseUntil: number;
    readonly limit: number;
  }): Promise<{ readonly webhooks: readonly WebhookRecord[]; readonly nextAt: number | null }>;
  /**
   * Takes a health step, if the webhook still fails since `failingSince` and has the status `from`: sets the given fields. False where it recovered, was changed or is gone:
   * then nothing changes. DISABLED set here leaves `failingSince` in place.
   */
  settleHealthNotification(request: {
    readonly id: string;
    readonly account: string;
    readonly failingSince: number;
    readonly from: WebhookStatus;
    readonly status: WebhookStatus;
    readonly warnedAt: number | null;
    readonly noticeAt: number | null;
    readonly now: number;
  }): Promise<boolean>;

  /** Counts, for operators and tests. */
  stats(): Promise<StoreStats>;
}

/** What a store holds, in numbers. */
export interface StoreStats {
  readonly webhooks: number;
  /** Events kept, with or without an open delivery. */
  readonly events: number;
  readonly pending: number;
  /** Part of `pending` that is under lease. */
  readonly leased: number;
  /** Deliveries that are due and not under lease, of endpoints that have a free slot. Of very many such endpoints or deliveries a store may count some. */
  readonly due: number;
  /**
   * Webhooks by their health: ENABLED and well, failing, failing and warned of, DISABLED. `null` where there are too many to count them in a moment.
   */
  readonly endpoints: Readonly<Record<"ok" | "failing" | "warned" | "disabled", number>> | null;
  /** Ended deliveries kept. */
  readonly ended: number;
  /** What the store counts as its size. */
  readonly bytes: number;
}
