/**
 * The health of endpoints: decides when a failing endpoint is warned about and disabled, and does
 * so. The host is told of both.
 */

import { callHook } from "../../core/clock.js";
import { MAX_RETRY_MS } from "../../core/storage-circuit.js";
import type { ServiceBase } from "../config/config.js";
import type { FailingEndpoint } from "../config/webhooks-options.js";
import type { WebhookRecord, WebhookStore } from "../store.js";
import { toWebhook } from "../webhook.js";
import { buildTypePlans, MAX_POSTPONE_MS } from "./retry-schedule.js";

export interface HealthPolicy {
  /** Milliseconds from the first failure to the warning, if there was no 2xx. */
  warnAfterMs: number;
  /** Milliseconds from the first failure to disabling, if there was no 2xx. */
  disableAfterMs: number;
}

/** Returns the due time of the first health step of an endpoint that fails since `failingSince`. */
export const warningDueAt = (failingSince: number, policy: HealthPolicy): number =>
  failingSince + policy.warnAfterMs;

/**
 * Returns the end of the retries of a warning: a notifier that never works must not keep a dead
 * endpoint ENABLED for ever.
 */
export const warningGivenUpAt = (failingSince: number, policy: HealthPolicy): number =>
  failingSince + policy.disableAfterMs;

/**
 * The subscriber always has the time between warning and disabling, even if the warning was late
 * because no process ran.
 */
const disablingDueAt = (failingSince: number, warnedAt: number, policy: HealthPolicy): number =>
  Math.max(failingSince + policy.disableAfterMs, warnedAt + policy.disableAfterMs - policy.warnAfterMs);

/**
 * The health of an endpoint. `ok`: the last attempt succeeded, or there was no attempt. `failing`:
 * no 2xx since `failingSince`. `warned`: the warning was sent at `warnAt`, or the notifier was
 * given up then. `disabled`: by the service if `failingSince` is set, otherwise by a user.
 */
export interface EndpointHealth<Time> {
  readonly status: "ok" | "failing" | "warned" | "disabled";
  readonly failingSince: Time | null;
  /** When the warning is due or was sent; `null` unless the endpoint fails. */
  readonly warnAt: Time | null;
  /** When the endpoint is disabled if the failures continue; `null` unless it fails. */
  readonly disableAt: Time | null;
}

/** The fields of a webhook that say how healthy its endpoint is. */
type HealthFields = Pick<WebhookRecord, "status" | "failingSince" | "warnedAt">;

export function endpointHealth(
  { status, failingSince, warnedAt }: HealthFields,
  policy: HealthPolicy,
): EndpointHealth<number> {
  if (status === "DISABLED") return { status: "disabled", failingSince, warnAt: null, disableAt: null };
  if (failingSince === null) return { status: "ok", failingSince, warnAt: null, disableAt: null };
  const warnAt = warnedAt ?? warningDueAt(failingSince, policy);
  const disableAt = disablingDueAt(failingSince, warnAt, policy);
  return { status: warnedAt === null ? "failing" : "warned", failingSince, warnAt, disableAt };
}

/**
 * The next health step of a webhook.
 *
 * `warn`: call the notifier; once it succeeds or is abandoned, record the step, due again at
 * `disableAt`. `disable`: set DISABLED, which exactly one process succeeds in. `announce`: this
 * service disabled the webhook, and the host was not told yet. `wait`: nothing is due before `at`.
 * `none`: the endpoint is healthy, or a user disabled it.
 *
 * Source: Event Notification and Webhook Registration Interface, "States and
 * transitions", and "Events", rule 5.
 */
export type HealthStep =
  | { kind: "warn"; failingSince: number; disableAt: number }
  | { kind: "disable"; failingSince: number }
  | { kind: "announce"; failingSince: number }
  | { kind: "wait"; failingSince: number; at: number }
  | { kind: "none" };

export function healthStep(
  { status, failingSince, warnedAt }: HealthFields,
  policy: HealthPolicy,
  now: number,
): HealthStep {
  if (failingSince === null) return { kind: "none" };
  if (status === "DISABLED") return { kind: "announce", failingSince };
  if (warnedAt === null) {
    const at = warningDueAt(failingSince, policy);
    return now < at
      ? { kind: "wait", failingSince, at }
      : { kind: "warn", failingSince, disableAt: disablingDueAt(failingSince, now, policy) };
  }
  const at = disablingDueAt(failingSince, warnedAt, policy);
  return now < at ? { kind: "wait", failingSince, at } : { kind: "disable", failingSince };
}

/**
 * A step that was begun but not recorded, because the notifier threw or the process died, is taken
 * again after this time, or after three times the limit of a hook if that is longer.
 */
const LEASE_MS = 60_000;
const BATCH = 20;

export interface HealthSteps {
  /** When the next round is due, in the storage's time. */
  dueAt: () => number;
  /** Moves the next round to `at` if it is later. */
  expect: (at: number) => void;
  /**
   * Starts a round if one is due and none is running. Resolves with the time of the next one. Never
   * rejects. Rounds run next to the deliveries: a slow hook delays no claim.
   */
  startIfDue: () => Promise<number> | undefined;
  isRunning: () => boolean;
}

type Step<Kind extends HealthStep["kind"]> = Extract<HealthStep, { kind: Kind }>;
type StepFields = Partial<Parameters<WebhookStore["settleHealthNotification"]>[0]>;

/** Records a step. Resolves with `false` if the webhook has changed since it was claimed. */
const settleStep = (
  store: WebhookStore,
  { id, account, status, warnedAt }: WebhookRecord,
  failingSince: number,
  fields: StepFields,
): Promise<boolean> =>
  store.settleHealthNotification({
    id,
    account,
    failingSince,
    from: status,
    status,
    warnedAt,
    noticeAt: null,
    now: store.now(),
    ...fields,
  });

/**
 * Takes health steps when they are due.
 *
 * The notifier is called at least once for each failing period. It is called again only if it
 * failed, or if the process died before the step was recorded. DISABLED is set exactly once, even
 * if the warning could not be sent. Both wait while the resolver is down, because the endpoint
 * cannot be reached then.
 *
 * @param isResolverDown as that of the sender.
 */
export function createHealthSteps(
  { store, config, logger, audit, catalogue }: ServiceBase,
  isResolverDown: (url: string) => Promise<boolean>,
): HealthSteps {
  const { clock, endpoints, notify, limits } = config;
  const leaseMs = Math.max(LEASE_MS, 3 * limits.hookMs);
  const windows = Array.from(buildTypePlans(catalogue, config.retry).values(), ({ retry }) => retry.windowMs);
  const longestWindowMs = Math.max(config.retry.windowMs, ...windows);

  /** Resolves with `true` if the notifier succeeded, or if the host has none. */
  const callNotifier = async (id: string, call: (() => unknown) | undefined): Promise<boolean> => {
    if (!call) return true;
    try {
      await callHook(clock, limits.hookMs, call);
      return true;
    } catch (error) {
      logger.error({ webhook: id, error }, "a notifier of the host failed; it will be called again");
      return false;
    }
  };

  /** Reads what the notifiers report about an endpoint, in addition to its webhook. */
  const describeFailing = async (record: WebhookRecord, failingSince: number): Promise<FailingEndpoint> => {
    const stats = await store.deliveryStats(record.id, store.now());
    const last = stats?.lastAttempt;
    return {
      webhook: toWebhook(record),
      failingSince: new Date(failingSince),
      lastFailure: last && last.kind !== "delivered" ? { ...last, at: new Date(last.at) } : null,
      pending: stats?.pending ?? 0,
    };
  };

  const warn = async (record: WebhookRecord, step: Step<"warn">, now: number): Promise<void> => {
    const { failingSince } = step;
    const { warning } = notify;
    const disableAt = new Date(step.disableAt);
    const retriedUntil = new Date(Math.min(step.disableAt, now + longestWindowMs));
    const event = { ...(await describeFailing(record, failingSince)), disableAt, retriedUntil };
    const isSent = await callNotifier(record.id, warning && (() => warning(event)));
    if (!isSent && now < warningGivenUpAt(failingSince, endpoints)) return;
    const fields = { warnedAt: now, noticeAt: step.disableAt };
    if (!(await settleStep(store, record, failingSince, fields))) return;
    const entry = { webhook: record.id, disableAt };
    if (isSent) logger.warn(entry, "an endpoint is failing and will be disabled");
    else logger.error(entry, "a failing endpoint will be disabled though no notifier took the warning");
  };

  /**
   * Records the step first, due again soon: whoever then sees the webhook DISABLED tells the host.
   */
  const disable = async (record: WebhookRecord, { failingSince }: Step<"disable">): Promise<void> => {
    const fields = { status: "DISABLED", noticeAt: store.now() + leaseMs } as const;
    if (!(await settleStep(store, record, failingSince, fields))) return;
    logger.warn({ webhook: record.id }, "a failing endpoint was disabled");
    const { id: webhookId, account } = record;
    audit.record({ account, action: "webhook.disabled", actor: { type: "service" }, webhookId });
    const disabled = await store.getWebhook(record.id);
    if (disabled) await takeStep(disabled);
  };

  const announce = async (record: WebhookRecord, { failingSince }: Step<"announce">): Promise<void> => {
    const { disabled } = notify;
    const event = await describeFailing(record, failingSince);
    if (await callNotifier(record.id, disabled && (() => disabled(event))))
      await settleStep(store, record, failingSince, {});
  };

  const takeStep = async (record: WebhookRecord): Promise<void> => {
    const now = store.now();
    const step = healthStep(record, endpoints, now);
    const isDue = step.kind === "warn" || step.kind === "disable";
    if (isDue && (await isResolverDown(record.url))) {
      await settleStep(store, record, step.failingSince, { noticeAt: store.now() + MAX_POSTPONE_MS });
      return;
    }
    if (step.kind === "warn") await warn(record, step, now);
    else if (step.kind === "disable") await disable(record, step);
    else if (step.kind === "announce") await announce(record, step);
    else if (step.kind === "wait") await settleStep(store, record, step.failingSince, { noticeAt: step.at });
  };

  /** Takes all due steps. Resolves with the time of the next one, `null` if none is scheduled. */
  const takeDueSteps = async (): Promise<number | null> => {
    const now = store.now();
    const { webhooks, nextAt } = await store.claimHealthNotifications({
      now,
      leaseUntil: now + leaseMs,
      limit: BATCH,
    });
    const results = await Promise.allSettled(webhooks.map(takeStep));
    for (const result of results) {
      if (result.status === "rejected") {
        logger.error({ error: result.reason as unknown }, "a health step could not be recorded");
      }
    }
    // `nextAt` can be the lease of a step that was just taken: then the next round is only early.
    return nextAt;
  };

  let dueAt = 0;
  let isRunning = false;

  const runRound = async (): Promise<number> => {
    isRunning = true;
    // A failure that is reported during the round counts for the next one.
    dueAt = Number.POSITIVE_INFINITY;
    let nextAt: number | null;
    try {
      nextAt = await takeDueSteps();
    } catch (error) {
      logger.error({ error }, "the storage could not be asked for due health notifications");
      nextAt = store.now() + MAX_RETRY_MS;
    }
    isRunning = false;
    // Another process may know of failures that this one does not: look again after `maxSleepMs`.
    dueAt = Math.min(dueAt, nextAt ?? Number.POSITIVE_INFINITY, store.now() + store.maxSleepMs);
    return dueAt;
  };

  return Object.freeze<HealthSteps>({
    dueAt: () => dueAt,
    expect(at) {
      dueAt = Math.min(dueAt, at);
    },
    startIfDue: () => (isRunning || dueAt > store.now() ? undefined : runRound()),
    isRunning: () => isRunning,
  });
}
