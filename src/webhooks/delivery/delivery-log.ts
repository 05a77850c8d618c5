/** Reads the delivery log: deliveries of a webhook, and its statistics. */

import { PostbellError } from "../../core/errors.js";
import { notFound, readCallArguments, readLimit } from "../call-arguments.js";
import { getRotation } from "../registrations/secret-rotation.js";
import type { DeliveryState, DeliveryStats, RecentAttempts, WebhookRecord } from "../store.js";
import type { Deliveries, DeliveryCounts } from "./deliveries.js";
import { createDeliveryLookup } from "./delivery-lookup.js";
import { createDeliveryRepairs, type DeliveryRepairsContext } from "./delivery-repairs.js";
import { toDateOrNull } from "./delivery-view.js";
import { createDescribeRequest, type DescribeRequestContext } from "./describe-request.js";
import type { HealthPolicy } from "./endpoint-health.js";
import { endpointHealth } from "./endpoint-health.js";
import { listEventDeliveries, readEventId } from "./event-deliveries.js";
import { parseEventTime } from "./time-filter.js";
import { requireLoggedType } from "./type-filter.js";

/** The most that the clocks of two processes on one storage may differ. */
const CLOCK_SKEW_MS = 60_000;

const STATES: readonly DeliveryState[] = ["pending", "delivered", "failed", "withheld"];

const LIST_ARGUMENTS = [
  "webhookId",
  "eventId",
  "state",
  "type",
  "since",
  "until",
  "cursor",
  "limit",
  "as",
] as const;

function requireState(state: DeliveryState): void {
  if (STATES.includes(state)) return;
  const message = `state must be one of ${STATES.join(", ")}.`;
  throw new PostbellError("invalid_argument", message, { field: "state" });
}

const readOptionalTime = (field: string, time: Date | string | undefined): number | undefined =>
  time === undefined ? undefined : parseEventTime(field, time);

const summariseAttempts = ({ succeeded, failed, durationMs }: RecentAttempts): DeliveryCounts["lastDay"] => ({
  attempts: succeeded + failed,
  succeeded,
  averageMs: succeeded === 0 ? null : Math.round(durationMs / succeeded),
});

function toCounts(
  stats: DeliveryStats,
  webhook: WebhookRecord,
  { policy, now }: { readonly policy: HealthPolicy; readonly now: number },
): DeliveryCounts {
  const { nextDueAt, lastAttempt, failedTests, lastDay, ...counts } = stats;
  const { status, failingSince, warnAt, disableAt } = endpointHealth(webhook, policy);
  return {
    ...counts,
    failed: counts.failed - failedTests,
    eventTypes: webhook.eventTypes,
    lastDay: summariseAttempts(lastDay),
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

export function createDeliveryLog(context: DeliveryRepairsContext & DescribeRequestContext): Deliveries {
  const { store, settings, catalogue, entitlement } = context;
  const lookup = createDeliveryLookup(store, entitlement);

  return Object.freeze<Deliveries>({
    async list(request) {
      const { webhookId, state, type, cursor, ...rest } = readCallArguments("list", request, LIST_ARGUMENTS);
      const eventId = rest.eventId === undefined ? undefined : readEventId(rest.eventId);
      if (state !== undefined) requireState(state);
      if (type !== undefined) requireLoggedType(catalogue, type);
      const since = readOptionalTime("since", rest.since);
      const until = readOptionalTime("until", rest.until);
      const limit = readLimit(rest.limit);
      const webhook = await entitlement.find(webhookId, request);
      // The log begins with the registration: earlier events of the account need not be examined.
      const earliest = webhook.createdAt - CLOCK_SKEW_MS;
      const query = {
        webhookId,
        state,
        type,
        since: Math.max(since ?? earliest, earliest),
        until,
        cursor,
        limit,
      };
      const page =
        eventId === undefined
          ? await store.listDeliveries(query)
          : await listEventDeliveries(store, eventId, query);
      return { deliveries: await lookup.toVisible(page.deliveries, webhook, request), next: page.next };
    },

    async get(id, options = {}) {
      const actor = readCallArguments("get", options, ["as"]);
      const record = await lookup.findDelivery(id);
      const webhook = await lookup.findWebhook(record, actor);
      const [visible] = await lookup.toVisible([record], webhook, actor);
      if (!visible) throw notFound("delivery");
      return visible;
    },

    async stats(request) {
      const { webhookId } = readCallArguments("stats", request, ["webhookId", "as"]);
      const webhook = await entitlement.find(webhookId, request);
      const now = store.now();
      const stats = await store.deliveryStats(webhookId, now);
      if (!stats) throw notFound("webhook");
      return toCounts(stats, webhook, { policy: settings.health, now });
    },

    request: createDescribeRequest(context, lookup),
    ...createDeliveryRepairs(context, lookup),
  });
}
