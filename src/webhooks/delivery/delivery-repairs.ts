/** Sends events again: `resend`, `recover` and `test` of the delivery log. */

import type { Clock } from "../../core/clock.js";
import { isPostbellError, PostbellError } from "../../core/errors.js";
import { invalidField } from "../../core/invalid-field.js";
import { createRateLimit } from "../../http/rate-limit.js";
import type { Actor } from "../access.js";
import { notFound, readCallArguments } from "../call-arguments.js";
import { type Catalogue, TEST_EVENT_TYPE } from "../event-types/catalogue.js";
import { subscribes } from "../event-types/subscription.js";
import { createTestEvent } from "../events/test-event.js";
import type { Entitlement } from "../registrations/entitlement.js";
import type { WebhooksSettings } from "../settings/settings.js";
import type { EventRecord, WebhookRecord, WebhookStore } from "../store.js";
import type { Deliveries } from "./deliveries.js";
import { formatDeliveryId } from "./delivery-id.js";
import type { DeliveryLookup } from "./delivery-lookup.js";
import { parseEventTime } from "./time-filter.js";
import { requireLoggedType } from "./type-filter.js";

export interface DeliveryRepairsContext {
  readonly store: WebhookStore;
  readonly settings: WebhooksSettings;
  readonly catalogue: Catalogue;
  readonly entitlement: Entitlement;
  readonly clock: Clock;
  /** Stores events for one webhook. */
  readonly append: (
    events: readonly EventRecord[],
    options: { readonly webhookId: string },
  ) => Promise<{
    readonly emitted: readonly { readonly deliveries: readonly { readonly id: string }[] }[];
    readonly error?: PostbellError | undefined;
  }>;
  /** Called when stored deliveries became due, or new ones were stored. */
  readonly onScheduled: () => void;
}

/**
 * Each resent delivery is one more record in the storage: a client that resends in a loop must end.
 */
const MAX_RESENT = 100;

const webhookDisabled = (): PostbellError =>
  new PostbellError(
    "webhook_disabled",
    "The webhook is DISABLED, so nothing is sent to it; enable it first.",
  );

const attemptInFlight = (): PostbellError =>
  new PostbellError(
    "attempt_in_flight",
    "An attempt of this delivery is in flight, so nothing was sent again; wait for its result, or force it.",
  );

function requireSubscribed(eventTypes: WebhookRecord["eventTypes"], type: string): void {
  if (type === TEST_EVENT_TYPE || subscribes(eventTypes, type)) return;
  const message = `The webhook does not subscribe to '${type}', so it never gets such an event.`;
  throw new PostbellError("invalid_request", message, { field: "type" });
}

type Repair = "recover" | "test";
const REPAIR_NAMES: Readonly<Record<Repair, string>> = { recover: "recoveries", test: "tests" };

/** Limits how often a webhook may be repaired. */
function createRepairLimit(perMinute: number, clock: Clock) {
  const tokens = createRateLimit({ perMinute, clock });
  return {
    take(repair: Repair, webhookId: string): void {
      const seconds = tokens.take(`${repair} ${webhookId}`);
      if (seconds === 0) return;
      const message = `Too many ${REPAIR_NAMES[repair]} of this webhook; try again in ${seconds} s.`;
      throw new PostbellError("rate_limited", message, { retryAfterSeconds: seconds });
    },
    putBack: (repair: Repair, webhookId: string): void => tokens.putBack(`${repair} ${webhookId}`),
  };
}

export function createDeliveryRepairs(
  context: DeliveryRepairsContext,
  lookup: DeliveryLookup,
): Pick<Deliveries, "resend" | "recover" | "test"> {
  const { store, settings, catalogue, entitlement, clock, append, onScheduled } = context;
  const repairLimit = createRepairLimit(settings.limits.repairsPerMinute, clock);
  const recover = createRecover({ store, settings, clock });

  /** Returns the webhook if the actor may manage it and it is ENABLED. */
  const requireSendable = async (webhook: WebhookRecord, actor: Actor): Promise<WebhookRecord> => {
    await entitlement.requireManager(webhook, actor);
    if (webhook.status !== "ENABLED") throw webhookDisabled();
    return webhook;
  };

  return {
    async resend(id, options = {}) {
      const { force = false, ...actor } = readCallArguments("resend", options, ["force", "as"]);
      if (typeof force !== "boolean") throw invalidField("force", "force must be true or false.");
      const record = await lookup.findDelivery(id);
      const { webhookId, eventId } = record;
      const { account } = await requireSendable(await lookup.findWebhook(record, actor), actor);
      if (await store.getDelivery(formatDeliveryId({ webhookId, eventId, serial: MAX_RESENT }))) {
        throw new PostbellError(
          "resend_limit_reached",
          `This event was sent to the webhook again ${MAX_RESENT} times, which is the maximum.`,
        );
      }
      const resent = await store.resend({ id, account, force, now: store.now() });
      if (resent === undefined) throw notFound("delivery");
      if (resent.isInFlight) throw attemptInFlight();
      onScheduled();
      return { id: resent.id };
    },

    async recover(request) {
      const { webhookId, since } = readCallArguments("recover", request, ["webhookId", "since", "as"]);
      const from = parseEventTime("since", since);
      const webhook = await requireSendable(await entitlement.find(webhookId, request), request);
      repairLimit.take("recover", webhookId);
      try {
        const count = await recover(webhook, from);
        if (count > 0) onScheduled();
        return { count };
      } catch (error) {
        // The account's budget refused the call: no event of this webhook was examined.
        if (isPostbellError(error, "rate_limited")) repairLimit.putBack("recover", webhookId);
        throw error;
      }
    },

    async test(request) {
      const names = ["webhookId", "type", "as"] as const;
      const { webhookId, type = TEST_EVENT_TYPE } = readCallArguments("test", request, names);
      requireLoggedType(catalogue, type);
      const webhook = await requireSendable(await entitlement.find(webhookId, request), request);
      requireSubscribed(webhook.eventTypes, type);
      repairLimit.take("test", webhookId);
      const event = await createTestEvent({
        account: webhook.account,
        sentType: type,
        now: store.now(),
      });
      const { emitted, error } = await append([event], { webhookId });
      if (error !== undefined) throw error;
      const created = emitted[0]?.deliveries[0];
      // The webhook was disabled or deleted after it was looked up.
      if (!created) throw webhookDisabled();
      return { id: created.id };
    },
  };
}

/**
 * Creates deliveries of all stored events since `since` that `webhook` missed, and resolves with
 * their number.
 *
 * A recovery that has begun examines every event. The events count against the account's budget,
 * which can become negative: then the next recovery has to wait until the budget has refilled.
 *
 * @throws `rate_limited` while the account's budget is empty, `not_found` if the webhook was
 * deleted.
 */
export type Recover = (webhook: WebhookRecord, since: number) => Promise<number>;

/** The maximum number of events to examine in one call; the storage may examine fewer. */
const EVENTS_PER_STEP = 500;

/** Runs the calls of one key one after another, those of different keys concurrently. */
function createKeyedQueue(): <T>(key: string, run: () => Promise<T>) => Promise<T> {
  const last = new Map<string, Promise<unknown>>();
  return (key, run) => {
    const own = (last.get(key) ?? Promise.resolve()).then(run);
    const settled = own
      .catch(() => {})
      .then(() => {
        if (last.get(key) === settled) last.delete(key);
      });
    last.set(key, settled);
    return own;
  };
}

function createRecover({
  store,
  settings: { delivery, limits },
  clock,
}: {
  readonly store: WebhookStore;
  readonly settings: WebhooksSettings;
  readonly clock: Clock;
}): Recover {
  const everyMs = delivery.recoverEveryMs;
  const budget = createRateLimit({ perMinute: limits.recoveredEventsPerMinute, clock });
  const queue = createKeyedQueue();

  const requireBudget = (account: string): void => {
    const seconds = budget.take(account);
    if (seconds === 0) return;
    throw new PostbellError(
      "rate_limited",
      `Recoveries of this account have examined too many events; try again in ${seconds} s.`,
      { retryAfterSeconds: seconds },
    );
  };

  const recover: Recover = async ({ id: webhookId, account, createdAt }, since) => {
    requireBudget(account);
    let dueAt = store.now() + everyMs;
    let count = 0;
    let cursor: string | undefined;
    do {
      const request = {
        webhookId,
        account,
        since: Math.max(since, createdAt),
        dueAt,
        everyMs,
        now: store.now(),
        cursor,
        limit: EVENTS_PER_STEP,
      };
      const step = await store.recover(request).catch((error: unknown) => {
        // A storage that is full has examined the events all the same.
        budget.charge(account, EVENTS_PER_STEP);
        throw error;
      });
      if (!step) throw notFound("webhook");
      budget.charge(account, step.examined);
      count += step.count;
      dueAt += step.count * everyMs;
      cursor = step.next ?? undefined;
      // The memory storage never yields to the event loop.
      if (cursor !== undefined) await new Promise<void>((resolve) => setImmediate(resolve));
    } while (cursor !== undefined);
    return count;
  };

  // One at a time: otherwise all recoveries of an account could begin before the budget is charged.
  return (webhook, since) => queue(webhook.account, () => recover(webhook, since));
}
