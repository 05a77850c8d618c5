/** Sends events again, and tests: `resend`, `recover`, `test` and `sample` of the delivery log. */

import { randomUUID } from "node:crypto";
import { isPostbellError, PostbellError } from "../../core/errors.js";
import { createRateLimit, type RateLimit } from "../../http/rate-limit.js";
import type { Actor } from "../access.js";
import { toAuditActor } from "../audit.js";
import {
  invalidField,
  notFound,
  parseEventTime,
  readCallArguments,
  requireOneScope,
} from "../call-arguments.js";
import type { ServiceBase, WebhooksConfig } from "../config/config.js";
import {
  type Catalogue,
  findEventType,
  requireLoggedType,
  subscribes,
  TEST_EVENT_TYPE,
} from "../event-types/catalogue.js";
import { readPayload } from "../events/notification.js";
import { createTestEvent } from "../events/test-event.js";
import type { Entitlement } from "../registrations/entitlement.js";
import type { StartReminder } from "../start-reminder.js";
import { formatDeliveryId } from "../store/records.js";
import {
  type EventRecord,
  MAX_RESENT,
  type RecoverableState,
  type WebhookRecord,
  type WebhookStore,
} from "../store.js";
import type { AuditAction, AuditEntry } from "../webhook.js";
import { buildBody } from "./attempt.js";
import type { AccountRecovery, Deliveries } from "./deliveries.js";
import { readEach } from "./delivery-lists.js";

/** Stores events for one webhook. */
export type AppendForWebhook = (
  events: EventRecord[],
  options: { webhookId: string },
) => Promise<{
  emitted: readonly { deliveries: readonly { id: string }[] }[];
  error?: PostbellError | undefined;
}>;

/** Stands for what differs from test to test. */
const SAMPLE = {
  id: "0b9d3a0e-2f4c-4f57-8d0c-6a1f5e7f3c21",
  webhookId: "5e0f4f6e-7f0b-4a8e-9d5e-3d3f0c1f2a10",
  now: Date.UTC(2026, 2, 1, 12),
} as const;

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

/** Takes a token of `key`. Returns an error, `rate_limited` with `message`, if no token is left. */
function takeToken(tokens: RateLimit, key: string, message: string): PostbellError | undefined {
  const seconds = tokens.take(key);
  if (seconds === 0) return undefined;
  return new PostbellError("rate_limited", `${message}; try again in ${seconds} s.`, {
    retryAfterSeconds: seconds,
  });
}

/** How many deliveries a recovery created, and the error that ended it before its end. */
interface Recovery {
  count: number;
  error?: Error | undefined;
}

/** Errors of an account's webhooks, by the reason that the result gives for them. */
type RecoveryErrors = Partial<Record<"rate_limited" | "unavailable", Error>>;

/** Throws an error that left an account's recovery without a result. */
function requireResult({ count, webhooks }: AccountRecovery, errors: RecoveryErrors): void {
  if (errors.unavailable !== undefined && count === 0) throw errors.unavailable;
  if (errors.rate_limited !== undefined && webhooks.length === 0) throw errors.rate_limited;
}

/** The events that a recovery selects. */
interface Selection extends Pick<Parameters<WebhookStore["recover"]>[0], "since" | "types" | "states"> {}

interface RecoverRequest extends Actor {
  webhookId?: string | undefined;
  account?: string | undefined;
  since: Date | string;
  type?: string | undefined;
  state?: RecoverableState | undefined;
}

const RECOVER_ARGUMENTS = ["webhookId", "account", "since", "type", "state", "as"] as const;

export const RECOVERABLE: RecoverableState[] = ["failed", "missed", "withheld"];

/** Throws `invalid_argument`, or `unknown_event_type` for a type that is not in the catalogue. */
function readSelection(catalogue: Catalogue, { since, type, state }: RecoverRequest): Selection {
  const from = parseEventTime("since", since);
  if (type !== undefined && typeof type !== "string")
    throw invalidField("type", "type must be a string, the name of an event type.");
  if (type !== undefined) findEventType(catalogue, type);
  if (state !== undefined && !RECOVERABLE.includes(state)) {
    const message = `state must be one of ${RECOVERABLE.join(", ")}.`;
    throw new PostbellError("invalid_argument", message, { field: "state" });
  }
  return {
    since: from,
    types: type === undefined ? undefined : [type],
    states: state === undefined ? undefined : [state],
  };
}

export function createDeliveryRepairs(
  { store, config, logger, catalogue, audit }: ServiceBase,
  entitlement: Entitlement,
  append: AppendForWebhook,
  reminder: StartReminder,
): Pick<Deliveries, "resend" | "recover" | "test" | "sample"> {
  const { clock, limits } = config;
  const repairs = createRateLimit({ perMinute: limits.repairsPerMinute, clock });
  const recover = createRecover(store, config);

  /** Returns the webhook if the actor may manage it and it is ENABLED. */
  const requireSendable = async (webhook: WebhookRecord, actor: Actor): Promise<WebhookRecord> => {
    await entitlement.requireManager(webhook, actor);
    if (webhook.status !== "ENABLED") throw webhookDisabled();
    return webhook;
  };

  const record = (
    action: AuditAction,
    { account, id: webhookId }: WebhookRecord,
    actor: Actor,
    fields: Partial<AuditEntry>,
  ): void => audit.record({ account, action, actor: toAuditActor(actor), webhookId, ...fields });

  const recoverWebhook = async (
    webhook: WebhookRecord,
    selection: Selection,
    actor: Actor,
  ): Promise<Recovery> => {
    const key = `recover ${webhook.id}`;
    const refusal = takeToken(repairs, key, "Too many recoveries of this webhook");
    if (refusal !== undefined) return { count: 0, error: refusal };
    const recovery = await recover(webhook, selection);
    // The account's budget refused the call: no event of this webhook was examined.
    if (isPostbellError(recovery.error, "rate_limited")) repairs.putBack(key);
    if (recovery.count > 0) {
      reminder.expectStart(0);
      record("webhook.recovered", webhook, actor, { count: recovery.count });
    }
    return recovery;
  };

  const recoverAccount = async (
    account: string,
    selection: Selection,
    actor: Actor,
  ): Promise<AccountRecovery> => {
    const found = await entitlement.findAll(account, actor);
    const isManaged = await readEach(found, (webhook) => entitlement.canManage(webhook, actor));
    const webhooks: AccountRecovery["webhooks"][number][] = [];
    const skipped: AccountRecovery["skipped"][number][] = [];
    const errors: RecoveryErrors = {};
    for (const [index, webhook] of found.entries()) {
      const { id: webhookId, status } = webhook;
      if (isManaged[index] !== true) skipped.push({ webhookId, reason: "webhook_owned_by_another_key" });
      else if (status !== "ENABLED") skipped.push({ webhookId, reason: "webhook_disabled" });
      else if (errors.unavailable !== undefined) skipped.push({ webhookId, reason: "unavailable" });
      else {
        const { count, error } = await recoverWebhook(webhook, selection, actor);
        // It was deleted meanwhile.
        if (isPostbellError(error, "not_found")) continue;
        if (error === undefined || count > 0) webhooks.push({ webhookId, count });
        if (error === undefined) continue;
        const reason = isPostbellError(error, "rate_limited") ? "rate_limited" : "unavailable";
        skipped.push({ webhookId, reason });
        errors[reason] = error;
      }
    }
    const result = { count: webhooks.reduce((sum, { count }) => sum + count, 0), webhooks, skipped };
    requireResult(result, errors);
    const { unavailable: error } = errors;
    if (error !== undefined) logger.error({ error }, "a recovery of an account ended early");
    return result;
  };

  return {
    async resend(id, options = {}) {
      const { force = false, ...actor } = readCallArguments("resend", options, ["force", "as"]);
      if (typeof force !== "boolean") throw invalidField("force", "force must be true or false.");
      const { delivery, webhook } = await entitlement.findDelivery(id, actor);
      const { webhookId, eventId } = delivery;
      const { account } = await requireSendable(webhook, actor);
      if (await store.getDelivery(formatDeliveryId({ webhookId, eventId, serial: MAX_RESENT }))) {
        throw new PostbellError(
          "resend_limit_reached",
          `This event was sent to the webhook again ${MAX_RESENT} times, which is the maximum.`,
        );
      }
      const resent = await store.resend({ id, account, force, now: store.now() });
      if (resent === undefined) throw notFound("delivery");
      if (resent.isInFlight) throw attemptInFlight();
      reminder.expectStart(0);
      record("delivery.resent", webhook, actor, { deliveryId: resent.id, eventId });
      return { id: resent.id };
    },

    recover: (async (request: RecoverRequest): Promise<{ count: number } | AccountRecovery> => {
      const input = readCallArguments("recover", request, RECOVER_ARGUMENTS);
      requireOneScope("recover", input);
      const selection = readSelection(catalogue, input);
      if (input.account !== undefined) return recoverAccount(input.account, selection, input);
      const webhook = await requireSendable(await entitlement.find(input.webhookId ?? "", input), input);
      const { count, error } = await recoverWebhook(webhook, selection, input);
      if (error !== undefined) throw error;
      return { count };
    }) as Deliveries["recover"],

    async test(request) {
      const names = ["webhookId", "type", "as"] as const;
      const { webhookId, type = TEST_EVENT_TYPE } = readCallArguments("test", request, names);
      requireLoggedType(catalogue, type);
      const webhook = await requireSendable(await entitlement.find(webhookId, request), request);
      requireSubscribed(webhook.eventTypes, type);
      const refusal = takeToken(repairs, `test ${webhookId}`, "Too many tests of this webhook");
      if (refusal !== undefined) throw refusal;
      const event = await createTestEvent(
        { body: config.body, catalogue },
        { id: randomUUID(), account: webhook.account, sentType: type, now: store.now() },
      );
      const { emitted, error } = await append([event], { webhookId });
      if (error !== undefined) throw error;
      const created = emitted[0]?.deliveries[0];
      // The webhook was disabled or deleted after it was looked up.
      if (!created) throw webhookDisabled();
      record("webhook.tested", webhook, request, { deliveryId: created.id, eventId: event.id });
      return { id: created.id };
    },

    async sample(request = {}) {
      const { type = TEST_EVENT_TYPE } = readCallArguments("sample", request, ["type"]);
      requireLoggedType(catalogue, type);
      const { id, webhookId, now } = SAMPLE;
      const { payload } = await createTestEvent(
        { body: config.body, catalogue },
        { id, account: "", sentType: type, now },
      );
      return buildBody(config, { id: webhookId }, readPayload(payload), [true]).toString();
    },
  };
}

/** The maximum number of events to examine in one call; the storage may examine fewer. */
const EVENTS_PER_STEP = 500;

/** Runs the calls of one key one after another, those of different keys concurrently. */
function createKeyedQueue(): <T>(key: string, run: () => Promise<T>) => Promise<T> {
  const last = new Map<string, Promise<unknown>>();
  return (key, run) => {
    const result = (last.get(key) ?? Promise.resolve()).then(run);
    const settled = result
      .catch(() => {})
      .then(() => {
        if (last.get(key) === settled) last.delete(key);
      });
    last.set(key, settled);
    return result;
  };
}

/**
 * Creates deliveries of all selected events that `webhook` missed. The error of the result is
 * `rate_limited` while the account's budget is empty, `not_found` if the webhook was deleted.
 *
 * A recovery that has begun examines every event. The events count against the account's budget,
 * which can become negative: then the next recovery has to wait until the budget has refilled.
 */
function createRecover(store: WebhookStore, { delivery, limits, clock }: WebhooksConfig) {
  const everyMs = delivery.recoverEveryMs;
  const budget = createRateLimit({ perMinute: limits.recoveredEventsPerMinute, clock });
  const queue = createKeyedQueue();

  const recover = async (
    { id: webhookId, account, createdAt }: WebhookRecord,
    { since, types, states }: Selection,
  ): Promise<Recovery> => {
    const refusal = takeToken(budget, account, "Recoveries of this account have examined too many events");
    if (refusal !== undefined) return { count: 0, error: refusal };
    let dueAt = store.now() + everyMs;
    let count = 0;
    let cursor: string | undefined;
    do {
      const request = {
        webhookId,
        account,
        since: Math.max(since, createdAt),
        ...(types !== undefined && { types }),
        ...(states !== undefined && { states }),
        dueAt,
        everyMs,
        now: store.now(),
        cursor,
        limit: EVENTS_PER_STEP,
      };
      let step: Awaited<ReturnType<WebhookStore["recover"]>>;
      try {
        step = await store.recover(request);
      } catch (error) {
        // A storage that is full has examined the events all the same.
        budget.charge(account, EVENTS_PER_STEP);
        return { count, error: error as Error };
      }
      if (!step) return { count, error: notFound("webhook") };
      budget.charge(account, step.examined);
      count += step.count;
      dueAt += step.count * everyMs;
      cursor = step.next ?? undefined;
      // The memory storage never yields to the event loop.
      if (cursor !== undefined) await new Promise<void>((resolve) => setImmediate(resolve));
    } while (cursor !== undefined);
    return { count };
  };

  // One at a time: otherwise all recoveries of an account could begin before the budget is charged.
  return (webhook: WebhookRecord, selection: Selection): Promise<Recovery> =>
    queue(webhook.account, () => recover(webhook, selection));
}
