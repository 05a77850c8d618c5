/** Who may use which webhook over the API of the page, and how often. */

import type { Clock } from "../src/core/clock.js";
import { PostbellError } from "../src/core/errors.js";
import { createRateLimit } from "../src/http/rate-limit.js";
import { notFound } from "../src/webhooks/call-arguments.js";
import type { Webhook } from "../src/webhooks/webhook.js";
import type { ApiCall } from "./api.js";
import type { PortalWebhooks } from "./options.js";
import type { WebhookJson } from "./shapes.js";

/** Returns a webhook as the page gets it. */
export const toWebhookJson = ({
  id,
  url,
  status,
  eventTypes,
  createdDate,
  updatedDate,
}: Webhook): WebhookJson => ({
  id,
  url,
  status,
  eventTypes,
  createdDate,
  updatedDate,
});

/** Creates the checks that every route begins with. */
export function createWebhookAccess(
  webhooks: PortalWebhooks,
  { clock, requestsPerMinute }: { readonly clock: Clock; readonly requestsPerMinute: number },
) {
  const { registrations, deliveries } = webhooks;
  const accounts = createRateLimit({ perMinute: requestsPerMinute, clock });

  /** Returns the visitor's subscriber. Every route calls it once, before it reads anything. */
  const admit = ({ visitor }: ApiCall) => {
    if (!visitor.subscriber) throw notFound("webhook");
    const seconds = accounts.take(visitor.subscriber.account);
    if (seconds === 0) return visitor.subscriber;
    throw new PostbellError(
      "rate_limited",
      `This account sends too many requests; try again in ${seconds} s.`,
      { retryAfterSeconds: seconds },
    );
  };

  /** Reads the webhook of the path, which must be the visitor's. */
  const readWebhook = async (call: ApiCall) => {
    const as = admit(call);
    return { webhook: await registrations.get(call.parameter("webhookId"), { as }), as };
  };

  return {
    webhooks,
    clock,
    admit,
    readWebhook,
    /** Charges an account for requests beyond the first. */
    charge: (account: string, requests: number) => accounts.charge(account, requests),
    /** Reads the delivery of the path, which must be of the webhook of the path. */
    readDelivery: async (call: ApiCall) => {
      const { webhook, as } = await readWebhook(call);
      const delivery = await deliveries.get(call.parameter("deliveryId"), { as });
      if (delivery.webhookId !== webhook.id) throw notFound("delivery");
      return { webhook, delivery, as };
    },
    withStats: async (webhook: Webhook) => ({
      webhook: toWebhookJson(webhook),
      stats: await deliveries.stats({ webhookId: webhook.id }),
    }),
  };
}

export type WebhookAccess = ReturnType<typeof createWebhookAccess>;
