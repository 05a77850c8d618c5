/** Parses the body of a delivery. Pure. */

import type { DataOf, IsPlainType } from "../webhooks/event-types/event-data.js";
import type { ParsedResource } from "../webhooks/fhir.js";

/** An event as it arrives. In the envelope form of the body it is the `payload`. */
export interface EventNotification {
  /** The event's UUID, the same in every repetition. */
  readonly id: string;
  /** When the event occurred: ISO 8601 in UTC. */
  readonly timestamp: string;
  readonly event: {
    /** The webhook's id. */
    readonly "hub.topic": string;
    /** The event type: `patient.updated`. */
    readonly "hub.event": string;
    readonly context: [NotificationContext];
  };
}

/** The record that an event is about. */
export interface NotificationContext {
  /** The part of the event type before its first dot. */
  readonly key: string;
  readonly resource: NotificationBundle;
}

/** A FHIR Bundle; assignable to `fhir4.Bundle`. The focal resource is its first entry. */
export interface NotificationBundle {
  readonly resourceType: "Bundle";
  readonly id: string;
  readonly meta: { readonly lastUpdated: string };
  readonly type: "collection";
  readonly entry: { readonly fullUrl: string; readonly resource: ParsedResource }[];
}

/** An event without a FHIR resource, as it arrives. */
export interface PlainNotification<T extends string = string, D = unknown> {
  /** The event's UUID, the same in every repetition. */
  readonly id: string;
  /** The event type: `order.paid`. */
  readonly type: T;
  /** When the event occurred: ISO 8601 in UTC. */
  readonly timestamp: string;
  readonly data: D;
  /** True for a test that you requested. */
  readonly test?: true | undefined;
}

/**
 * The plain events of a catalogue as they arrive: a union by `type`. Of any type, if the catalogue
 * is not known to the compiler.
 *
 * @example
 * const handle = (event: NotificationOf<typeof events>) => {
 *   if (event.type === "order.paid") ship(event.data.order);
 * };
 */
export type NotificationOf<C> = string extends keyof C
  ? PlainNotification
  : {
      [T in keyof C & string]: IsPlainType<C, T> extends true ? PlainNotification<T, DataOf<C, T>> : never;
    }[keyof C & string];

/**
 * Parses the body of an event with a resource, in either form; `undefined` if it is neither. Checks
 * only the outer structure, because the body is signed.
 */
export function readNotification(body: Uint8Array | string): EventNotification | undefined {
  const parsed = parseBody(body);
  const notification = isObject(parsed) && isObject(parsed["payload"]) ? parsed["payload"] : parsed;
  return isNotification(notification) ? notification : undefined;
}

/** Parses the body of a plain event; `undefined` for any other body. */
export function readPlainNotification(body: Uint8Array | string): PlainNotification | undefined {
  const parsed = parseBody(body);
  if (!isObject(parsed) || !("data" in parsed)) return undefined;
  const texts = [parsed["id"], parsed["type"], parsed["timestamp"]];
  const isPlain = texts.every((text) => typeof text === "string" && text !== "");
  return isPlain ? (parsed as unknown as PlainNotification) : undefined;
}

/** Parses JSON in UTF-8; `undefined` for any other body. */
export function parseBody(body: Uint8Array | string): unknown {
  try {
    return JSON.parse(
      typeof body === "string" ? body : new TextDecoder("utf-8", { fatal: true }).decode(body),
    ) as unknown;
  } catch {
    return undefined;
  }
}

function isNotification(value: unknown): value is EventNotification {
  if (!isObject(value) || !isObject(value["event"])) return false;
  const { "hub.topic": topic, "hub.event": type, context } = value["event"];
  const texts = [value["id"], value["timestamp"], topic, type];
  if (!texts.every((text) => typeof text === "string" && text !== "")) return false;
  const [only, ...others]: unknown[] = Array.isArray(context) ? context : [];
  if (!isObject(only) || others.length > 0 || typeof only["key"] !== "string") return false;
  const bundle = only["resource"];
  return isObject(bundle) && bundle["resourceType"] === "Bundle" && Array.isArray(bundle["entry"]);
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
