/** Reads the delivery log: deliveries of a webhook, and its statistics. */

import { PostbellError } from "../../core/errors.js";
import { invalidField } from "../../core/invalid-field.js";
import { isUuid } from "../../core/uuid.js";
import { notFound, readCallArguments, readLimit } from "../call-arguments.js";
import { getRotation } from "../registrations/secret-rotation.js";
import type {
  DeliveryRecord,
  DeliveryState,
  DeliveryStats,
  Page,
  RecentAttempts,
  WebhookRecord,
  WebhookStore,
} from "../store.js";
import type { Deliveries, DeliveryCounts } from "./deliveries.js";
import { formatDeliveryId } from "./delivery-id.js";
import { createDeliveryLookup, toDateOrNull } from "./delivery-lookup.js";
import { createDeliveryRepairs, type DeliveryRepairsContext } from "./delivery-repairs.js";
import { createDescribeRequest, type DescribeRequestContext } from "./describe-request.js";
import { endpointHealth, type HealthPolicy } from "./endpoint-health.js";
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

/** Deliveries that are read together. Most events have one. */
const READ_TOGETHER = 10;

/** The most deliveries of an event that are read: `recover` may create them without a limit. */
const MAX_READ = 200;

/** @throws `invalid_argument` for a text that is not a UUID. */
export function readEventId(eventId: string): string {
  if (typeof eventId === "string" && isUuid(eventId)) return eventId.toLowerCase();
  throw new PostbellError("invalid_argument", "The id of an event must be a UUID.", { field: "eventId" });
}

/** Reads the deliveries of an event, oldest first. Their serials count up without a gap. */
async function readAll(
  store: Pick<WebhookStore, "getDelivery">,
  webhookId: string,
  eventId: string,
): Promise<readonly DeliveryRecord[]> {
  const found: DeliveryRecord[] = [];
  while (found.length < MAX_READ) {
    const ids = Array.from({ length: READ_TOGETHER }, (_, index) =>
      formatDeliveryId({ webhookId, eventId, serial: found.length + index }),
    );
    const records = await Promise.all(ids.map((id) => store.getDelivery(id)));
    const end = records.indexOf(undefined);
    found.push(...records.slice(0, end === -1 ? undefined : end).filter((record) => record !== undefined));
    if (end !== -1) break;
  }
  return found;
}

type ListRequest = Parameters<WebhookStore["listDeliveries"]>[0];

const isWanted = (
  { state, type, createdAt }: DeliveryRecord,
  wanted: Pick<ListRequest, "state" | "type" | "since" | "until">,
): boolean =>
  (wanted.state === undefined || state === wanted.state) &&
  (wanted.type === undefined || type === wanted.type) &&
  createdAt >= (wanted.since ?? Number.NEGATIVE_INFINITY) &&
  createdAt < (wanted.until ?? Number.POSITIVE_INFINITY);

/** The cursor is the number of deliveries on the previous pages. */
function parseCursor(cursor: Page["cursor"]): number {
  if (cursor === undefined) return 0;
  if (/^[0-9]{1,9}$/.test(cursor)) return Number(cursor);
  throw invalidField("cursor", "cursor must be the `next` of the previous page.");
}

/** Lists deliveries like `listDeliveries` of the store, but those of one event. */
async function listEventDeliveries(
  store: Pick<WebhookStore, "getDelivery">,
  eventId: string,
  { webhookId, cursor, limit, ...wanted }: ListRequest,
): ReturnType<WebhookStore["listDeliveries"]> {
  const from = parseCursor(cursor);
  const all = await readAll(store, webhookId, eventId);
  const matching = all.filter((record) => isWanted(record, wanted)).reverse();
  const end = from + limit;
  return { deliveries: matching.slice(from, end), next: end < matching.length ? String(end) : null };
}
