/** The delivery log as the host sees it: what was sent when, and sending again. */

import { isDate } from "node:util/types";
import { PostbellError } from "../errors.js";
import { isUuid } from "../uuid.js";
import { parseDeliveryId } from "./delivery-id.js";
import { notFound, readArguments, readLimit } from "./registrations.js";
import type { Attempt, DeliveryRecord, DeliveryState, WebhookRecord, WebhookStore } from "./store.js";

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

/** Errors of all: `not_found`, `invalid_argument`, and those of the storage. What has ended is kept for `retention`. */
export interface Deliveries {
  /** Newest first. `limit` 1 to 100, default 50; `next` is the cursor of the next page, `null` on the last. */
  list(request: {
    readonly webhookId: string;
    readonly state?: DeliveryState | undefined;
    readonly type?: string | undefined;
    readonly cursor?: string | undefined;
    readonly limit?: number | undefined;
  }): Promise<{ readonly deliveries: readonly Delivery[]; readonly next: string | null }>;
  /** With all attempts that are kept. */
  get(id: string): Promise<Delivery>;
  /**
   * One more attempt, now. A pending delivery keeps its schedule; for an ended one a new delivery of the same event is made, with a schedule of its own.
   * Returns the one that will be attempted. `invalid_argument` while the webhook is DISABLED.
   */
  resend(id: string): Promise<{ readonly id: string }>;
  /**
   * Makes deliveries of all kept events since then that the webhook subscribes to and did not get: emitted while it was disabled, or failed.
   * Those pending or delivered are left alone, so calling it twice is harmless.
   */
  recover(request: {
    readonly webhookId: string;
    readonly since: Date | string;
  }): Promise<{ readonly count: number }>;
}

const RECOVER_PAGE = 100;
const STATES: readonly DeliveryState[] = ["pending", "delivered", "failed", "withheld"];

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

export function createDeliveries(store: WebhookStore): Deliveries {
  const find = async (webhookId: string): Promise<WebhookRecord> => {
    const webhook = isUuid(webhookId) ? await store.getWebhook(webhookId) : undefined;
    if (!webhook) throw notFound("webhook");
    return webhook;
  };

  const requireEnabled = (webhook: WebhookRecord): WebhookRecord => {
    if (webhook.status === "ENABLED") return webhook;
    throw new PostbellError("invalid_argument", "The webhook is DISABLED; enable it before sending again.", {
      field: "webhookId",
    });
  };

  const get = async (id: string): Promise<DeliveryRecord> => {
    const delivery = parseDeliveryId(id) && (await store.getDelivery(id));
    if (!delivery) throw notFound("delivery");
    return delivery;
  };

  return Object.freeze<Deliveries>({
    async list(request) {
      const { webhookId, state, type, cursor, limit } = readArguments("list", request, [
        "webhookId",
        "state",
        "type",
        "cursor",
        "limit",
      ]);
      if (state !== undefined && !STATES.includes(state)) {
        throw new PostbellError("invalid_argument", `state must be one of ${STATES.join(", ")}.`, {
          field: "state",
        });
      }
      await find(webhookId);
      const page = await store.listDeliveries({ webhookId, state, type, cursor, limit: readLimit(limit) });
      return { deliveries: page.deliveries.map(toDelivery), next: page.next };
    },

    async get(id) {
      return toDelivery(await get(id));
    },

    async resend(id) {
      const { webhookId } = await get(id);
      const { account } = requireEnabled(await find(webhookId));
      const made = await store.resend({ id, account, now: store.now() });
      if (made === undefined) throw notFound("delivery");
      return { id: made };
    },

    async recover(request) {
      const { webhookId, since } = readArguments("recover", request, ["webhookId", "since"]);
      const from = readTime("since", since);
      const { account } = requireEnabled(await find(webhookId));
      let count = 0;
      let cursor: string | undefined;
      do {
        const page = await store.recover({
          webhookId,
          account,
          since: from,
          now: store.now(),
          cursor,
          limit: RECOVER_PAGE,
        });
        if (!page) throw notFound("webhook");
        count += page.count;
        cursor = page.next ?? undefined;
      } while (cursor !== undefined);
      return { count };
    },
  });
}
