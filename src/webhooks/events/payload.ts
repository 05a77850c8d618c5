/** The form in which an event is stored once, for all its deliveries and attempts: one line of JSON, then the entries' texts. */

import { PostbellError } from "../../core/errors.js";

/** Everything of an event but the texts of its entries. What is stored here decides the bytes of every later attempt. */
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
  /** The `traceparent` of the span that emitted it. No body holds it. */
  readonly trace?: string | undefined;
  readonly entries: readonly EntryHeader[];
}

/** An array, since it is stored with every event: the entry's resource type, the UUID of its `fullUrl`, the length of its text in UTF-16 units, its slots. */
export type EntryHeader = readonly [
  resourceType: string,
  uuid: string,
  length: number,
  slots: readonly ReferenceSlot[],
];

/** Where a text refers to another entry: UTF-16 units within it, end excluded. In ascending order, never overlapping. */
export type ReferenceSlot = readonly [start: number, end: number, entry: number];

export function writePayload(header: PayloadHeader, texts: readonly string[]): string {
  return `${JSON.stringify(header)}\n${texts.join("")}`;
}

/** Errors: `invalid_argument` when it is no payload of a version this code knows. */
export function splitPayload(payload: string): { header: PayloadHeader; texts: readonly string[] } {
  const line = payload.indexOf("\n");
  const header = line === -1 ? undefined : (parse(payload.slice(0, line)) as PayloadHeader | undefined);
  if (header?.v !== 1) {
    throw new PostbellError("invalid_argument", "the stored event is not of a form this version can read", {
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
