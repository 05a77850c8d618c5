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

type RequestSettings = Pick<WebhooksSettings, "body" | "delivery" | "signature">;

/** Builds the body of every attempt to a webhook under the same permissions. */
export const buildBody = (
  { body: form, delivery }: RequestSettings,
  { id: topic }: Pick<WebhookRecord, "id">,
  event: PreparedEvent,
  allowed: readonly boolean[],
): Buffer =>
  event.body({
    form,
    topic,
    allowed: allowed.every(Boolean) ? null : allowed,
    eventIdField: delivery.eventIdField,
  });

/** The headers that are the same for every attempt. */
const FIXED_HEADERS = { "content-type": "application/json", "user-agent": "Postbell" } as const;

/** Lists the headers of an attempt, with `perAttempt` for values that each attempt computes. */
export const listHeaders = (
  { signature }: RequestSettings,
  { id, perAttempt }: { readonly id: string; readonly perAttempt: string },
): Readonly<Record<string, string>> => ({
  ...FIXED_HEADERS,
  [signature.header]: perAttempt,
  ...(signature.standardWebhooks && {
    "webhook-id": id,
    "webhook-timestamp": perAttempt,
    "webhook-signature": perAttempt,
  }),
});

export function createRequestBuilder(settings: RequestSettings, clock: Clock): BuildAttemptRequest {
  const { delivery, signature } = settings;
  return ({ webhook, event: { id } }, event, allowed, now) => {
    const body = buildBody(settings, webhook, event, allowed);
    const timestamp = Math.floor(clock.now() / 1000);
    const secrets = selectSigningSecrets(webhook, now);
    const headers: Record<string, string> = {
      ...FIXED_HEADERS,
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
