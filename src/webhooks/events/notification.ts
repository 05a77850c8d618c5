/** The body of an attempt, put together from the stored event: what may be read, addressed to one webhook. */

import { allocateBriefly } from "../../core/byte-pool.js";
import { contextKey } from "../event-types/catalogue.js";
import type { ParsedResource } from "../fhir.js";
import { type PayloadHeader, splitPayload } from "./payload.js";

/** `notification`: `{ id, timestamp, event }`. `envelope`: `{ id, eventType, payload: { timestamp, id, event } }`. */
export type BodyForm = "notification" | "envelope";

export interface BodyOptions {
  readonly form: BodyForm;
  /** `hub.topic`: the webhook's id. */
  readonly topic: string;
  /** For each entry whether it is sent; what is not `true` is left out. `null` sends all. */
  readonly allowed: readonly boolean[] | null;
  /** Adds `event_id`, which the interface announces, with the event's id. */
  readonly eventIdField: boolean;
}

/** A stored event, ready for its attempts. */
export interface PreparedEvent {
  readonly id: string;
  readonly type: string;
  /** The `traceparent` of the span that emitted it. */
  readonly trace: string | undefined;
  /** The focal resource first. */
  readonly entries: readonly PreparedEntry[];
  /**
   * The bytes to sign and send. Same arguments, same bytes, in every call and every process.
   *
   * References between entries that are sent are rewritten to the `fullUrl` of their target; references to others keep their form.
   */
  body(options: BodyOptions): Buffer;
}

export interface PreparedEntry {
  readonly resourceType: string;
  /** The resource as it was emitted, references not rewritten: a copy of its own for each who asks, which costs less than freezing one for all. */
  resource(): ParsedResource;
}

/**
 * Reads what `buildPayload` made.
 *
 * Takes a few microseconds, less than a look into a cache would, so each attempt reads the text again.
 * Errors: `invalid_argument` when the text is no payload.
 */
export function readPayload(payload: string): PreparedEvent {
  const { header, texts } = splitPayload(payload);
  return {
    id: header.id,
    type: header.type,
    trace: header.trace,
    entries: header.entries.map(([resourceType], index) => ({
      resourceType,
      resource: () => JSON.parse(texts[index] ?? "null") as ParsedResource,
    })),
    body({ form, topic, allowed, eventIdField }: BodyOptions): Buffer {
      const { head, middle, tail } = frame(header, form, eventIdField);
      const start = head + JSON.stringify(topic) + middle;
      return encode(bodyPieces({ start, tail }, header, texts, allowed));
    },
  };
}

/** What stands around `hub.topic` and around the entries. */
interface Frame {
  readonly head: string;
  readonly middle: string;
  readonly tail: string;
}

function frame(header: PayloadHeader, form: BodyForm, eventIdField: boolean): Frame {
  // None of them has a character that JSON escapes: UUIDs, ISO 8601, and names of a catalogue.
  const [id, type, timestamp, key] = [header.id, header.type, header.timestamp, contextKey(header.type)].map(
    (text) => `"${text}"`,
  );
  const announced = eventIdField ? `"event_id":${id},` : "";
  const bundle = `"resourceType":"Bundle","id":"${header.bundle}","meta":{"lastUpdated":${timestamp}}`;
  const middle = `,"hub.event":${type},"context":[{"key":${key},"resource":{${bundle},"type":"collection","entry":[`;
  const tail = "]}}]}}";
  return form === "notification"
    ? { head: `{"id":${id},${announced}"timestamp":${timestamp},"event":{"hub.topic":`, middle, tail }
    : {
        head: `{"id":${id},${announced}"eventType":${type},"payload":{"timestamp":${timestamp},"id":${id},"event":{"hub.topic":`,
        middle,
        tail: `${tail}}`,
      };
}

/** The text of a body in order, in few pieces. `start` and `tail`: what stands around the entries. */
function bodyPieces(
  { start, tail }: { readonly start: string; readonly tail: string },
  { entries }: PayloadHeader,
  texts: readonly string[],
  allowed: readonly boolean[] | null,
): readonly string[] {
  const isSent = (index: number): boolean => allowed === null || allowed[index] === true;
  const pieces: string[] = [];
  /** Short texts up to the next part of a resource. */
  let short = start;
  let separator = "";
  for (const [index, [, uuid, , slots]] of entries.entries()) {
    if (!isSent(index)) continue;
    const text = texts[index] ?? "";
    short += `${separator}{"fullUrl":"${URN}${uuid}","resource":`;
    let at = 0;
    for (const [from, to, target] of slots) {
      const entry = entries[target];
      if (entry === undefined || !isSent(target)) continue;
      pieces.push(short, text.slice(at, from));
      short = URN + entry[1];
      at = to;
    }
    pieces.push(short, text.slice(at));
    short = "}";
    separator = ",";
  }
  pieces.push(short + tail);
  return pieces;
}

/** Piece by piece, since one long text would be put together on the heap first, only to be thrown away. */
function encode(pieces: readonly string[]): Buffer {
  let length = 0;
  for (const piece of pieces) length += Buffer.byteLength(piece);
  const bytes = allocateBriefly(length);
  let at = 0;
  for (const piece of pieces) at += bytes.write(piece, at);
  return bytes;
}

const URN = "urn:uuid:";
/** UTF-8 bytes of a `fullUrl`. */
const FULL_URL_BYTES = URN.length + 36;

/**
 * UTF-8 bytes that no body of this event passes, whatever its form and whoever reads it: each reference is counted at the longer of
 * its two forms.
 */
export function largestBodyBytes(header: PayloadHeader, texts: readonly string[]): number {
  const { head, middle, tail } = frame(header, "envelope", true);
  const quotedUuid = 38;
  let bytes = Buffer.byteLength(head + middle + tail) + quotedUuid;
  for (const [index, [, , , slots]] of header.entries.entries()) {
    const text = texts[index] ?? "";
    bytes += `,{"fullUrl":"","resource":}`.length + FULL_URL_BYTES + Buffer.byteLength(text);
    for (const [start, end] of slots) {
      bytes += Math.max(0, FULL_URL_BYTES - Buffer.byteLength(text.slice(start, end)));
    }
  }
  return bytes;
}
