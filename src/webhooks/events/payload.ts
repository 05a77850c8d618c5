/**
 * The form in which an event is stored once, for all its deliveries and attempts: one line of JSON,
 * then the texts of the entries.
 */

import { PostbellError } from "../../core/errors.js";

/** An event without the texts of its entries. It determines the bytes of every later attempt. */
export interface PayloadHeader {
  /** Version of this form. */
  readonly v: 1;
  /** The event's UUID. */
  readonly id: string;
  readonly type: string;
  /** ISO 8601 in UTC; also the bundle's `meta.lastUpdated`. */
  readonly timestamp: string;
  /** The bundle's UUID. */
  readonly bundle: string;
  /** The `traceparent` of the span that emitted it. It is never sent. */
  readonly trace?: string | undefined;
  readonly entries: readonly EntryHeader[];
}

/**
 * One entry: resource type, UUID of its `fullUrl`, length of its text in UTF-16 units, slots. It is
 * an array to keep the stored text short.
 */
export type EntryHeader = readonly [
  resourceType: string,
  uuid: string,
  length: number,
  slots: readonly ReferenceSlot[],
];

/**
 * Where a text refers to another entry, in UTF-16 units, end excluded. Slots are in ascending order
 * and never overlap.
 */
export type ReferenceSlot = readonly [start: number, end: number, entry: number];

/** Serialises an event. `splitPayload` is its inverse. */
export function writePayload(header: PayloadHeader, texts: readonly string[]): string {
  return `${JSON.stringify(header)}\n${texts.join("")}`;
}

/**
 * Splits a payload into header and texts. Throws `invalid_argument` if this code cannot read it.
 */
export function splitPayload(payload: string): { header: PayloadHeader; texts: readonly string[] } {
  const line = payload.indexOf("\n");
  const header = line === -1 ? undefined : (parse(payload.slice(0, line)) as PayloadHeader | undefined);
  if (header?.v !== 1) {
    throw new PostbellError("invalid_argument", "the stored event has a form that this version cannot read", {
      field: "payload",
    });
  }
  let at = line + 1;
  const texts = header.entries.map(([, , length]) => {
    at += length;
    return payload.slice(at - length, at);
  });
  return { header, texts };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
