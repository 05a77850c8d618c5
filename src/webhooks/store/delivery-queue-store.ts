/** The part of the port that stores events and hands out their deliveries. */

import type { PostbellError } from "../../core/errors.js";
import type { ClaimRequest, ClaimResponse, Settlement, SettleResult } from "./claims.js";
import type { CreateFilterTest, EventRecord } from "./records.js";

/**
 * Milliseconds by which a first attempt goes ahead of retries: it precedes every retry that has
 * been due for less than this. After an outage of an endpoint, new events do not queue behind
 * thousands of retries, and those retries still get their turn.
 */
export const FIRST_ATTEMPT_HEAD_START_MS = 3_600_000;

/** Milliseconds for which an event's id is remembered. Emitting it again meanwhile adds nothing. */
export const REMEMBER_MS = 86_400_000;

/** An event to store. */
export interface EventToAppend extends EventRecord {
  /**
   * Milliseconds for which this event is kept in place of `Retention.keepMs`, counted in the same
   * way: from 1 to {@link MAX_KEEP_MS}. Absent: as long as most. The events that reads and claims
   * return do not have it.
   */
  keepMs?: number | undefined;
}

/** The longest time for which an event may ask to be kept: a year, in milliseconds. */
export const MAX_KEEP_MS = 31_536_000_000;

/** Events to store, in order. */
export interface AppendRequest {
  /** One or more, of any accounts. */
  readonly events: readonly EventToAppend[];
  readonly rememberMs: number;
  readonly now: number;
  /**
   * For a test: the events go to this webhook only, if it is ENABLED, whatever types it subscribes
   * to. `recover` never creates a delivery of them. Without a delivery they are not kept.
   */
  readonly webhookId?: string | undefined;
  /**
   * The connection on which the host has begun a transaction. The events are written there, and are
   * in effect once the host commits. Only for a store that `joinsTransactions`.
   */
  readonly transaction?: object | undefined;
  /**
   * Tests filters in place of `createFilterTest`. Set if a payload is encrypted, so that the
   * storage cannot read it.
   */
  readonly createFilterTest?: CreateFilterTest | undefined;
  /**
   * Set if the caller has free slots: the storage may lease what is due in the same step, including
   * the new deliveries.
   */
  readonly claim?: ClaimRequest | undefined;
}

/** An event that is stored, by this call or an earlier one. */
export interface AppendedEvent {
  readonly result: "stored" | "duplicate";
  readonly deliveries: readonly { readonly id: string; readonly webhookId: string }[];
  /**
   * How many webhooks the account has at this call, also for a duplicate: ENABLED or not, and
   * whatever types they subscribe to.
   */
  readonly webhooks: number;
  /** For storages that check it: true if the event has reached a replica. */
  readonly confirmed?: boolean | undefined;
}

/**
 * The result for an event. `conflict`: another event has its id. `refused`: nothing was stored, or
 * nobody knows, as `error` says; for example `storage_full`.
 */
export type AppendResult =
  | AppendedEvent
  | { readonly result: "conflict" }
  | { readonly result: "refused"; readonly error: PostbellError };

/** The response to {@link AppendRequest}. */
export interface AppendResponse {
  /**
   * One for each event, in order, up to the first that was not stored. The events after that one
   * were not tried.
   */
  readonly results: readonly AppendResult[];
  /** The response of `claim`; absent if the storage leased nothing. */
  readonly claimed?: ClaimResponse | undefined;
}

/** Appends events, leases due deliveries, and records their results. */
export interface DeliveryQueueStore {
  /** True if `append` can write events in a transaction of the host. Absent: it cannot. */
  readonly joinsTransactions?: boolean | undefined;
  /**
   * Stores each event with one delivery, due now, for each webhook of its account that is ENABLED
   * at this moment, subscribes to its type and has no filter that refuses it: all or nothing for
   * each event. `createFilterTest` applies a filter. The webhooks that are left out because of it
   * count the event as `filtered`. Events are stored in
   * their order, and the first that is not stored ends the call. An event is kept for `recover`
   * even if no webhook was ENABLED, provided the account has any.
   *
   * Remembers each id for `rememberMs`, and as long as the event is kept, with or without
   * deliveries. Meanwhile the same id and digest add nothing and return the first deliveries
   * (`duplicate`); another digest is a `conflict`.
   *
   * If it rejects, none of the events is known to be stored.
   */
  append(request: AppendRequest): Promise<AppendResponse>;

  /**
   * Leases what is due: deliveries whose time has come, and those whose lease has expired (their
   * `crashes` is then one more).
   *
   * Never leases more than `room`, and never more than `perEndpoint` for one endpoint. After a
   * failure of the endpoint it leases only 1, 2, 3 … with each success (slow start). Endpoints take
   * turns. Within an endpoint, the earliest due goes first, first attempts with a head start.
   * With `perSecond`, never leases more than that number of deliveries of one endpoint in a second
   * of the storage's time, whatever their results. The others are due when the next second begins.
   * Deliveries of DISABLED webhooks are leased too, because a process has to skip their step.
   *
   * Atomic for each delivery, not over all: a storage in several parts may visit them in turn, and
   * endpoints take turns within a part. It may stop after some hundred expired leases; `nextAt`
   * then reports it. Claims of one event may share its record, so that it is read once.
   *
   * Calling it again after a lost response leases what is still due. The deliveries of the lost
   * response return when their lease expires.
   */
  claim(request: ClaimRequest): Promise<ClaimResponse>;

  /**
   * Records the results of claims, each once, and resolves with a {@link SettleResult} for each, in
   * order. All settlements are of one partition. Each is recorded completely or not at all. If the
   * call rejects, some may have been recorded, and all may be settled again.
   *
   * A `delivered` counts whatever its token, even after `failed`: a 2xx that was read is a fact.
   * Anything else counts only from the holder of the lease. A process stops being the holder when
   * another claim takes the delivery over; between `leaseUntil` and then a report may be accepted
   * or be `stale`.
   *
   * `endpoint` updates the health: the first failure sets `failingSince` and `noticeAt`, a success
   * clears both and `warnedAt`. An older generation changes nothing, and a DISABLED webhook keeps
   * its health. It also updates the lane and the slow start.
   */
  settle(settlements: readonly Settlement[]): Promise<readonly SettleResult[]>;
}
