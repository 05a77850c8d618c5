/** The webhook store on Redis, put together from its parts. */

import type { StoreStats, WebhookStore } from "../../src/webhooks/store.js";
import type { Binding } from "./binding.js";
import { deliveryLog } from "./delivery-log.js";
import { deliveryQueue } from "./delivery-queue.js";
import { registry } from "./registry.js";
import { SCRIPTS } from "./scripts.js";

export function createWebhookStore(
  binding: Binding,
  { now, watch }: Pick<WebhookStore, "now" | "watch">,
): WebhookStore {
  const { partitions, run, maxSleepMs } = binding;
  return Object.freeze<WebhookStore>({
    maxSleepMs,
    now,
    watch,
    newWebhookId: (account) => partitions.newWebhookId(account),
    ...registry(binding),
    ...deliveryQueue(binding),
    ...deliveryLog(binding),
    async stats() {
      const at = await binding.at(0);
      const parts = await Promise.all(
        partitions.all.map((partition) => run(SCRIPTS.read, partition, at, ["stats"])),
      );
      const sums = [0, 0, 0, 0, 0, 0];
      for (const part of parts as (number | string)[][]) {
        part.forEach((figure, index) => {
          sums[index] = (sums[index] ?? 0) + Number(figure);
        });
      }
      const [webhooks = 0, events = 0, pending = 0, leased = 0, ended = 0, bytes = 0] = sums;
      return { webhooks, events, pending, leased, ended, bytes } satisfies StoreStats;
    },
  });
}
