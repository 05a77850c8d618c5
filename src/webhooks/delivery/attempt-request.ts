/** Builds the signed request of an attempt. */

import type { Clock } from "../../core/clock.js";
import type { OutboundRequest } from "../../outbound/types.js";
import { signatureHeader, standardHeaders } from "../../signature/signature.js";
import type { PreparedEvent } from "../events/notification.js";
import type { WebhooksSettings } from "../settings/settings.js";
import type { Claim, WebhookRecord } from "../store.js";

/**
 * During a rotation the old secret signs until the subscriber has had time to learn the new one.
 */
const getSigningSecret = (webhook: WebhookRecord, now: number): string =>
  webhook.previousSecret !== null && webhook.rotateAt !== null && now < webhook.rotateAt
    ? webhook.previousSecret
    : webhook.secret;

/**
 * @param allowed for each entry of the event, whether the subscriber may read it.
 * @param now the time of the storage.
 */
export type BuildAttemptRequest = (
  claim: Claim,
  event: PreparedEvent,
  allowed: readonly boolean[],
  now: number,
) => OutboundRequest;

export function createRequestBuilder(
  { body: form, delivery, signature }: Pick<WebhooksSettings, "body" | "delivery" | "signature">,
  clock: Clock,
): BuildAttemptRequest {
  return ({ webhook, event: { id } }, event, allowed, now) => {
    const body = event.body({
      form,
      topic: webhook.id,
      allowed: allowed.every(Boolean) ? null : allowed,
      eventIdField: delivery.eventIdField,
    });
    const timestamp = Math.floor(clock.now() / 1000);
    const secret = getSigningSecret(webhook, now);
    const headers: Record<string, string> = {
      "content-type": "application/json",
      "user-agent": "Postbell",
      [signature.header]: signatureHeader({ secret, timestamp, body }),
    };
    if (signature.standardWebhooks) Object.assign(headers, standardHeaders({ secret, id, timestamp, body }));
    return {
      url: webhook.url,
      method: "POST",
      headers,
      body,
      deadlineMs: delivery.deadlineMs,
      maxBodyBytes: delivery.maxResponseBytes,
    };
  };
}
