/**
 * Carries the health steps out that are due: the host's notifier is called, then the step is
 * recorded.
 */

import { type Clock, withTimeout } from "../../core/clock.js";
import type { Logger } from "../../core/logger.js";
import type { WebhooksSettings } from "../settings/settings.js";
import type { WebhookRecord, WebhookStore } from "../store.js";
import { toWebhook } from "../webhook.js";
import { healthStep, warningGivenUpAt } from "./endpoint-health.js";

/**
 * A step that was begun and not recorded (the notifier threw, the process died) is taken up again
 * after this, or after three times what a hook may take.
 */
const LEASE_MS = 60_000;
const BATCH = 20;

/**
 * Makes the function that takes all steps due now and resolves with when the next one is. A
 * notifier is called at least once a period, and again only if it failed or the process died before
 * the step was recorded; DISABLED is set exactly once, also where the warning could not be given.
 */
export function createHealthNotifications({
  store,
  settings: { health, notify, limits },
  clock,
  logger,
}: {
  readonly store: WebhookStore;
  readonly settings: WebhooksSettings;
  readonly clock: Clock;
  readonly logger: Logger;
}): () => Promise<number | null> {
  const leaseMs = Math.max(LEASE_MS, 3 * limits.hookMs);

  /** Whether the host has been told; also true where it does not want to be. */
  const tell = async (webhook: WebhookRecord, call: (() => unknown) | undefined): Promise<boolean> => {
    if (!call) return true;
    try {
      await withTimeout(clock, limits.hookMs, (async () => call())(), () => new Error("no answer in time"));
      return true;
    } catch (error) {
      logger.error({ webhook: webhook.id, error }, "a notifier of the host failed; it will be called again");
      return false;
    }
  };

  const take = async (record: WebhookRecord): Promise<void> => {
    const now = store.now();
    const step = healthStep(record, health, now);
    const { id, account, status, warnedAt } = record;
    if (step.kind === "none") return;
    const { failingSince } = step;
    const settle = (
      fields: Partial<Parameters<WebhookStore["settleHealthNotification"]>[0]>,
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
    const webhook = toWebhook(record);
    const since = new Date(failingSince);
    switch (step.kind) {
      case "wait":
        await settle({ noticeAt: step.at });
        return;
      case "warn": {
        const { warning } = notify;
        const event = { webhook, failingSince: since, disableAt: new Date(step.disableAt) };
        const isTold = await tell(record, warning && (() => warning(event)));
        if (!isTold && now < warningGivenUpAt(failingSince, health)) return;
        if (!(await settle({ warnedAt: now, noticeAt: step.disableAt }))) return;
        const fields = { webhook: id, disableAt: event.disableAt };
        if (isTold) logger.warn(fields, "an endpoint is failing and will be disabled");
        else logger.error(fields, "a failing endpoint will be disabled though no notifier took the warning");
        return;
      }
      case "disable":
        // Recorded first, and due again at once: whoever sees it DISABLED then tells the host.
        if (await settle({ status: "DISABLED", noticeAt: store.now() + leaseMs })) {
          logger.warn({ webhook: id }, "a failing endpoint was disabled");
          const disabled = await store.getWebhook(id);
          if (disabled) await take(disabled);
        }
        return;
      case "announce": {
        const { disabled } = notify;
        if (await tell(record, disabled && (() => disabled({ webhook, failingSince: since }))))
          await settle({});
        return;
      }
    }
  };

  return async () => {
    const now = store.now();
    const { webhooks, nextAt } = await store.claimHealthNotifications({
      now,
      leaseUntil: now + leaseMs,
      limit: BATCH,
    });
    const results = await Promise.allSettled(webhooks.map(take));
    for (const result of results) {
      if (result.status === "rejected") {
        logger.error({ error: result.reason as unknown }, "a health step could not be recorded");
      }
    }
    // Those just taken are in `nextAt` with their lease: at worst the next look comes early.
    return nextAt;
  };
}
