/** The delivery log as the host sees it: what was sent when, and sending again. */

import { isDate } from "node:util/types";
import type { Clock } from "../../core/clock.js";
import { isPostbellError, PostbellError } from "../../core/errors.js";
import { createRateLimit } from "../../http/rate-limit.js";
import { TEXT_LENGTHS } from "../api/text-lengths.js";
import { notFound, readCallArguments, readLimit } from "../call-arguments.js";
import { type Catalogue, focalTypes, TEST_EVENT_TYPE } from "../event-types/catalogue.js";
import { subscribes } from "../event-types/subscription.js";
import { createTestEvent } from "../events/test-event.js";
import type { Entitlement } from "../registrations/entitlement.js";
import type { WebhooksSettings } from "../settings/settings.js";
import type {
  Attempt,
  AttemptSummary,
  DeliveryRecord,
  DeliveryState,
  EventRecord,
  WebhookRecord,
  WebhookStore,
} from "../store.js";
import { formatDeliveryId, parseDeliveryId } from "./delivery-id.js";
import { type EndpointHealth, endpointHealth } from "./endpoint-health.js";
import { createRecover } from "./recovery.js";

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
  readonly state: DeliveryState;
  /**
   * Why it ended undelivered: `exhausted`, `disabled`, `access_denied`, `access_unknown`,
   * `crashed`, `payload_unreadable`, `payload_missing`, `record_unreadable`; else `null`.
   */
  readonly reason: string | null;
  readonly createdAt: Date;
  readonly startedAt: Date | null;
  /** When the next attempt is due; `null` once it has ended. */
  readonly nextAttemptAt: Date | null;
  readonly endedAt: Date | null;
  readonly attempts: readonly DeliveryAttempt[];
}

/** The log of one webhook in figures. */
export interface DeliveryCounts extends Readonly<Record<DeliveryState, number>> {
  readonly health: EndpointHealth<Date>;
  /**
   * When the next attempt is due; in the past where it waits for its turn, `null` where no delivery
   * waits.
   */
  readonly nextAttemptAt: Date | null;
  /** The attempt that was recorded last, of any delivery. */
  readonly lastAttempt: (Omit<AttemptSummary, "at"> & { readonly at: Date }) | null;
}

/**
 * The delivery log, and what repairs it. What has ended is kept for `retention`.
 *
 * A call without `as` acts as the host; with `as` it is held to what that API key may do, as in
 * `registrations`: every key of the account reads the log, without the excerpts of answers, which
 * may repeat a record; `resend`, `recover` and `test` are for whoever may manage the webhook.
 *
 * Errors of all: `not_found`, `invalid_argument`, with `as` also `webhook_owned_by_another_key` and
 * `access_unavailable`, and those of the storage.
 */
export interface Deliveries {
  /**
   * Newest first, of those created at or after `since` and before `until`. `limit` 1 to 100,
   * default 50; `next` is the cursor of the next page, `null` on the last. A call examines a
   * bounded part of the log, so a page may hold fewer than `limit`, or none, and still have a
   * `next`: read on until it is `null`. `unknown_event_type` for a `type` that is not in the
   * catalogue, nor `webhook.test`.
   */
  list(request: {
    readonly webhookId: string;
    readonly state?: DeliveryState | undefined;
    readonly type?: string | undefined;
    /** A Date, or ISO 8601 with its offset. */
    readonly since?: Date | string | undefined;
    readonly until?: Date | string | undefined;
    readonly cursor?: string | undefined;
    readonly limit?: number | undefined;
    readonly as?: Subscriber;
  }): Promise<{ readonly deliveries: readonly Delivery[]; readonly next: string | null }>;
  /** With all attempts that are kept. */
  get(id: string, options?: Actor): Promise<Delivery>;
  /**
   * One more attempt, now. A pending delivery keeps its schedule; for an ended one a new delivery
   * of the same event is made, with a schedule of its own. Returns the one that will be attempted.
   * `webhook_disabled` while the webhook is DISABLED; `resend_limit_reached` once an event was sent
   * again to a webhook a hundred times.
   */
  resend(id: string, options?: Actor): Promise<{ readonly id: string }>;
  /**
   * Makes deliveries of all kept events since then that the webhook subscribes to and did not get:
   * emitted while it was disabled, or failed. Those pending, delivered or withheld are left alone,
   * so calling it twice is harmless, and where it was interrupted it may be made again. What was
   * emitted before the webhook was registered is no loss of its.
   *
   * They fall due one after another, `delivery.recoverEveryMs` apart, the oldest first, and new
   * events go before them. Recoveries of one account run one after the other. `rate_limited` beyond
   * `limits.repairsPerMinute` of a webhook, and once the recoveries of its account have examined
   * more than `limits.recoveredEventsPerMinute`, both in this process; `webhook_disabled` while it
   * is DISABLED.
   */
  recover(request: {
    readonly webhookId: string;
    readonly since: Date | string;
    readonly as?: Subscriber;
  }): Promise<{ readonly count: number }>;
  /**
   * Sends a test to this webhook alone, whatever types it subscribes to: signed and logged like any
   * other, attempted once. It is of the type `webhook.test` and about an `OperationOutcome`, never
   * about a record. With `type` the notification names that type, to try the receiver's own
   * routing; the log still says `webhook.test`.
   *
   * A 2xx counts for the endpoint's health like any other; a test that fails counts for nothing.
   * `unknown_event_type` for a type that is not in the catalogue; `invalid_request` for one that
   * the webhook does not subscribe to; `rate_limited` and `webhook_disabled` as in `recover`.
   */
  test(request: {
    readonly webhookId: string;
    readonly type?: string | undefined;
    readonly as?: Subscriber;
  }): Promise<{ readonly id: string }>;
  /**
   * What the log of a webhook comes to, and how its endpoint is. Costs the same however long the
   * log is.
   */
  stats(request: { readonly webhookId: string; readonly as?: Subscriber }): Promise<DeliveryCounts>;
}

/** How far apart the times of two processes on one storage may be. */
const CLOCK_SKEW_MS = 60_000;
/**
 * Each one is a record of its own beside its event: without a bound somebody who resends in a loop
 * would fill the storage.
 */
const MOST_RESENT = 100;
const STATES: readonly DeliveryState[] = ["pending", "delivered", "failed", "withheld"];

const invalid = (field: string, message: string): PostbellError =>
  new PostbellError("invalid_request", message, { field });

const disabled = (): PostbellError =>
  new PostbellError(
    "webhook_disabled",
    "The webhook is DISABLED, so nothing is sent to it; enable it first.",
  );

const dateOrNull = (ms: number | null): Date | null => (ms === null ? null : new Date(ms));

const withoutExcerpts = (record: DeliveryRecord): DeliveryRecord => ({
  ...record,
  attempts: record.attempts.map((attempt) => ({ ...attempt, excerpt: null })),
});

const toDelivery = (record: DeliveryRecord): Delivery => ({
  id: record.id,
  webhookId: record.webhookId,
  eventId: record.eventId,
  type: record.type,
  state: record.state,
  reason: record.reason,
  createdAt: new Date(record.createdAt),
  startedAt: dateOrNull(record.startedAt),
  nextAttemptAt: dateOrNull(record.dueAt),
  endedAt: dateOrNull(record.endedAt),
  attempts: record.attempts.map((attempt) => ({ ...attempt, at: new Date(attempt.at) })),
});

const DATE_TIME = /^([0-9]{4}-[0-9]{2}-[0-9]{2})T[0-9:.]{5,18}(?:Z|[+-][0-9]{2}:[0-9]{2})$/;
/** ISO 8601 needs a sign for years beyond these, and FHIR does not know such. */
const FIRST_TIME = Date.parse("0000-01-01T00:00:00Z");
const LAST_TIME = Date.parse("9999-12-31T23:59:59.999Z");

/**
 * Epoch milliseconds of an ISO 8601 date and time; NaN where it is none. The engine would take the
 * 30th of February for the 2nd of March.
 */
function parseTime(text: string): number {
  if (text.length > TEXT_LENGTHS.time) return Number.NaN;
  const day = Date.parse(`${DATE_TIME.exec(text)?.[1]}T00:00:00Z`);
  return Number.isNaN(day) || !text.startsWith(new Date(day).toISOString().slice(0, 10))
    ? Number.NaN
    : Date.parse(text);
}

/** A time that a host gives: a Date, or ISO 8601 with its offset. */
export function readTimeFilter(field: string, value: Date | string): number {
  const time = typeof value === "string" ? parseTime(value) : isDate(value) ? value.getTime() : Number.NaN;
  if (time >= FIRST_TIME && time <= LAST_TIME) return time;
  throw new PostbellError(
    "invalid_argument",
    `${field} must be a Date or an ISO 8601 date and time with its offset.`,
    {
      field,
    },
  );
}

export function createDeliveryLog({
  store,
  settings,
  catalogue,
  entitlement,
  clock,
  append,
}: {
  readonly store: WebhookStore;
  readonly settings: WebhooksSettings;
  readonly catalogue: Catalogue;
  readonly entitlement: Entitlement;
  readonly clock: Clock;
  /** Stores an event for one webhook. */
  readonly append: (
    event: EventRecord,
    webhookId: string,
  ) => Promise<{ readonly deliveries: readonly { readonly id: string }[] }>;
}): Deliveries {
  const { health, limits } = settings;
  const repairs = createRateLimit({ perMinute: limits.repairsPerMinute, clock });
  const recover = createRecover({ store, settings, clock });

  const turnOf = (what: "recover" | "test", webhookId: string): string => `${what} ${webhookId}`;

  const takeTurn = (what: "recover" | "test", webhookId: string): void => {
    const seconds = repairs.take(turnOf(what, webhookId));
    if (seconds === 0) return;
    const asked = what === "test" ? "tests" : "recoveries";
    throw new PostbellError("rate_limited", `Too many ${asked} of this webhook; try again in ${seconds} s.`, {
      retryAfterSeconds: seconds,
    });
  };

  /** The same webhook, if the actor may have something sent to it and it is ENABLED. */
  const requireToSend = async (webhook: WebhookRecord, actor: Actor): Promise<WebhookRecord> => {
    await entitlement.requireManager(webhook, actor);
    if (webhook.status !== "ENABLED") throw disabled();
    return webhook;
  };

  /** A hook that fails hides the excerpts; the rest of the log is everybody's to read. */
  const mayReadExcerpts = (webhook: WebhookRecord, actor: Actor): Promise<boolean> =>
    entitlement.canManage(webhook, actor).catch((error: unknown) => {
      if (isPostbellError(error, "access_unavailable")) return false;
      throw error;
    });

  /** The host is asked about the actor only where there is an excerpt to show. */
  const toShown = async (
    records: readonly DeliveryRecord[],
    webhook: WebhookRecord,
    actor: Actor,
  ): Promise<readonly Delivery[]> => {
    const hasExcerpt = records.some(({ attempts }) => attempts.some(({ excerpt }) => excerpt !== null));
    const isShown = !hasExcerpt || (await mayReadExcerpts(webhook, actor));
    return (isShown ? records : records.map(withoutExcerpts)).map(toDelivery);
  };

  /** Of something in the log: of the catalogue, or of a test. */
  const requireType = (type: unknown): void => {
    if (typeof type !== "string") throw invalid("type", "type must be a string, the name of an event type.");
    if (type !== TEST_EVENT_TYPE) focalTypes(catalogue, type);
  };

  const requireSubscribed = (eventTypes: WebhookRecord["eventTypes"], type: string): void => {
    if (type !== TEST_EVENT_TYPE && !subscribes(eventTypes, type))
      throw invalid("type", `The webhook does not subscribe to '${type}', so it never gets such an event.`);
  };

  const get = async (id: string): Promise<DeliveryRecord> => {
    const delivery = parseDeliveryId(id) && (await store.getDelivery(id));
    if (!delivery) throw notFound("delivery");
    return delivery;
  };

  /**
   * The webhook of a delivery. Of another account, the delivery is answered like one that does not
   * exist.
   */
  const webhookOf = async ({ webhookId }: DeliveryRecord, actor: Actor): Promise<WebhookRecord> => {
    try {
      return await entitlement.find(webhookId, actor);
    } catch (error) {
      throw isPostbellError(error, "not_found") ? notFound("delivery") : error;
    }
  };

  return Object.freeze<Deliveries>({
    async list(request) {
      const { webhookId, state, type, since, until, cursor, limit } = readCallArguments("list", request, [
        "webhookId",
        "state",
        "type",
        "since",
        "until",
        "cursor",
        "limit",
        "as",
      ]);
      if (state !== undefined && !STATES.includes(state)) {
        throw new PostbellError("invalid_argument", `state must be one of ${STATES.join(", ")}.`, {
          field: "state",
        });
      }
      if (type !== undefined) requireType(type);
      const asked = {
        webhookId,
        state,
        type,
        since: since === undefined ? undefined : readTimeFilter("since", since),
        until: until === undefined ? undefined : readTimeFilter("until", until),
        cursor,
        limit: readLimit(limit),
      };
      const webhook = await entitlement.find(webhookId, request);
      // Its log begins with the registration, so the account's events before that need not be
      // examined.
      const earliest = webhook.createdAt - CLOCK_SKEW_MS;
      const page = await store.listDeliveries({
        ...asked,
        since: Math.max(asked.since ?? earliest, earliest),
      });
      return { deliveries: await toShown(page.deliveries, webhook, request), next: page.next };
    },

    async get(id, options = {}) {
      const actor = readCallArguments("get", options, ["as"]);
      const record = await get(id);
      if (!("as" in actor)) return toDelivery(record);
      const [shown] = await toShown([record], await webhookOf(record, actor), actor);
      if (!shown) throw notFound("delivery");
      return shown;
    },

    async resend(id, options = {}) {
      const actor = readCallArguments("resend", options, ["as"]);
      const record = await get(id);
      const { webhookId, eventId } = record;
      const { account } = await requireToSend(await webhookOf(record, actor), actor);
      if (await store.getDelivery(formatDeliveryId({ webhookId, eventId, serial: MOST_RESENT }))) {
        throw new PostbellError(
          "resend_limit_reached",
          `This event was sent to the webhook again ${MOST_RESENT} times, the most there may be.`,
        );
      }
      const made = await store.resend({ id, account, now: store.now() });
      if (made === undefined) throw notFound("delivery");
      return { id: made };
    },

    async recover(request) {
      const { webhookId, since } = readCallArguments("recover", request, ["webhookId", "since", "as"]);
      const from = readTimeFilter("since", since);
      const webhook = await requireToSend(await entitlement.find(webhookId, request), request);
      takeTurn("recover", webhookId);
      try {
        return { count: await recover(webhook, from) };
      } catch (error) {
        // Refused by the budget of the account: nothing of this webhook was examined.
        if (isPostbellError(error, "rate_limited")) repairs.putBack(turnOf("recover", webhookId));
        throw error;
      }
    },

    async test(request) {
      const { webhookId, type = TEST_EVENT_TYPE } = readCallArguments("test", request, [
        "webhookId",
        "type",
        "as",
      ]);
      requireType(type);
      const { account, eventTypes } = await requireToSend(
        await entitlement.find(webhookId, request),
        request,
      );
      requireSubscribed(eventTypes, type);
      takeTurn("test", webhookId);
      const event = await createTestEvent({ account, sentType: type, now: store.now() });
      const [made] = (await append(event, webhookId)).deliveries;
      // Disabled or deleted since it was looked up.
      if (!made) throw disabled();
      return { id: made.id };
    },

    async stats(request) {
      const { webhookId } = readCallArguments("stats", request, ["webhookId", "as"]);
      const webhook = await entitlement.find(webhookId, request);
      const stats = await store.deliveryStats(webhookId);
      if (!stats) throw notFound("webhook");
      const { nextDueAt, lastAttempt, ...counts } = stats;
      const { status, failingSince, warnAt, disableAt } = endpointHealth(webhook, health);
      return {
        ...counts,
        health: {
          status,
          failingSince: dateOrNull(failingSince),
          warnAt: dateOrNull(warnAt),
          disableAt: dateOrNull(disableAt),
        },
        nextAttemptAt: dateOrNull(nextDueAt),
        lastAttempt: lastAttempt && { ...lastAttempt, at: new Date(lastAttempt.at) },
      };
    },
  });
}
