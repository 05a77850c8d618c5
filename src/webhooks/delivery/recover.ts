/**
 * Repairs in bulk: `recover` sends what a webhook missed or what waits for it, `replay` sends a
 * span of time again. Both examine the kept events of an account with one scan of the storage.
 */

import { isPostbellError, PostbellError } from "../../core/errors.js";
import { readCallArguments } from "../../core/known-names.js";
import { createRateLimit, type RateLimit } from "../../http/rate-limit.js";
import { type Actor, hasAuthority } from "../access.js";
import { toAuditActor } from "../audit.js";
import { checkName, invalidField, notFound, parseEventTime, requireOneScope } from "../call-arguments.js";
import type { ServiceBase } from "../config/config.js";
import { type Catalogue, findEventType } from "../event-types/catalogue.js";
import type { Entitlement } from "../registrations/entitlement.js";
import type { StartReminder } from "../start-reminder.js";
import type { CreateFilterTest, EventStanding, WebhookRecord, WebhookStore } from "../store.js";
import type { AuditAction } from "../webhook.js";
import type { AccountRecovery, Deliveries, RecoverySelection, ReplayRequest } from "./deliveries.js";
import { readEach } from "./delivery-lists.js";

const STANDINGS: EventStanding[] = ["failed", "missed", "withheld", "pending"];

/** The states of events that the endpoint has not received, and may still accept. */
const UNDELIVERED: EventStanding[] = ["failed", "missed", "pending"];

/** The states that `recover` takes. */
export const RECOVERABLE: string[] = [...STANDINGS, "undelivered"];

/** The states that `replay` takes, and its default. A pending delivery is still to come. */
export const REPLAYABLE: EventStanding[] = ["delivered", "failed", "missed", "withheld"];

/** The states that a subscriber may name together with a subject. */
const DELIVERED: EventStanding[] = ["delivered"];

/** The most event types that one replay names. */
export const MAX_REPLAYED_TYPES = 100;

export const webhookDisabled = (): PostbellError =>
  new PostbellError(
    "webhook_disabled",
    "The webhook is DISABLED, so nothing is sent to it; enable it first.",
  );

/** Returns the webhook if the actor may manage it and it is ENABLED. */
export async function requireSendable(
  entitlement: Entitlement,
  webhook: WebhookRecord,
  actor: Actor,
): Promise<WebhookRecord> {
  await entitlement.requireManager(webhook, actor);
  if (webhook.status !== "ENABLED") throw webhookDisabled();
  return webhook;
}

/** Takes a token of `key`. Returns an error, `rate_limited` with `message`, if no token is left. */
export function takeToken(tokens: RateLimit, key: string, message: string): PostbellError | undefined {
  const seconds = tokens.take(key);
  if (seconds === 0) return undefined;
  return new PostbellError("rate_limited", `${message}; try again in ${seconds} s.`, {
    retryAfterMs: seconds * 1000,
  });
}

/** How many deliveries a recovery created or moved, and the error that ended it before its end. */
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
type Selection = Pick<
  Parameters<WebhookStore["recover"]>[0],
  "since" | "until" | "types" | "subject" | "states" | "isDryRun"
>;

type RecoverRequest = RecoverySelection & { webhookId?: string | undefined; account?: string | undefined };

const RECOVER_ARGUMENTS = ["webhookId", "account", "since", "type", "state"] as const;

/** Throws `unknown_event_type` for a type that is not in the catalogue. */
function requireType(catalogue: Catalogue, type: unknown, field: string): string {
  if (typeof type !== "string") throw invalidField(field, `${field} must be the name of an event type.`);
  findEventType(catalogue, type);
  return type;
}

const wrongState = (field: string, states: string[]): PostbellError =>
  new PostbellError(
    "invalid_argument",
    `${field} must be ${states.length > 1 ? "one of " : ""}${states.join(", ")}.`,
    {
      field,
    },
  );

const toStandings = (state: RecoverRequest["state"]): EventStanding[] | undefined =>
  state === undefined ? undefined : state === "undelivered" ? UNDELIVERED : [state];

/** Throws `invalid_argument`, or `unknown_event_type` for a type that is not in the catalogue. */
function readSelection(catalogue: Catalogue, { since, type, state }: RecoverRequest): Selection {
  const isFromStart = since === undefined && state === "pending";
  const from = isFromStart ? 0 : parseEventTime("since", since ?? "");
  const types = type === undefined ? undefined : [requireType(catalogue, type, "type")];
  if (state !== undefined && !RECOVERABLE.includes(state)) throw wrongState("state", RECOVERABLE);
  return { since: from, types, states: toStandings(state) };
}

const REPLAY_ARGUMENTS = ["webhookId", "since", "until", "types", "states", "subject", "dryRun"] as const;

/** Returns a list of the host or a client. Throws `invalid_request`. */
function readList(field: string, value: unknown, most: number): unknown[] | undefined {
  if (value === undefined) return undefined;
  if (Array.isArray(value) && value.length > 0 && value.length <= most) return Array.from(value as unknown[]);
  const seen = Array.isArray(value) ? `a list of ${value.length}` : String(typeof value);
  throw invalidField(field, `${field} must be a list of 1 to ${most} items (got ${seen}).`);
}

/** Throws `invalid_argument` and `invalid_request`; `unknown_event_type` as in `recover`. */
function readReplay(catalogue: Catalogue, request: ReplayRequest, actor: Actor): Selection {
  const since = parseEventTime("since", request.since);
  const until = parseEventTime("until", request.until);
  if (until <= since) throw invalidField("until", "until must be later than since.");
  const types = readList("types", request.types, MAX_REPLAYED_TYPES)?.map((type, index) =>
    requireType(catalogue, type, `types[${index}]`),
  );
  const { subject, dryRun = false } = request;
  if (subject !== undefined) checkName("subject", subject);
  // A subscriber may only learn of records that it was sent.
  const allowed = subject !== undefined && !hasAuthority(actor) ? DELIVERED : REPLAYABLE;
  const states = (readList("states", request.states, REPLAYABLE.length) ?? allowed) as EventStanding[];
  for (const [index, state] of states.entries())
    if (!allowed.includes(state)) throw wrongState(`states[${index}]`, allowed);
  if (typeof dryRun !== "boolean") throw invalidField("dryRun", "dryRun must be true or false.");
  return { since, until, types, subject, states, isDryRun: dryRun };
}

export function createRecoveries(
  base: ServiceBase,
  entitlement: Entitlement,
  reminder: StartReminder,
): (actor: Actor) => Pick<Deliveries, "recover" | "replay"> {
  const { config, logger, catalogue, audit } = base;
  const { clock, limits } = config;
  const recoveries = createRateLimit({ perMinute: limits.repairsPerMinute, clock });
  const recover = createRecover(base);

  const recoverWebhook = async (
    webhook: WebhookRecord,
    selection: Selection,
    actor: Actor,
    action: AuditAction = "webhook.recovered",
  ): Promise<Recovery> => {
    const { id: webhookId, account } = webhook;
    const refusal = takeToken(recoveries, webhookId, "Too many recoveries of this webhook");
    if (refusal !== undefined) return { count: 0, error: refusal };
    const recovery = await recover(webhook, selection);
    // The account's budget refused the call: no event of this webhook was examined.
    if (isPostbellError(recovery.error, "rate_limited")) recoveries.putBack(webhookId);
    const { count } = recovery;
    if (count > 0 && selection.isDryRun !== true) {
      reminder.expectStart(0);
      audit.record({ account, action, actor: toAuditActor(actor), webhookId, count });
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

  return (actor) => ({
    recover: (async (request: RecoverRequest): Promise<{ count: number } | AccountRecovery> => {
      const input = readCallArguments("recover", request, RECOVER_ARGUMENTS);
      requireOneScope("recover", input);
      const selection = readSelection(catalogue, input);
      if (input.account !== undefined) return recoverAccount(input.account, selection, actor);
      const found = await entitlement.find(input.webhookId ?? "", actor);
      const webhook = await requireSendable(entitlement, found, actor);
      const { count, error } = await recoverWebhook(webhook, selection, actor);
      if (error !== undefined) throw error;
      return { count };
    }) as Deliveries["recover"],

    async replay(request) {
      const input = readCallArguments("replay", request, REPLAY_ARGUMENTS);
      const selection = readReplay(catalogue, input, actor);
      const found = await entitlement.find(input.webhookId, actor);
      const webhook = await requireSendable(entitlement, found, actor);
      const { count, error } = await recoverWebhook(webhook, selection, actor, "webhook.replayed");
      if (error !== undefined) throw error;
      return { count };
    },
  });
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
 * Repairs all selected events of `webhook`, page by page. The error of the result is
 * `rate_limited` while the account's budget is empty, `not_found` if the webhook was deleted.
 *
 * A recovery that has begun examines every event. The events count against the account's budget,
 * which can become negative: then the next recovery has to wait until the budget has refilled.
 */
function createRecover({ store, sealer, config: { delivery, limits, clock } }: ServiceBase) {
  const everyMs = delivery.recoverEveryMs;
  const budget = createRateLimit({ perMinute: limits.recoveredEventsPerMinute, clock });
  const queue = createKeyedQueue();

  const recover = async (
    { id: webhookId, account, createdAt }: WebhookRecord,
    { since, ...selection }: Selection,
  ): Promise<Recovery> => {
    const refusal = takeToken(budget, account, "Recoveries of this account have examined too many events");
    if (refusal !== undefined) return { count: 0, error: refusal };
    let dueAt = store.now() + everyMs;
    let count = 0;
    let cursor: string | undefined;
    let createFilterTest: CreateFilterTest | undefined;
    do {
      const request = {
        webhookId,
        account,
        since: Math.max(since, createdAt),
        ...selection,
        dueAt,
        everyMs,
        now: store.now(),
        cursor,
        limit: EVENTS_PER_STEP,
      };
      let step: Awaited<ReturnType<WebhookStore["recover"]>>;
      try {
        createFilterTest ??= await sealer.createFilterTest(account);
        step = await store.recover({ ...request, createFilterTest });
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
