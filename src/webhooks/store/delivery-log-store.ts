/** The part of the port that reads the delivery log, resends, and recovers missed events. */

import type {
  AttemptSummary,
  CreateFilterTest,
  DeliveryRecord,
  DeliveryState,
  EventRecord,
  EventStanding,
  Page,
} from "./records.js";

/**
 * The deliveries of one webhook, counted by state: pending ones, and completed ones that are kept.
 */
export interface DeliveryStats extends Readonly<Record<DeliveryState, number>> {
  /** How many of the `failed` deliveries are failed tests: their reason is `test_failed`. */
  readonly failedTests: number;
  /**
   * How many events the filter of the webhook has refused since it was created: those that `append`
   * would have stored with a delivery to it. It never decreases.
   */
  readonly filtered: number;
  /** The attempts of the last 24 hours. */
  readonly lastDay: RecentAttempts;
  /** The last 72 hours, oldest first, without hours that had no attempts. */
  readonly hours: readonly HourStats[];
  /** When the delivery at the head of its queue is due; `null` if the queue is empty. */
  readonly nextDueAt: number | null;
  /** How many deliveries are in flight. */
  readonly inFlight: number;
  /** How many may be: `perEndpoint`, or fewer after a failure (slow start). */
  readonly slots: number;
  /** When the rate lets the next delivery be claimed: now, or when the next second begins. */
  readonly openAt: number;
  /** The attempt that was recorded last, of any delivery. */
  readonly lastAttempt: AttemptSummary | null;
}

/**
 * The attempts of the last 24 whole hours and of the current hour, as settlements with a report on
 * the endpoint counted them by their `now`.
 */
export interface RecentAttempts {
  readonly succeeded: number;
  readonly failed: number;
  /** The durations of those that succeeded, in milliseconds. */
  readonly durationMs: number;
}

/**
 * The attempts of one hour, counted as those of `RecentAttempts`. What a clock that was ahead has
 * counted in a later hour is part of the current one.
 */
export interface HourStats {
  /** When the hour began. */
  readonly at: number;
  /** Attempts that succeeded. */
  readonly delivered: number;
  readonly failed: number;
  /**
   * The milliseconds that half, and 95 of 100 attempts did not exceed, whether they succeeded or
   * failed. They may differ from the exact ones by 5 %, and are rounded; above 70 seconds they
   * are a lower bound. `null` if a version without sketches has counted the hour.
   */
  readonly p50: number | null;
  readonly p95: number | null;
}

/** An event that is kept. */
export interface StoredEventRecord extends EventRecord {
  /** When it was stored, by the time of the storage. */
  readonly storedAt: number;
}

/** Names events by their `subject`, or by one of their `tags`. */
export type EventKey =
  | { readonly subject: string; readonly tag?: undefined }
  | { readonly tag: string; readonly subject?: undefined };

/** An event that was found by its key. */
export interface FoundEvent {
  readonly id: string;
  /**
   * Its deliveries, newest first: to one webhook, if that was asked for, otherwise to all. At most
   * the 1 000 newest.
   */
  readonly deliveries: readonly DeliveryRecord[];
}

/** Reads deliveries, and creates further ones for events that are kept. */
export interface DeliveryLogStore {
  /**
   * Returns a delivery with all attempts that are kept; `undefined` if it does not exist (any
   * more).
   */
  getDelivery(id: string): Promise<DeliveryRecord | undefined>;
  /** Returns an event that is kept; `undefined` if it does not exist (any more). */
  getEvent(request: { account: string; id: string }): Promise<StoredEventRecord | undefined>;
  /**
   * Returns deliveries, newest first, that were created at or after `since` and before `until`. A
   * page may be short, or empty, and still have a `next`: the work of one call is bounded, however
   * long the log of the account is. `next` is `null` only at the end of the log.
   *
   * `examinedTo` is for pages with a `next`: the call examined everything that was created after
   * this time. Without it, the list of a whole account takes more calls.
   */
  listDeliveries(
    request: {
      webhookId: string;
      state?: DeliveryState | undefined;
      type?: string | undefined;
      since?: number | undefined;
      until?: number | undefined;
    } & Page,
  ): Promise<{
    readonly deliveries: readonly DeliveryRecord[];
    readonly next: string | null;
    readonly examinedTo?: number | undefined;
  }>;
  /**
   * Returns deliveries of a webhook in the order in which they were created, at or after `since`
   * and before `until`, that come after the cursor `after`. Each has its cursor: whoever continues
   * there, days later, misses none and gets none twice. `after` of the response is where to
   * continue, also at the end of the log; `undefined` if nothing was examined yet. A page may be
   * short, or empty, while `hasMore` is true: the work of one call is bounded.
   *
   * Only deliveries that are older than the longest call are in order for certain, so callers pass
   * an `until` in the past.
   */
  readDeliveriesAfter(request: {
    webhookId: string;
    after?: string | undefined;
    since: number;
    until: number;
    limit: number;
  }): Promise<{
    readonly rows: readonly { readonly delivery: DeliveryRecord; readonly cursor: string }[];
    readonly after: string | undefined;
    readonly hasMore: boolean;
  }>;
  /**
   * Returns the kept events of an account that have a subject or a tag, newest first, also those
   * without deliveries and tests. The work of a call depends on the events that it returns, however
   * many others are kept. A page may have fewer events than `limit` and still have a `next`.
   */
  findEvents(
    request: {
      account: string;
      key: EventKey;
      /** Only deliveries to this webhook. The events are the same. */
      webhookId?: string | undefined;
      /** True to read no deliveries: each event then has an empty list. Default `false`. */
      idsOnly?: boolean | undefined;
    } & Page,
  ): Promise<{ readonly events: readonly FoundEvent[]; readonly next: string | null }>;
  /**
   * Summarises the log of a webhook without reading it. `undefined` if there is no such webhook.
   */
  deliveryStats(webhookId: string, now: number): Promise<DeliveryStats | undefined>;
  /**
   * Requests one more attempt. A pending delivery becomes due now, as an extra attempt that uses up
   * no step. For a completed one, a new delivery of the same event is created, unless another one
   * is pending, which then becomes due now. If an attempt of the event to the webhook is in flight,
   * nothing changes, unless `force` is true: then a scheduled delivery becomes due now, or a new
   * one is created.
   *
   * Returns the id of the delivery that will be attempted, or that is in flight; `undefined` if the
   * delivery or its event is gone.
   */
  resend(request: {
    id: string;
    account: string;
    force?: boolean | undefined;
    now: number;
  }): Promise<{ readonly id: string; readonly isInFlight: boolean } | undefined>;
  /**
   * Repairs what a webhook did not get. Selects the kept events of the webhook's account that were
   * stored at or after `since` and before `until`, that have one of the `types` and the `subject`
   * if these are set, that the webhook subscribes to, that pass its filter, and that are in one of
   * the `states` for it, by default failed or missed.
   *
   * For an event that is `pending`, its delivery that waits for a retry becomes due, as an extra
   * attempt that uses up no step. A delivery that is in flight, that was never attempted, that has
   * an extra attempt requested already or is due before its turn stays as it is: the event is
   * examined and left out. For an event in another state a new delivery is created, unless its
   * serial number would be above `MAX_RESENT`.
   *
   * The first of these deliveries is due at `dueAt`, each further one `everyMs` later. With a
   * `dueAt` after `now`, none of them has the head start of a first attempt, so new events go
   * first. Examines at most `limit` events, oldest first, or fewer, so that the work of one call is
   * bounded; `examined` is their number. `next` continues from there; `null` if all were examined.
   * `count` is the number of deliveries that were created or moved. With `isDryRun` nothing is
   * changed, and `count` says what would have been. Returns `undefined` if there is no such
   * webhook.
   */
  recover(
    request: {
      webhookId: string;
      account: string;
      since: number;
      until?: number | undefined;
      dueAt: number;
      everyMs: number;
      now: number;
      types?: readonly string[] | undefined;
      subject?: string | undefined;
      states?: readonly EventStanding[] | undefined;
      /** As in `append`. */
      createFilterTest?: CreateFilterTest | undefined;
      isDryRun?: boolean | undefined;
    } & Page,
  ): Promise<{ readonly count: number; readonly examined: number; readonly next: string | null } | undefined>;
}
