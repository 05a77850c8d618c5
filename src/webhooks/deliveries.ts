/** The delivery log as the host sees it: what was sent when, and sending again. */

import { isDate } from "node:util/types";
import type { Clock } from "../clock.js";
import { PostbellError } from "../errors.js";
import { createRateLimit } from "../http/rate-limit.js";
import { isUuid } from "../uuid.js";
import { type Catalogue, focalTypes, TEST_EVENT_TYPE } from "./catalogue.js";
import { formatDeliveryId, parseDeliveryId } from "./delivery-id.js";
import { type EndpointHealth, endpointHealth } from "./health.js";
import type { ReadSettings } from "./options.js";
import { notFound, readArguments, readLimit } from "./registrations.js";
import type {
  Attempt,
  AttemptSummary,
  DeliveryRecord,
  DeliveryState,
  EventRecord,
  WebhookRecord,
  WebhookStore,
} from "./store.js";
import { subscribes } from "./subscription.js";
import { testEvent } from "./test-event.js";

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
  /** Why it ended undelivered: `exhausted`, `disabled`, `access_denied`, `access_unknown`, `crashed`, `payload_unreadable`, `payload_missing`, `record_unreadable`; else `null`. */
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
  /** When the next attempt is due; in the past where it waits for its turn, `null` where no delivery waits. */
  readonly nextAttemptAt: Date | null;
  /** The attempt that was recorded last, of any delivery. */
  readonly lastAttempt: (Omit<AttemptSummary, "at"> & { readonly at: Date }) | null;
}

/** Errors of all: `not_found`, `invalid_argument`, and those of the storage. What has ended is kept for `retention`. */
export interface Deliveries {
  /**
   * Newest first, of those created at or after `since` and before `until`. `limit` 1 to 100, default 50; `next` is the cursor of the next page, `null` on the last.
   * With `state` or `type` a page may be short, or empty, and still have a `next`. `unknown_event_type` for a `type` that is not in the catalogue, nor `webhook.test`.
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
  }): Promise<{ readonly deliveries: readonly Delivery[]; readonly next: string | null }>;
  /** With all attempts that are kept. */
  get(id: string): Promise<Delivery>;
  /**
   * One more attempt, now. A pending delivery keeps its schedule; for an ended one a new delivery of the same event is made, with a schedule of its own.
   * Returns the one that will be attempted. `webhook_disabled` while the webhook is DISABLED; `resend_limit_reached` once an event was sent again to a webhook a hundred times.
   */
  resend(id: string): Promise<{ readonly id: string }>;
  /**
   * Makes deliveries of all kept events since then that the webhook subscribes to and did not get: emitted while it was disabled, or failed.
   * Those pending, delivered or withheld are left alone, so calling it twice is harmless, and where it was interrupted it may be made again. What was emitted before the webhook was registered is no loss of its.
   *
   * They fall due one after another, `delivery.recoverEveryMs` apart, the oldest first, and new events go before them.
   * `rate_limited` beyond `limits.repairsPerMinute` of a webhook, in this process; `webhook_disabled` while it is DISABLED.
   */
  recover(request: {
    readonly webhookId: string;
    readonly since: Date | string;
  }): Promise<{ readonly count: number }>;
  /**
   * Sends a test to this webhook alone, whatever types it subscribes to: signed and logged like any other, attempted once. It is of the type `webhook.test`
   * and about an `OperationOutcome`, never about a record. With `type` the notification names that type, to try the receiver's own routing; the log still says `webhook.test`.
   *
   * A 2xx counts for the endpoint's health like any other; a test that fails counts for nothing.
   * `unknown_event_type` for a type that is not in the catalogue; `invalid_request` for one that the webhook does not subscribe to; `rate_limited` and `webhook_disabled` as in `recover`.
   */
  test(request: {
    readonly webhookId: string;
    readonly type?: string | undefined;
  }): Promise<{ readonly id: string }>;
  /** What the log of a webhook comes to, and how its endpoint is. Costs the same however long the log is. */
  stats(request: { readonly webhookId: string }): Promise<DeliveryCounts>;
}

const RECOVER_PAGE = 100;
/** Each one is a record of its own beside its event: without a bound somebody who resends in a loop would fill the storage. */
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

/** Epoch milliseconds of an ISO 8601 date and time; NaN where it is none. The engine would take the 30th of February for the 2nd of March. */
function parseTime(text: string): number {
  const day = Date.parse(`${DATE_TIME.exec(text)?.[1]}T00:00:00Z`);
  return Number.isNaN(day) || !text.startsWith(new Date(day).toISOString().slice(0, 10))
    ? Number.NaN
    : Date.parse(text);
}

/** A time that a host gives: a Date, or ISO 8601 with its offset. */
export function readTime(field: string, value: Date | string): number {
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

export function createDeliveries({
  store,
  settings: { delivery, health, limits },
  catalogue,
  clock,
  append,
}: {
  readonly store: WebhookStore;
  readonly settings: ReadSettings;
  readonly catalogue: Catalogue;
  readonly clock: Clock;
  /** Stores an event for one webhook. */
  readonly append: (
    event: EventRecord,
    webhookId: string,
  ) => Promise<{ readonly deliveries: readonly { readonly id: string }[] }>;
}): Deliveries {
  const repairs = createRateLimit({ perMinute: limits.repairsPerMinute, clock });

  const takeTurn = (what: "recover" | "test", webhookId: string): void => {
    const seconds = repairs.take(`${what} ${webhookId}`);
    if (seconds === 0) return;
    const asked = what === "test" ? "tests" : "recoveries";
    throw new PostbellError("rate_limited", `Too many ${asked} of this webhook; try again in ${seconds} s.`, {
      retryAfterSeconds: seconds,
    });
  };

  const find = async (webhookId: string): Promise<WebhookRecord> => {
    const webhook = isUuid(webhookId) ? await store.getWebhook(webhookId) : undefined;
    if (!webhook) throw notFound("webhook");
    return webhook;
  };

  const requireEnabled = (webhook: WebhookRecord): WebhookRecord => {
    if (webhook.status !== "ENABLED") throw disabled();
    return webhook;
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

  return Object.freeze<Deliveries>({
    async list(request) {
      const { webhookId, state, type, since, until, cursor, limit } = readArguments("list", request, [
        "webhookId",
        "state",
        "type",
        "since",
        "until",
        "cursor",
        "limit",
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
        since: since === undefined ? undefined : readTime("since", since),
        until: until === undefined ? undefined : readTime("until", until),
        cursor,
        limit: readLimit(limit),
      };
      await find(webhookId);
      const page = await store.listDeliveries(asked);
      return { deliveries: page.deliveries.map(toDelivery), next: page.next };
    },

    async get(id) {
      return toDelivery(await get(id));
    },

    async resend(id) {
      const { webhookId, eventId } = await get(id);
      const { account } = requireEnabled(await find(webhookId));
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
      const { webhookId, since } = readArguments("recover", request, ["webhookId", "since"]);
      const from = readTime("since", since);
      const { account, createdAt } = requireEnabled(await find(webhookId));
      takeTurn("recover", webhookId);
      const everyMs = delivery.recoverEveryMs;
      let dueAt = store.now() + everyMs;
      let count = 0;
      let cursor: string | undefined;
      do {
        const page = await store.recover({
          webhookId,
          account,
          since: Math.max(from, createdAt),
          dueAt,
          everyMs,
          now: store.now(),
          cursor,
          limit: RECOVER_PAGE,
        });
        if (!page) throw notFound("webhook");
        count += page.count;
        dueAt += page.count * everyMs;
        cursor = page.next ?? undefined;
      } while (cursor !== undefined);
      return { count };
    },

    async test(request) {
      const { webhookId, type = TEST_EVENT_TYPE } = readArguments("test", request, ["webhookId", "type"]);
      requireType(type);
      const { account, eventTypes } = requireEnabled(await find(webhookId));
      requireSubscribed(eventTypes, type);
      takeTurn("test", webhookId);
      const event = await testEvent({ account, sentType: type, now: store.now() });
      const [made] = (await append(event, webhookId)).deliveries;
      // Disabled or deleted since it was looked up.
      if (!made) throw disabled();
      return { id: made.id };
    },

    async stats(request) {
      const { webhookId } = readArguments("stats", request, ["webhookId"]);
      const webhook = await find(webhookId);
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
