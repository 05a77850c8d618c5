/** Health notifications on Redis: claims the steps that are due, and records what was decided. */

import { randomUUID } from "node:crypto";
import type { WebhookRecord, WebhookStore } from "../../src/webhooks/store.js";
import { SCRIPTS } from "./scripts.js";
import type { RedisStoreContext } from "./store-context.js";
import { encodeNumber, encodeText } from "./text-codec.js";
import { decodeReadable, encodeStatus } from "./webhook-codec.js";

export function createRedisHealthNotifications(
  context: RedisStoreContext,
): Pick<WebhookStore, "claimHealthNotifications" | "settleHealthNotification"> {
  const { partitions, logger, run } = context;
  return {
    async claimHealthNotifications({ now, leaseUntil, limit }) {
      const at = await context.at(now);
      const webhooks: WebhookRecord[] = [];
      let nextAt: number | null = null;
      const errors: unknown[] = [];
      for (const partition of partitions.all) {
        const args = [leaseUntil, limit - webhooks.length, randomUUID()];
        const reply = await run(SCRIPTS.notices, partition, args, { now: at }).catch((error: unknown) => {
          errors.push(error);
          return [[], String(leaseUntil)];
        });
        const [texts, next] = reply as [string[], string];
        webhooks.push(...decodeReadable(texts, context));
        if (next !== "") nextAt = Math.min(nextAt ?? Number(next), Number(next));
      }
      // One partition that fails must not lose what the others leased.
      if (errors.length === partitions.all.length) throw errors[0];
      for (const error of errors)
        logger.error({ error }, "due health notifications of a partition could not be claimed");
      return { webhooks, nextAt };
    },

    async settleHealthNotification({ id, account, failingSince, from, status, warnedAt, noticeAt, now }) {
      const at = await context.at(now);
      const args = [
        encodeText(account),
        id,
        failingSince,
        encodeStatus(from),
        encodeStatus(status),
        encodeNumber(warnedAt),
        encodeNumber(noticeAt),
        randomUUID(),
      ];
      return (await run(SCRIPTS.settleNotice, partitions.ofAccount(account), args, { now: at })) === 1;
    },
  };
}
