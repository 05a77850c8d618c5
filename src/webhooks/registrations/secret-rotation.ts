/** Computes which secret signs until when after a rotation. Pure, and the same in every storage. */

import type { SecretRotation, WebhookRecord } from "../store.js";

type Secrets = Pick<WebhookRecord, "secret" | "previousSecret" | "rotateAt">;

/**
 * Returns when the new secret begins to sign, and the secret that signs until then; `null` if no
 * rotation is in progress.
 */
export const getRotation = (
  { previousSecret, rotateAt }: Secrets,
  now: number,
): { readonly previousSecret: string; readonly rotateAt: number } | null =>
  previousSecret !== null && rotateAt !== null && now < rotateAt ? { previousSecret, rotateAt } : null;

/**
 * Returns the fields of a rotated webhook: the secret that signs now continues until `rotateAt`. A
 * finished rotation leaves only the new secret.
 */
export function rotateSecret(webhook: Secrets, rotation: SecretRotation, now: number): Secrets {
  if ("finish" in rotation) return { secret: webhook.secret, previousSecret: null, rotateAt: null };
  if (rotation.rotateAt <= now) return { secret: rotation.secret, previousSecret: null, rotateAt: null };
  return { ...rotation, previousSecret: getRotation(webhook, now)?.previousSecret ?? webhook.secret };
}
