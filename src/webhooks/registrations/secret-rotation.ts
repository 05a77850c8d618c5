/** What a new secret does to a webhook: which one signs until when. Pure, and the same in every storage. */

import type { WebhookChange, WebhookRecord } from "../store.js";

/** The fields of a new secret: what signs now goes on signing until `rotateAt`. */
export function rotateSecret(
  { secret, previousSecret, rotateAt }: WebhookRecord,
  rotation: NonNullable<WebhookChange["rotation"]>,
  now: number,
): Pick<WebhookRecord, "secret" | "previousSecret" | "rotateAt"> {
  if (rotation.rotateAt <= now) return { secret: rotation.secret, previousSecret: null, rotateAt: null };
  const isUnderWay = previousSecret !== null && rotateAt !== null && now < rotateAt;
  return { ...rotation, previousSecret: isUnderWay ? previousSecret : secret };
}
