/** Reads the delivery log: deliveries, their statistics, and what an attempt would send. */

import { isPostbellError, PostbellError } from "../../core/errors.js";
import { readCallArguments } from "../../core/known-names.js";
import type { Send } from "../../outbound/types.js";
import { type Actor, hasAuthority } from "../access.js";
import {
  checkName,
  checkTag,
  invalidField,
  notFound,
  parseEventTime,
  readLimit,
  requireOneScope,
  selectAccount,
} from "../call-arguments.js";
import type { ServiceBase, WebhooksConfig } from "../config/config.js";
import { requireLoggedType, TEST_EVENT_TYPE } from "../event-types/catalogue.js";
import { type PreparedEvent, readPayload } from "../events/notification.js";
import { PagedList } from "../list.js";
import type { Entitlement } from "../registrations/entitlement.js";
import { listHeaders } from "../sender.js";
import type { StartReminder } from "../start-reminder.js";
import { getRotation } from "../store/records.js";
import type {
  DeliveryRecord,
  DeliveryState,
  DeliveryStats,
  EventKey,
  EventRecord,
  WebhookRecord,
} from "../store.js";
import { buildBody, createPermissions } from "./attempt.js";
import { type Deliveries, type Delivery, type DeliveryCounts, PER_ATTEMPT } from "./deliveries.js";
import {
  type LogRow,
  listAccountDeliveries,
  listEventDeliveries,
  listWebhookDeliveries,
  readEach,
} from "./delivery-lists.js";
import { type AppendForWebhook, createDeliveryRepairs } from "./delivery-repairs.js";
import { endpointHealth } from "./endpoint-health.js";
import { createEventFeed } from "./event-feed.js";
import { createExaminations } from "./examine.js";
import { createExplain, readEventId } from "./explanation.js";
import { listByKey } from "./key-search.js";

const STATES: DeliveryState[] = ["pending", "delivered", "failed", "withheld"];

const LIST_ARGUMENTS = [
  "webhookId",
  "account",
  "eventId",
  "subject",
  "tag",
  "state",
  "type",
  "since",
  "until",
  "cursor",
  "limit",
] as const;

type ListRequest = Parameters<Deliveries["list"]>[0];

/** Returns the log as an actor may use it. Its limits count for all actors together. */
export function createDeliveryLog(
  base: ServiceBase,
  entitlement: Entitlement,
  append: AppendForWebhook,
  { reminder, ...sending }: { reminder: StartReminder; send: Send; getSignal: () => AbortSignal },
): (actor: Actor) => Deliveries {
  const { store, sealer, config, catalogue } = base;
  const permissionFor = createPermissions(base);

  /** A hook that fails hides the details only: every key of the account may read the rest. */
  const mayReadDetails = (webhook: WebhookRecord, actor: Actor): Promise<boolean> =>
    entitlement.canManage(webhook, actor).catch((error: unknown) => {
      if (isPostbellError(error, "access_unavailable")) return false;
      throw error;
    });

  /**
   * Converts records for the actor. Calls a hook of the host only for a webhook whose records have
   * details.
   */
  const toVisible = async (stored: LogRow[], actor: Actor): Promise<Delivery[]> => {
    const hideUnsent = hasAuthority(actor) ? (record: DeliveryRecord) => record : hideUnsentKeys;
    const rows = stored.map(({ delivery, webhook }) => ({ record: hideUnsent(delivery), webhook }));
    const withDetails = rows.filter(({ record }) => hasDetails(record));
    const webhooks = [...new Map(withDetails.map(({ webhook }) => [webhook.id, webhook])).values()];
    const isAllowed = await readEach(webhooks, (webhook) => mayReadDetails(webhook, actor));
    const hidden = new Set(webhooks.filter((_, index) => !isAllowed[index]).map(({ id }) => id));
    return rows.map(({ record, webhook }) =>
      toDelivery(hidden.has(webhook.id) ? hideDetails(record) : record),
    );
  };

  /** Returns for each entry of the event whether it is sent to the webhook. */
  const selectEntries = async (
    { account, subscriberId }: WebhookRecord,
    event: PreparedEvent,
  ): Promise<readonly boolean[]> => {
    const allowed = await permissionFor({ id: subscriberId, account }, event);
    if (allowed === null) {
      throw new PostbellError(
        "access_unavailable",
        "access.canRead threw, took too long or returned neither true nor false; try again later.",
      );
    }
    if (allowed[0] === true) return allowed;
    throw new PostbellError(
      "record_not_readable",
      "The subscriber of the webhook may not read this record now, so nothing would be sent.",
    );
  };

  /** True if the subscriber of a webhook may read an event that it has no delivery of. */
  const mayKnow = async (webhook: WebhookRecord, stored: EventRecord): Promise<boolean> => {
    if (stored.type === TEST_EVENT_TYPE) return false;
    try {
      await selectEntries(webhook, readEvent(stored));
      return true;
    } catch (error) {
      if (isPostbellError(error, "record_not_readable") || isPostbellError(error, "not_found")) return false;
      throw error;
    }
  };

  const list = async (request: ListRequest, cursor: string | undefined, actor: Actor) => {
    const input = readCallArguments("list", request, LIST_ARGUMENTS);
    const { webhookId, state, type, ...rest } = input;
    const account =
      webhookId === undefined && actor !== "host" ? selectAccount(input.account, actor) : input.account;
    requireOneScope("list", { webhookId, account });
    const eventId = rest.eventId === undefined ? undefined : readEventId(rest.eventId);
    if (state !== undefined) requireState(state);
    if (type !== undefined) requireLoggedType(catalogue, type);
    const since = readOptionalTime("since", rest.since);
    const until = readOptionalTime("until", rest.until);
    const query = { state, type, since, until, cursor, limit: readLimit(rest.limit) };
    const webhooks =
      account === undefined
        ? [await entitlement.find(webhookId ?? "", actor)]
        : await entitlement.findAll(account, actor);
    const key = readKey(rest);
    if (key !== undefined) {
      const scope = account ?? webhooks[0]?.account ?? "";
      const show = (rows: LogRow[]) => toVisible(rows, actor);
      return listByKey(store, { ...query, account: scope, key, webhookId, webhooks, show });
    }
    const listLog = account === undefined ? listWebhookDeliveries : listAccountDeliveries;
    const { rows, next } =
      eventId === undefined
        ? await listLog(store, webhooks, query)
        : await listEventDeliveries(store, eventId, webhooks, query);
    return { items: await toVisible(rows, actor), next };
  };

  const explain = createExplain(base, entitlement, mayKnow);
  const feed = createEventFeed(base, entitlement);
  const repairs = createDeliveryRepairs(base, entitlement, append, reminder);
  const examinations = createExaminations(base, entitlement, sending);

  return (actor) =>
    Object.freeze<Deliveries>({
      list: (request) => new PagedList(request?.cursor, (cursor) => list(request, cursor, actor)),

      async get(id) {
        const { delivery, webhook } = await entitlement.findDelivery(id, actor);
        const [visible] = await toVisible([{ delivery, webhook }], actor);
        if (!visible) throw notFound("delivery");
        return visible;
      },

      async inspect(request) {
        const { id, includeBody = false } = readCallArguments("inspect", request, ["id", "includeBody"]);
        if (typeof includeBody !== "boolean")
          throw invalidField("includeBody", "includeBody must be true or false.");
        const { delivery, webhook } = await entitlement.findDelivery(id, actor);
        await entitlement.requireManager(webhook, actor);
        const found = await store.getEvent({ account: webhook.account, id: delivery.eventId });
        const stored = await sealer.openStored(found);
        if (!stored) throw notFound("event");
        const event = readEvent(stored);
        const allowed = delivery.type === TEST_EVENT_TYPE ? [true] : await selectEntries(webhook, event);
        const body = buildBody(config, webhook, event, allowed);
        return {
          method: "POST",
          url: webhook.url,
          headers: listHeaders(config, { id: event.id, perAttempt: PER_ATTEMPT }),
          bytes: body.length,
          body: includeBody ? body.toString() : null,
        };
      },

      explain: (request) => explain(request, actor),

      async stats(webhookId) {
        const webhook = await entitlement.find(webhookId, actor);
        const now = store.now();
        const stats = await store.deliveryStats(webhookId, now);
        if (!stats) throw notFound("webhook");
        return toCounts(stats, webhook, { config, now });
      },

      listEvents: feed(actor),

      ...repairs(actor),
      ...examinations(actor),
    });
}

/** Reads the subject or the tag of a search. Throws `invalid_argument`. */
function readKey({ subject, tag, eventId }: Parameters<Deliveries["list"]>[0]): EventKey | undefined {
  const named = Object.entries({ subject, tag, eventId }).filter(([, value]) => value !== undefined);
  const [field = "subject"] = named[1] ?? [];
  if (named.length > 1) {
    const message = "list() takes one of subject, tag and eventId.";
    throw new PostbellError("invalid_argument", message, { field });
  }
  if (subject !== undefined) {
    checkName("subject", subject);
    return { subject };
  }
  if (tag === undefined) return undefined;
  checkTag("tag", tag);
  return { tag };
}

function requireState(state: DeliveryState): void {
  if (STATES.includes(state)) return;
  const message = `state must be one of ${STATES.join(", ")}.`;
  throw new PostbellError("invalid_argument", message, { field: "state" });
}

const readOptionalTime = (field: string, time: Date | string | undefined): number | undefined =>
  time === undefined ? undefined : parseEventTime(field, time);

function readEvent({ payload }: EventRecord): PreparedEvent {
  try {
    return readPayload(payload);
  } catch {
    // A later version may have written it.
    throw notFound("event");
  }
}

const toDateOrNull = (ms: number | null): Date | null => (ms === null ? null : new Date(ms));

function toCounts(
  stats: DeliveryStats,
  webhook: WebhookRecord,
  { config: { endpoints, registrations }, now }: { config: WebhooksConfig; now: number },
): DeliveryCounts {
  const { nextDueAt, lastAttempt, failedTests, filtered, lastDay, hours } = stats;
  const { succeeded, failed, durationMs } = lastDay;
  const { status, failingSince, warnAt, disableAt } = endpointHealth(webhook, endpoints);
  return {
    pending: stats.pending,
    delivered: stats.delivered,
    failed: stats.failed - failedTests,
    withheld: stats.withheld,
    ...(registrations.filters && { filtered }),
    eventTypes: webhook.eventTypes,
    lastDay: {
      attempts: succeeded + failed,
      succeeded,
      averageMs: succeeded === 0 ? null : Math.round(durationMs / succeeded),
    },
    hours: hours.map((hour) => ({ ...hour, at: new Date(hour.at) })),
    health: {
      status,
      failingSince: toDateOrNull(failingSince),
      warnAt: toDateOrNull(warnAt),
      disableAt: toDateOrNull(disableAt),
    },
    rotatesAt: toDateOrNull(getRotation(webhook, now)?.rotateAt ?? null),
    nextAttemptAt: toDateOrNull(nextDueAt),
    lastAttempt: lastAttempt && { ...lastAttempt, at: new Date(lastAttempt.at) },
  };
}

/** Hides what only the manager of a webhook may see: excerpts of responses, subject and tags. */
const hideDetails = (record: DeliveryRecord): DeliveryRecord => ({
  ...record,
  subject: null,
  tags: [],
  attempts: record.attempts.map((attempt) => ({ ...attempt, excerpt: null })),
});

const hasDetails = ({ subject, tags, attempts }: DeliveryRecord): boolean =>
  subject !== null || tags.length > 0 || attempts.some(({ excerpt }) => excerpt !== null);

/**
 * Hides the subject and the tags of a record that the subscriber may not read, also if `canRead`
 * has not been called yet: each attempt calls it.
 */
const hideUnsentKeys = (record: DeliveryRecord): DeliveryRecord =>
  record.state === "withheld" || record.attempts.length === 0
    ? { ...record, subject: null, tags: [] }
    : record;

const toDelivery = (record: DeliveryRecord): Delivery => ({
  id: record.id,
  webhookId: record.webhookId,
  eventId: record.eventId,
  type: record.type,
  subject: record.subject,
  tags: record.tags,
  state: record.state,
  reason: record.reason,
  createdAt: new Date(record.createdAt),
  startedAt: toDateOrNull(record.startedAt),
  nextAttemptAt: toDateOrNull(record.dueAt),
  endedAt: toDateOrNull(record.endedAt),
  attempts: record.attempts.map((attempt) => ({ ...attempt, at: new Date(attempt.at) })),
});
