/** Tells the debug log which webhooks of an account did not get an event, and why. */

import { LRUCache } from "lru-cache";
import { isDebugEnabled } from "../../core/logger.js";
import { createRateLimit } from "../../http/rate-limit.js";
import type { ServiceBase } from "../config/config.js";
import { subscribes } from "../event-types/catalogue.js";
import type { AppendedEvent, EventRecord } from "../store.js";

/** The webhooks that are read for a line. */
const MAX_READ = 100;
/** The webhooks that a line names, for each cause. */
const MAX_NAMED = 10;
/** The most lines of a process. Each costs a read. */
const LINES_PER_MINUTE = 60;
/** The accounts without webhooks that are remembered, to name each once. */
const MAX_ACCOUNTS = 10_000;
/** The one key of the limit: many accounts must not cost more than one. */
const ALL_ACCOUNTS = "";

interface SubscribedWebhook {
  id: string;
  status: "ENABLED" | "DISABLED";
  eventTypes: readonly string[] | null;
}

/**
 * Returns the ids of webhooks that get no delivery of an event of this type, by cause: `disabled`
 * ones, whatever they subscribe to, and ENABLED ones that subscribe to `otherTypes`. Pure.
 */
export function findUnmatched(
  webhooks: readonly SubscribedWebhook[],
  type: string,
): { disabled: string[]; otherTypes: string[] } {
  const isEnabled = ({ status }: { status: string }): boolean => status === "ENABLED";
  const toIds = (list: typeof webhooks): string[] => list.slice(0, MAX_NAMED).map(({ id }) => id);
  return {
    disabled: toIds(webhooks.filter((webhook) => !isEnabled(webhook))),
    otherTypes: toIds(
      webhooks.filter((webhook) => isEnabled(webhook) && !subscribes(webhook.eventTypes, type)),
    ),
  };
}

/**
 * Call it after an event was stored that some webhook of its account does not get, or that has no
 * webhooks to get it. Returns at once, and never throws.
 */
type LogUnmatched = (event: EventRecord, appended: AppendedEvent) => void;

export function createUnmatchedLog({ store, config, logger }: ServiceBase): LogUnmatched {
  const lines = createRateLimit({ perMinute: LINES_PER_MINUTE, clock: config.clock });
  const named = new LRUCache<string, true>({ max: MAX_ACCOUNTS });

  const explain = async (fields: { account: string; eventType: string }): Promise<void> => {
    const { account, eventType } = fields;
    const { webhooks } = await store.listWebhooks({ account, limit: MAX_READ });
    logger.debug({ ...fields, ...findUnmatched(webhooks, eventType) }, "some webhooks did not get an event");
  };

  return ({ id, account, type }, { webhooks, deliveries }) => {
    if (webhooks === 0 && named.has(account)) return;
    // Asked for each event, because a host can change the level at run time.
    if (!isDebugEnabled(config.logger) || lines.take(ALL_ACCOUNTS) > 0) return;
    const fields = { account, event: id, eventType: type, webhooks, deliveries: deliveries.length };
    if (webhooks === 0) {
      named.set(account, true);
      logger.debug(fields, "nobody gets an event: the account has no webhooks");
    }
    // Without a reply there is no line: it must not fail `emit`.
    else explain(fields).catch(() => {});
  };
}
