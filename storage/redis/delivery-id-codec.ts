/**
 * Ids of deliveries as the scripts write them: `<event>` or `<event>.<serial>`, behind the number
 * of their webhook.
 */

import { formatDeliveryId, parseDeliveryId } from "../../src/webhooks/delivery/delivery-id.js";
import { longId, shortId } from "./codec.js";

/** The suffix of a delivery's id, or `undefined` where it is not one. */
export function encodeDeliveryId(
  id: string,
): { readonly webhookId: string; readonly suffix: string } | undefined {
  const key = parseDeliveryId(id);
  if (key === undefined) return undefined;
  const { webhookId, eventId, serial } = key;
  return { webhookId, suffix: serial === 0 ? shortId(eventId) : `${shortId(eventId)}.${serial}` };
}

/** The id of a delivery from its suffix. */
export function decodeDeliveryId(webhookId: string, suffix: string): string {
  const [short = "", serial = "0"] = suffix.split(".");
  return formatDeliveryId({ webhookId, eventId: longId(short), serial: Number(serial) });
}
