/** Builds the signed request of an attempt. */

import type { Clock } from "../../core/clock.js";
import type { OutboundRequest } from "../../outbound/types.js";
import { signatureHeader, standardHeaders } from "../../signature/signature.js";
import type { PreparedEvent } from "../events/notification.js";
import { getRotation } from "../registrations/secret-rotation.js";
import type { WebhooksSettings } from "../settings/settings.js";
import type { Claim, WebhookRecord } from "../store.js";

/**
 * Returns the secrets that sign, the one of `X-Service-Signature` first. During a rotation this is
 * the old one, until the subscriber has had time to learn the new one.
 */
const selectSigningSecrets = (webhook: WebhookRecord, now: number): readonly [string, ...string[]] => {
  const rotation = getRotation(webhook, now);
  return rotation === null ? [webhook.secret] : [rotation.previousSecret, webhook.secret];
};

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
    const secrets = selectSigningSecrets(webhook, now);
    const headers: Record<string, string> = {
      "content-type": "application/json",
      "user-agent": "Postbell",
      [signature.header]: signatureHeader({ secret: secrets[0], timestamp, body }),
    };
    if (signature.standardWebhooks) Object.assign(headers, standardHeaders({ secrets, id, timestamp, body }));
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
