/** The body of an attempt, put together from the stored event: what may be read, addressed to one webhook. */

import { contextKey } from "./catalogue.js";
import type { ParsedResource } from "./fhir.js";
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
 * Cheap until something is asked of it; keep it for all attempts of an event, and the text around `hub.topic` is built only once.
 * Errors: `invalid_argument` when the text is no payload.
 */
export function readPayload(payload: string): PreparedEvent {
  const { header, texts } = splitPayload(payload);
  const complete = new Map<string, Frame<Buffer> | null>();

  /**
   * The bytes around the topic of a body that holds everything. The first body of a form is made in one go, since most events have one receiver;
   * from the second on, only the topic is new.
   */
  const completeFrame = (form: BodyForm, eventIdField: boolean): Frame<Buffer> | null => {
    const key = eventIdField ? `${form}+` : form;
    const known = complete.get(key);
    if (known) return known;
    if (known === undefined) {
      complete.set(key, null);
      return null;
    }
    const { head, middle, tail } = frame(header, form, eventIdField);
    const made = {
      head: Buffer.from(head),
      middle: Buffer.from(middle + entriesText(header, texts, null) + tail),
    };
    complete.set(key, made);
    return made;
  };

  return {
    id: header.id,
    type: header.type,
    trace: header.trace,
    entries: header.entries.map(([resourceType], index) => ({
      resourceType,
      resource: () => JSON.parse(texts[index] ?? "null") as ParsedResource,
    })),
    body({ form, topic, allowed, eventIdField }: BodyOptions): Buffer {
      const quotedTopic = JSON.stringify(topic);
      const known = allowed === null ? completeFrame(form, eventIdField) : null;
      if (known === null) {
        const { head, middle, tail } = frame(header, form, eventIdField);
        return Buffer.from(head + quotedTopic + middle + entriesText(header, texts, allowed) + tail);
      }
      const { head, middle } = known;
      const topicBytes = Buffer.byteLength(quotedTopic);
      const body = Buffer.allocUnsafe(head.length + topicBytes + middle.length);
      head.copy(body);
      body.write(quotedTopic, head.length);
      middle.copy(body, head.length + topicBytes);
      return body;
    },
  };
}

/** What stands around `hub.topic` and around the entries. */
interface Frame<T> {
  readonly head: T;
  readonly middle: T;
}

function frame(
  header: PayloadHeader,
  form: BodyForm,
  eventIdField: boolean,
): Frame<string> & { tail: string } {
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

function entriesText(
  { entries }: PayloadHeader,
  texts: readonly string[],
  allowed: readonly boolean[] | null,
): string {
  const isSent = (index: number): boolean => allowed === null || allowed[index] === true;
  const sent: string[] = [];
  for (const [index, [, uuid, , slots]] of entries.entries()) {
    if (!isSent(index)) continue;
    const text = texts[index] ?? "";
    let resource = "";
    let at = 0;
    for (const [start, end, target] of slots) {
      const to = entries[target];
      if (to === undefined || !isSent(target)) continue;
      resource += `${text.slice(at, start)}${URN}${to[1]}`;
      at = end;
    }
    sent.push(`{"fullUrl":"${URN}${uuid}","resource":${resource}${text.slice(at)}}`);
  }
  return sent.join(",");
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
