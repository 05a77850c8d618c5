/** Computes which secret signs until when after a rotation. Pure, and the same in every storage. */

import type { WebhookChange, WebhookRecord } from "../store.js";

/**
 * Returns the fields of a rotated webhook: the secret that signs now continues until `rotateAt`.
 */
export function rotateSecret(
  { secret, previousSecret, rotateAt }: WebhookRecord,
  rotation: NonNullable<WebhookChange["rotation"]>,
  now: number,
): Pick<WebhookRecord, "secret" | "previousSecret" | "rotateAt"> {
  if (rotation.rotateAt <= now) return { secret: rotation.secret, previousSecret: null, rotateAt: null };
  const isInProgress = previousSecret !== null && rotateAt !== null && now < rotateAt;
  return { ...rotation, previousSecret: isInProgress ? previousSecret : secret };
}
