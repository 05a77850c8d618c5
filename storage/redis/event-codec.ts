/** Decodes stored events. append.lua and append-general.lua write them. */

import type { EventRecord } from "../../src/webhooks/store.js";
import { copyEvent } from "../event-copy.js";
import { decodeStoredText } from "../stored-text.js";
import { decodeText, encodeText } from "./text-codec.js";

/** A stored event. */
export interface StoredEvent {
  readonly event: EventRecord;
  readonly createdAt: number;
  /** How many deliveries it was stored with. */
  readonly receivers: number;
}

/**
 * Encodes the type of an event with its subject, if it has one: `type` or `type,subject`. Encoded
 * texts have no commas.
 */
export const encodeLabel = ({ type, subject }: Pick<EventRecord, "type" | "subject">): string =>
  subject === undefined ? encodeText(type) : `${encodeText(type)},${encodeText(subject)}`;

export function decodeLabel(label: string): Pick<EventRecord, "type" | "subject"> {
  const [type = "", subject] = label.split(",");
  return { type: decodeText(type), ...(subject !== undefined && { subject: decodeText(subject) }) };
}

/** The first line of `order,deliveries,…⏎digest⏎label⏎payload`. */
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
    const event = copyEvent({
      id,
      account,
      ...decodeLabel(text.slice(typeAt, payloadAt - 1)),
      digest: JSON.parse(text.slice(digestAt, typeAt - 1)) as string,
      payload: decodeStoredText(text.slice(payloadAt)),
    });
    return { event, createdAt: Number.parseInt(order.slice(0, 11), 16), receivers: Number(receivers) };
  } catch {
    return undefined;
  }
}
