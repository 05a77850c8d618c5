/** Decodes stored events. append.lua and append-general.lua write them. */

import type { EventRecord } from "../../src/webhooks/store.js";
import { decodeText } from "./text-codec.js";

/** A stored event. */
export interface StoredEvent {
  readonly event: EventRecord;
  readonly createdAt: number;
  /** How many deliveries it was stored with. */
  readonly receivers: number;
}

/** The first line of `order,deliveries,…⏎digest⏎type⏎payload`. */
const EVENT_HEAD = /^([0-9a-f]{15}),(\d+),[^\n]*$/i;

/** Returns `undefined` if the text is not a stored event. */
export function decodeEvent(text: string, account: string, id: string): StoredEvent | undefined {
  const headEnd = text.indexOf("\n");
  const digestAt = headEnd + 1;
  const typeAt = text.indexOf("\n", digestAt) + 1;
  const payloadAt = text.indexOf("\n", typeAt) + 1;
  const [, order = "", receivers = ""] = EVENT_HEAD.exec(text.slice(0, Math.max(0, headEnd))) ?? [];
  if (order === "" || typeAt === 0 || payloadAt === 0) return undefined;
  try {
    const event = Object.freeze({
      id,
      account,
      type: decodeText(text.slice(typeAt, payloadAt - 1)),
      digest: JSON.parse(text.slice(digestAt, typeAt - 1)) as string,
      payload: text.slice(payloadAt),
    });
    return { event, createdAt: Number.parseInt(order.slice(0, 11), 16), receivers: Number(receivers) };
  } catch {
    return undefined;
  }
}
