/** Builds the body of an attempt from the stored event, addressed to one webhook. */

import { allocateBriefly } from "../../core/bytes.js";
import { PostbellError } from "../../core/errors.js";
import { contextKey } from "../event-types/catalogue.js";
import { type EventFilter, passesFilter } from "../event-types/event-filter.js";
import type { ParsedResource } from "../fhir.js";

/**
 * `notification`: `{ id, timestamp, event }`. `envelope`: `{ id, eventType, payload: { timestamp,
 * id, event } }`. `plain`: `{ id, type, timestamp, data }`, for events without a FHIR resource.
 */
export type BodyForm = "notification" | "envelope" | "plain";

/** An event without a FHIR resource, as subscribers get it and `canRead` sees it. */
export interface PlainEvent<T extends string = string, D = unknown> {
  /** The event's UUID. */
  readonly id: string;
  readonly type: T;
  /** When it happened: ISO 8601 in UTC. */
  readonly timestamp: string;
  /** As it was emitted. */
  readonly data: D;
}

/** A stored event, ready for its attempts. */
export interface PreparedEvent {
  id: string;
  type: string;
  /** The `traceparent` of the span that emitted it. */
  trace: string | undefined;
  /** True for an event without a FHIR resource. */
  isPlain: boolean;
  /** The subscriber must be allowed to read the first: the focal resource, or the plain event. */
  entries: PreparedEntry[];
  /**
   * Returns the bytes to sign and send. The same options give the same bytes, in every call and
   * every process. A plain event has one form, whatever the options are.
   *
   * References between entries that are sent are rewritten to the `fullUrl` of their target. Other
   * references keep their form.
   */
  body(options: {
    form: BodyForm;
    /** `hub.topic`: the webhook's id. */
    topic: string;
    /** One flag for each entry: only those that are `true` are sent. `null` sends all. */
    allowed: readonly boolean[] | null;
    /** Adds `event_id` with the event's id. */
    eventIdField: boolean;
  }): Buffer;
}

export interface PreparedEntry {
  /**
   * Returns the resource as it was emitted, with its original references, or the plain event. Each
   * call parses a new copy, which costs less than freezing one for all callers.
   */
  resource(): ParsedResource | PlainEvent;
}

/** Begins a stored payload that `EventSealer` has encrypted. Others begin with a brace. */
export const SEALED_MARK = "sealed.1.";

export const isSealed = (payload: string): boolean => payload.startsWith(SEALED_MARK);

/**
 * Parses the stored form of an event.
 *
 * It takes a few microseconds, less than a cache lookup would, so each attempt parses the text
 * again.
 *
 * @throws `invalid_argument` if the text is not a payload.
 */
export function readPayload(payload: string): PreparedEvent {
  const line = payload.indexOf("\n");
  const header = line === -1 ? undefined : parseHeader(payload.slice(0, line));
  const text = payload.slice(line + 1);
  if (header?.v === 1) return prepareBundle(header, text);
  if (header?.v === 2) return preparePlainEvent(header, text);
  throw new PostbellError("invalid_argument", "the stored event has a form that this version cannot read", {
    field: "payload",
  });
}

/**
 * Returns a function that tests filters against one stored event. It parses the payload once,
 * however many filters are tested. True if the event passes: all conditions hold, or the event has
 * no `data`, since filters apply to plain events only. For storages.
 *
 * @param event an `EventRecord` whose payload is not encrypted
 *
 * @example
 * const passes = createFilterTest(event);
 * const receivers = webhooks.filter(({ filter }) => filter === undefined || passes(filter));
 */
export function createFilterTest({ payload }: { payload: string }): (filter: EventFilter) => boolean {
  const line = payload.indexOf("\n");
  const header = line === -1 ? undefined : parseHeader(payload.slice(0, line));
  if (header?.v !== 2) return () => true;
  let data: unknown;
  try {
    data = JSON.parse(payload.slice(line + 1));
  } catch {
    // An attempt would find it unreadable too, and say so in the delivery log.
    return () => true;
  }
  return (filter) => passesFilter(filter, data);
}

const preparePlainEvent = (header: PlainHeader, data: string): PreparedEvent => ({
  id: header.id,
  type: header.type,
  trace: header.trace,
  isPlain: true,
  entries: [
    {
      resource: () => {
        const { id, type, timestamp } = header;
        return { id, type, timestamp, data: JSON.parse(data) as unknown };
      },
    },
  ],
  body: () => encode([plainStart(header), data, "}"]),
});

/** Returns the text of a plain event up to its data. */
function plainStart({ id, type, timestamp, isTest }: PlainHeader): string {
  // UUIDs, ISO 8601 and event types contain no character that JSON escapes.
  const mark = isTest === true ? `"test":true,` : "";
  return `{"id":"${id}","type":"${type}","timestamp":"${timestamp}",${mark}"data":`;
}

function prepareBundle(header: PayloadHeader, text: string): PreparedEvent {
  const texts = splitTexts(header, text);
  return {
    id: header.id,
    type: header.type,
    trace: header.trace,
    isPlain: false,
    entries: texts.map((entry) => ({ resource: () => JSON.parse(entry) as ParsedResource })),
    body({ form, topic, allowed, eventIdField }) {
      const { head, middle, tail } = frame(header, form, eventIdField);
      const start = head + JSON.stringify(topic) + middle;
      return encode(bodyPieces({ start, tail }, header, texts, allowed));
    },
  };
}

/** The text around `hub.topic` and around the entries. */
interface Frame {
  head: string;
  middle: string;
  tail: string;
}

function frame(header: PayloadHeader, form: BodyForm, eventIdField: boolean): Frame {
  // UUIDs, ISO 8601 and event types contain no character that JSON escapes.
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

/** Returns the text of a body in order, in few pieces. `start` and `tail` go around the entries. */
function bodyPieces(
  { start, tail }: { start: string; tail: string },
  { entries }: PayloadHeader,
  texts: string[],
  allowed: readonly boolean[] | null,
): string[] {
  const isSent = (index: number): boolean => allowed === null || allowed[index] === true;
  const pieces: string[] = [];
  /** Collects short texts up to the next part of a resource. */
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

/** Encodes piece by piece: joining the text first would only create garbage on the heap. */
function encode(pieces: string[]): Buffer {
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
 * Returns an upper limit for the UTF-8 bytes of every body of this event, whatever its form and
 * whoever may read it. Each reference is counted at the longer of its two forms.
 */
export function largestBodyBytes(header: PayloadHeader, texts: string[]): number {
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

/** An event without the texts of its entries. It determines the bytes of every later attempt. */
export interface PayloadHeader {
  /** Version of this form. */
  v: 1;
  /** The event's UUID. */
  id: string;
  type: string;
  /** ISO 8601 in UTC; also the bundle's `meta.lastUpdated`. */
  timestamp: string;
  /** The bundle's UUID. */
  bundle: string;
  /** The `traceparent` of the span that emitted it. It is never sent. */
  trace?: string | undefined;
  entries: EntryHeader[];
}

/**
 * One entry: resource type, UUID of its `fullUrl`, length of its text in UTF-16 units, slots. It is
 * an array to keep the stored text short.
 */
type EntryHeader = [resourceType: string, uuid: string, length: number, slots: ReferenceSlot[]];

/**
 * Where a text refers to another entry, in UTF-16 units, end excluded. Slots are in ascending order
 * and never overlap.
 */
export type ReferenceSlot = [start: number, end: number, entry: number];

/** A plain event without its data. It determines the bytes of every later attempt. */
export interface PlainHeader {
  id: PayloadHeader["id"];
  type: PayloadHeader["type"];
  timestamp: PayloadHeader["timestamp"];
  trace?: PayloadHeader["trace"];
  /** Version of this form. */
  v: 2;
  /** True for a test, which adds `"test": true` to what is sent. */
  isTest?: boolean | undefined;
}

/** Returns the UTF-8 bytes of every body of a plain event. */
export const plainBodyBytes = (header: PlainHeader, data: string): number =>
  Buffer.byteLength(plainStart(header)) + Buffer.byteLength(data) + "}".length;

/** Serialises an event. `readPayload` reads it. */
export function writePayload(header: PayloadHeader | PlainHeader, texts: string[]): string {
  return `${JSON.stringify(header)}\n${texts.join("")}`;
}

function splitTexts({ entries }: PayloadHeader, text: string): string[] {
  let at = 0;
  return entries.map(([, , length]) => {
    at += length;
    return text.slice(at - length, at);
  });
}

function parseHeader(text: string): PayloadHeader | PlainHeader | undefined {
  try {
    return JSON.parse(text) as PayloadHeader | PlainHeader;
  } catch {
    return undefined;
  }
}
