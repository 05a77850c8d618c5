/** The delivery log and its repairs, as hosts call them. */

import type { JsonObject } from "../../schema/types.js";
import type { List } from "../list.js";
import type { Attempt, AttemptSummary, DeliveryState, RecoverableState } from "../store.js";
import type { EndpointHealth } from "./endpoint-health.js";
import type { EventFeedRequest, EventPage } from "./event-feed.js";
import type { ExaminationCalls } from "./examination.js";
import type { Explanation } from "./explanation.js";

/** An attempt in the delivery log. */
export interface DeliveryAttempt extends Omit<Attempt, "at"> {
  readonly at: Date;
}

/** A delivery in the log: one event for one webhook. */
export interface Delivery {
  readonly id: string;
  readonly webhookId: string;
  readonly eventId: string;
  readonly type: string;
  /**
   * The record that the event is about, `Patient/123`, or the `subject` that it was emitted with.
   * `null` without one, and for who may not know it: the host and its operators always see it, a
   * key only if it may manage the webhook, once an attempt was made and unless it was withheld.
   */
  readonly subject: string | null;
  /** The tags that the event was emitted with; an empty list for who may not know its subject. */
  readonly tags: readonly string[];
  readonly state: DeliveryState;
  /**
   * Why the delivery ended without success: `exhausted`, `test_failed`, `disabled`,
   * `access_denied`, `access_unknown`, `crashed`, `payload_unreadable`, `payload_missing`,
   * `record_unreadable` or `key_erased`. Otherwise `null`.
   */
  readonly reason: string | null;
  readonly createdAt: Date;
  readonly startedAt: Date | null;
  /** When the next attempt is due; `null` once the delivery has completed. */
  readonly nextAttemptAt: Date | null;
  readonly endedAt: Date | null;
  readonly attempts: readonly DeliveryAttempt[];
}

/** Stands for the value of a header that is computed for each attempt. */
export const PER_ATTEMPT = "(computed for each attempt)";

/** The HTTP request that an attempt of a delivery sends. */
export interface DeliveryRequest {
  readonly method: "POST";
  readonly url: string;
  /**
   * Headers by name. Signatures and their time are `(computed for each attempt)`: nobody can have
   * the log sign something. Those of `delivery.headers` are left out.
   */
  readonly headers: Readonly<Record<string, string>>;
  /** The size of the body in UTF-8. */
  readonly bytes: number;
  /** `null` unless it was requested. */
  readonly body: string | null;
}

/** The statistics of one webhook. Failed tests do not count as failed deliveries. */
export interface DeliveryCounts extends Readonly<Record<DeliveryState, number>> {
  /** The event types that the webhook subscribes to; `null` for all, also future ones. */
  readonly eventTypes: readonly string[] | null;
  readonly health: EndpointHealth<Date>;
  /** When a new secret begins to sign; `null` if no rotation is in progress. */
  readonly rotatesAt: Date | null;
  /**
   * When the next attempt is due; in the past if it waits for a free slot, `null` if no delivery is
   * pending.
   */
  readonly nextAttemptAt: Date | null;
  /**
   * How many events its filter has refused since it was registered. Absent unless the option
   * `registrations.filters` is on.
   */
  readonly filtered?: number;
  /** The attempts of the last 24 hours, to the hour. Failed tests do not count. */
  readonly lastDay: {
    readonly attempts: number;
    readonly succeeded: number;
    /** How long those that succeeded took on average; `null` if none did. */
    readonly averageMs: number | null;
  };
  /**
   * The attempts of the last 72 hours, the current one with them: at most 72 items, oldest first.
   * An hour without attempts is absent. Failed tests do not count.
   */
  readonly hours: readonly {
    /** When the hour began, in UTC. */
    readonly at: Date;
    /** Attempts that succeeded. */
    readonly delivered: number;
    /** Attempts that failed; a delivery that was retried counts each time. */
    readonly failed: number;
    /**
     * The milliseconds that half of the attempts took at most, whether they succeeded or failed;
     * 5 % more or less than the exact value. `null` if it was not measured.
     */
    readonly p50: number | null;
    /** The same for 95 of 100 attempts. */
    readonly p95: number | null;
  }[];
  /** The attempt of any delivery that was recorded last. */
  readonly lastAttempt: (Omit<AttemptSummary, "at"> & { readonly at: Date }) | null;
}

/** The result of recovering the missed events of all webhooks of an account. */
export interface AccountRecovery {
  /** The number of deliveries that were created or, if pending, made due. */
  count: number;
  webhooks: readonly { webhookId: string; count: number }[];
  /**
   * The webhooks that were left out. Those that are `rate_limited`, or `unavailable` because the
   * storage refused a call, can be recovered later. One recovered in part is in both lists.
   */
  skipped: readonly {
    webhookId: string;
    reason: "webhook_disabled" | "webhook_owned_by_another_key" | "rate_limited" | "unavailable";
  }[];
}

/** The events that `recover` selects. */
export type RecoverySelection =
  | {
      /** A Date, or ISO 8601 with an offset. */
      since: Date | string;
      /** Only events of this type. */
      type?: string | undefined;
      /**
       * Only events whose deliveries `failed`; only those `missed`, which have no delivery to the
       * webhook; only those `withheld`, for which `access.canRead` is called again; those that are
       * `pending`; or `undelivered`: failed, missed and pending. Default: failed and missed.
       */
      state?: RecoverableState | "pending" | "undelivered" | undefined;
    }
  | {
      /** Default: all that is pending. */
      since?: Date | string | undefined;
      /** Only events of this type. */
      type?: string | undefined;
      state: "pending";
    };

/** The events that `replay` sends again. */
export interface ReplayRequest {
  webhookId: string;
  /** Events that were stored at this time or later. A Date, or ISO 8601 with an offset. */
  since: Date | string;
  /** Events that were stored before this time. */
  until: Date | string;
  /** Only events of these types, 1 to 100. Default: all that the webhook subscribes to. */
  types?: readonly string[] | undefined;
  /**
   * Only events in one of these states for the webhook: `delivered`, `failed`, `withheld`, or
   * `missed` for those without a delivery. Default: all of them.
   */
  states?: readonly (RecoverableState | "delivered")[] | undefined;
  /**
   * Only events about this subject. A subscriber may name one only with the state `delivered`,
   * which is then the default: otherwise the count would tell of records that it may not read.
   */
  subject?: string | undefined;
  /** True counts the events and changes nothing. Default false. */
  dryRun?: boolean | undefined;
}

/**
 * The delivery log and the calls that repair it. Completed deliveries are kept for `retention`.
 *
 * `webhooks.deliveries` acts as the host, for all accounts. `webhooks.as(subscriber).deliveries`
 * has the rights of that API key, as its `registrations`: every key of the account may read the
 * log, but without the subjects, and without the excerpts of responses, which can repeat a record.
 * Only a key that may manage the webhook may call `inspect`, `listEvents`, `resend`, `recover`,
 * `replay`, `test` and `examine`.
 *
 * @throws `not_found`, `invalid_argument` and the errors of the storage; for a subscriber also
 * `webhook_owned_by_another_key` and `access_unavailable`.
 */
export interface Deliveries extends ExaminationCalls {
  /**
   * Lists deliveries created at or after `since` and before `until`, newest first. `limit` is the
   * size of a page, 1 to 100, 50 by default.
   *
   * A call examines a limited part of the log, so a page can hold fewer deliveries than `limit`,
   * even none, and still have a `next`: continue until it is `null`, as `for await` does.
   *
   * With `eventId`, only the deliveries of that event: the first one, and those sent again.
   *
   * With `subject` or `tag`, only the deliveries of events that have exactly this one, at a cost
   * that does not depend on the others. They are listed by event, the newest first. A subscriber
   * only finds deliveries whose subject or tags it is shown: the list does not tell it of records
   * that it may not read.
   *
   * With `account` in place of `webhookId`, the deliveries of all its webhooks, those of the same
   * millisecond by webhook. It reads the log of each webhook, so it costs as much as that many
   * calls. `as(subscriber)` lists those of the subscriber's account if both are absent.
   *
   * @throws `unknown_event_type` for a `type` that is neither in the catalogue nor `webhook.test`.
   */
  list(request: {
    webhookId?: string | undefined;
    account?: string | undefined;
    eventId?: string | undefined;
    subject?: string | undefined;
    tag?: string | undefined;
    state?: DeliveryState | undefined;
    type?: string | undefined;
    /** A Date, or ISO 8601 with an offset. */
    since?: Date | string | undefined;
    until?: Date | string | undefined;
    cursor?: string | undefined;
    limit?: number | undefined;
  }): List<Delivery>;
  /** Returns a delivery with all stored attempts. */
  get(id: string): Promise<Delivery>;
  /**
   * Returns what an attempt would send now. `access.canRead` is called again, and entries that the
   * webhook's subscriber may not read are left out, as in an attempt. Only a key that may manage
   * the webhook may call it.
   *
   * @param request.includeBody returns the body too, which contains the record. Default false.
   *
   * @throws `record_not_readable` if the subscriber may not read the event's record;
   * `not_found` if the event is no longer stored; `access_unavailable` if `canRead` fails.
   */
  inspect(request: { id: string; includeBody?: boolean | undefined }): Promise<DeliveryRequest>;
  /**
   * Returns the events that the webhook's endpoint should have received, oldest first, while they
   * are kept: those that have a delivery to the webhook, in any state, each once. Whoever continues
   * at `next` misses none. An event is listed from a minute after it was stored.
   *
   * `access.canRead` is called again. Events that the webhook's subscriber may not read now, and
   * tests, are left out. A page has at most `limit` events (1 to 100, 50 by default) and ends after
   * about 4 MiB. Only a key that may manage the webhook may call it.
   *
   * @throws `access_unavailable` if `canRead` fails; `invalid_argument` for an `after` that is not
   * a `next` of this webhook.
   *
   * @example
   * let after: string | undefined;
   * do {
   *   const page = await webhooks.deliveries.listEvents({ webhookId, after });
   *   for (const { body } of page.items) await handle(JSON.parse(body));
   *   after = page.next;
   * } while (page.hasMore);
   */
  listEvents(request: EventFeedRequest): Promise<EventPage>;
  /**
   * Makes one more attempt now. A pending delivery keeps its schedule. For a completed one, creates
   * a new delivery of the same event with a new schedule. Returns the delivery that is attempted.
   *
   * @param request.force makes the attempt even if another one is in flight, with a new delivery
   * unless one is scheduled: the endpoint may receive the event twice. Default false.
   *
   * @throws `attempt_in_flight` if an attempt of the event is in flight to the webhook, or about to
   * start; `webhook_disabled` while the webhook is DISABLED; `resend_limit_reached` if the event
   * was sent to the webhook again a hundred times.
   */
  resend(request: { id: string; force?: boolean | undefined }): Promise<{ readonly id: string }>;
  /**
   * Creates deliveries of all stored events since `since` that the webhook subscribes to and did
   * not receive: emitted while it was disabled, or failed. Pending, delivered and withheld
   * deliveries are not touched, so calling it again is safe. Events from before the registration of
   * the webhook do not count as missed. Events that were sent to the webhook again a hundred times,
   * by this call or by `resend`, are left out.
   *
   * With the state `pending`, nothing is created. Deliveries that wait for a retry get one more
   * attempt, in addition to their schedule: an endpoint that was repaired receives what waits for
   * it. If the attempt fails, its next one is made when it was planned before. Deliveries that are
   * in flight, due already or not attempted yet are left alone, so calling it again is safe.
   *
   * The deliveries fall due one at a time, `delivery.recoverEveryMs` apart, oldest first. New
   * events go before them. Recoveries of one account run one after another.
   *
   * @returns `count`, the number of deliveries that were created or, if pending, made due.
   * @throws `rate_limited` beyond `limits.repairsPerMinute` for a webhook, and after the recoveries
   * of its account have examined more than `limits.recoveredEventsPerMinute` events, both counted
   * per process; `webhook_disabled` while the webhook is DISABLED.
   *
   * @example
   * const { count } = await webhooks.deliveries.recover({ webhookId, state: "pending" });
   */
  recover(request: { webhookId: string } & RecoverySelection): Promise<{ readonly count: number }>;
  /**
   * Does the same for every ENABLED webhook of an account that the caller may manage, one after
   * another, within the same limits.
   *
   * @throws `rate_limited` if all of them were refused for it; an error of the storage if nothing
   * was created before it.
   */
  recover(request: { account: string } & RecoverySelection): Promise<AccountRecovery>;
  /**
   * Sends the stored events of a span of time again, also those that were delivered: for a
   * subscriber that has lost them. Each gets a new delivery with a new schedule, as by
   * `resend`, and at most a hundred. The deliveries fall due as those of `recover`, and its limits
   * count both. Events from before the registration of the webhook, and events with a pending
   * delivery, are left out. The receiver gets the same event id again.
   *
   * @throws the errors of `recover`.
   *
   * @example
   * const span = { since: "2026-03-01T08:00:00Z", until: "2026-03-01T09:00:00Z" };
   * const { count } = await webhooks.deliveries.replay({ webhookId, ...span, dryRun: true });
   */
  replay(request: ReplayRequest): Promise<{ readonly count: number }>;
  /**
   * Explains, as data and in words, why an endpoint did or did not get an event. Only a key that
   * may manage the webhook may call it. It learns of an event without a delivery only if the
   * subscriber of the webhook may read it now; any other one is `event_unknown`.
   *
   * @throws `access_unavailable` if `canRead` fails.
   *
   * @example
   * const { reason, text } = await webhooks.deliveries.explain({ eventId, webhookId });
   * // "type_not_subscribed", "The webhook does not subscribe to 'order.paid'."
   */
  explain(request: { eventId: string; webhookId: string }): Promise<Explanation>;
  /**
   * Sends a test to this webhook only, whatever types it subscribes to. The delivery is signed and
   * logged like any other, but attempted once. Its type is `webhook.test`, and it contains an
   * `OperationOutcome`, never a record. With `type`, the notification names that type and contains
   * a sample of it, so that you can test the receiver; the log still says `webhook.test`.
   *
   * A 2xx counts for the health of the endpoint like any other; a failed test does not count.
   *
   * @throws `unknown_event_type` for a type that is not in the catalogue; `invalid_request` for a
   * type that the webhook does not subscribe to; `rate_limited` and `webhook_disabled` as in
   * `recover`.
   */
  test(request: { webhookId: string; type?: string | undefined }): Promise<{ readonly id: string }>;
  /**
   * Returns the body that a test sends, as data. With `type`, it has a sample of that event type: a
   * resource with the elements that FHIR R4 requires, tagged as test data (`HTEST`), or the
   * `example` of a plain type with `"test": true`. Ids and times are examples.
   *
   * @throws `unknown_event_type`.
   */
  sample(request?: { type?: string | undefined }): Promise<JsonObject>;
  /** Returns statistics of a webhook and the health of its endpoint, at constant cost. */
  stats(webhookId: string): Promise<DeliveryCounts>;
}
