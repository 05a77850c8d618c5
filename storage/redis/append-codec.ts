/** Encodes events for the two append scripts, and decodes the deliveries that they created. */

import { formatDeliveryId } from "../../src/webhooks/delivery/delivery-id.js";
import type { AppendedEvent, EventRecord } from "../../src/webhooks/store.js";
import { encodeStoredText } from "../stored-text.js";
import type { RedisArgument } from "./client.js";
import { encodeLabel } from "./event-codec.js";
import { decodeUuid, encodeText, encodeUuid } from "./text-codec.js";

/** An event that waits to be stored. */
export interface AppendItem {
  readonly event: EventRecord;
  /** The encoded id of the event. */
  readonly short: string;
  readonly rememberMs: number;
  readonly nonce: string;
  readonly webhookId: string | undefined;
  /** True if it is stored only if the item before it was. */
  readonly follows: boolean;
}

/** Adds the arguments of an event for `append.lua`. */
export function encodeCommonEvent(
  { event, short, rememberMs, nonce }: AppendItem,
  now: number,
  args: RedisArgument[],
): void {
  const label = encodeLabel(event);
  args.push(
    encodeText(event.account),
    short,
    encodeText(event.type),
    `${Math.round(now + rememberMs)},${nonce}`,
    `${JSON.stringify(event.digest)}\n${label}\n${encodeStoredText(event.payload)}`,
    label,
  );
}

/** Encodes an event for `append-general.lua`. */
export const encodeEvent = ({
  event,
  short,
  rememberMs,
  nonce,
  webhookId,
  follows,
}: AppendItem): readonly RedisArgument[] => [
  encodeText(event.account),
  short,
  encodeText(event.type),
  JSON.stringify(event.digest),
  encodeStoredText(event.payload),
  rememberMs,
  nonce,
  webhookId === undefined ? "" : encodeUuid(webhookId),
  encodeLabel(event),
  follows ? "1" : "",
];

/**
 * Returns a decoder for the deliveries of events. The events of one call mostly go to the same
 * webhooks, so it decodes each list of webhook ids once.
 */
export function createDeliveryDecoder(): (eventId: string, shorts: string) => AppendedEvent["deliveries"] {
  const known = new Map<string, readonly string[]>();
  return (eventId, shorts) => {
    let webhookIds = known.get(shorts);
    if (webhookIds === undefined) {
      webhookIds = shorts === "" ? [] : shorts.split(";").map(decodeUuid);
      known.set(shorts, webhookIds);
    }
    return webhookIds.map((webhookId) => ({
      id: formatDeliveryId({ webhookId, eventId, serial: 0 }),
      webhookId,
    }));
  };
}
