/** Builds the stored form of an event: the focal resource, and everything it references. */

import { hash } from "node:crypto";
import { PostbellError } from "../../core/errors.js";
import { nameUuid } from "../../core/uuid.js";
import type { FhirResource } from "../fhir.js";
import {
  type BundleLimits,
  type CollectedEntries,
  checkBytes,
  collectEntries,
  type ResolveEntry,
} from "./collect-entries.js";
import { assignEntryUuids } from "./entry-uuids.js";
import { largestBodyBytes } from "./notification.js";
import { type PayloadHeader, type ReferenceSlot, writePayload } from "./payload.js";
import { toTarget } from "./reference-target.js";
import { type ResourceText, serialiseResource } from "./resource-text.js";

export interface BundleRequest {
  /** A UUID. */
  readonly eventId: string;
  readonly account: string;
  readonly type: string;
  /** Epoch milliseconds, within the years 0 to 9999. */
  readonly occurredAt: number;
  /** True if the host gave that time. Only then is it part of the digest. */
  readonly isOccurredAtGiven: boolean;
  readonly resource: FhirResource;
  /** The resource types that `resource` may have (see `focalTypes`); any if absent. */
  readonly focalTypes?: readonly string[] | undefined;
  /** Resources that a reference may point to. Unreferenced ones are left out. */
  readonly related?: readonly FhirResource[] | undefined;
  /**
   * Called for references that `related` does not hold: once for each, at most four times for each
   * entry allowed.
   */
  readonly resolve?: ResolveEntry | undefined;
  /**
   * The `traceparent` of the span that emits the event. It is stored, but not sent and not part of
   * the digest.
   */
  readonly trace?: string | undefined;
  readonly limits: BundleLimits;
}

export interface BuiltPayload {
  /** The event as it is stored; `readPayload` reads it. */
  readonly payload: string;
  /**
   * SHA-256 (hexadecimal) of what the host gave: type, time if given, resource, related. What
   * `resolve` found is not part of it, so that emitting again matches even if a referenced record
   * has changed.
   */
  readonly digest: string;
}

/**
 * Collects an event's bundle and serialises it. Returns a promise only if `resolve` was called.
 *
 * References are followed breadth first from the focal resource, in the order they are written,
 * each `Type/id` once, so cycles end. `Type/id` and `Type/id/_history/n` mean the related resource
 * with that type and id, `urn:uuid:x` the one whose id is x. If there is no such resource, they go
 * to `resolve`, and so does every other form (absolute URLs, searches). A resource that `resolve`
 * finds for `Type/id` must have that type and id. `#contained` is left alone.
 *
 * Guarantee: the same request and the same results of `resolve` give the same payload.
 *
 * @throws `invalid_argument` if a resource, the time or the focal type cannot be used, with its
 * path as `field`; `event_too_large`.
 */
export function buildPayload(request: BundleRequest): BuiltPayload | Promise<BuiltPayload> {
  const timestamp = toInstant(request.occurredAt);
  const focal = readFocal(request);
  const related = readRelated(request.related);
  const digest = computeDigest(request, timestamp, [focal, ...related]);
  const finish = (collected: CollectedEntries): BuiltPayload => ({
    payload: serialiseEntries(request, timestamp, collected),
    digest,
  });
  const collected = collectEntries(focal, related, request);
  return collected instanceof Promise ? collected.then(finish) : finish(collected);
}

function serialiseEntries(
  request: BundleRequest,
  timestamp: string,
  { entries, targets }: CollectedEntries,
): string {
  const uuids = assignEntryUuids(entries, request);
  const header: PayloadHeader = {
    v: 1,
    id: request.eventId,
    type: request.type,
    timestamp,
    bundle: nameUuid(request.eventId, "bundle"),
    ...(request.trace === undefined ? {} : { trace: request.trace }),
    entries: entries.map((entry, index) => [
      entry.resourceType,
      uuids[index] ?? "",
      entry.text.length,
      findSlots(entry, targets),
    ]),
  };
  const texts = entries.map(({ text }) => text);
  checkBytes(largestBodyBytes(header, texts), request.limits);
  return writePayload(header, texts);
}

/** The last time that was converted: most events of a burst occur within a few milliseconds. */
let lastInstant = { at: Number.NaN, text: "" };

function toInstant(occurredAt: number): string {
  if (lastInstant.at === occurredAt) return lastInstant.text;
  const time = new Date(occurredAt);
  const text = Number.isNaN(time.getTime()) ? "" : time.toISOString();
  // Years beyond 0 to 9999 take a sign and six digits, which is not a FHIR instant.
  if (text.length !== "2000-01-01T00:00:00.000Z".length) {
    throw new PostbellError("invalid_argument", "occurredAt must be a time within the years 0 to 9999", {
      field: "occurredAt",
    });
  }
  lastInstant = { at: occurredAt, text };
  return text;
}

function readFocal({ resource, type, focalTypes }: BundleRequest): ResourceText {
  const focal = readResource(resource, "resource");
  if (focalTypes === undefined || focalTypes.includes(focal.resourceType)) return focal;
  throw new PostbellError(
    "invalid_argument",
    `an event of type '${type}' is about a resource of type ${focalTypes.join(" or ")}, not ${focal.resourceType}`,
    { field: "resource.resourceType" },
  );
}

function readRelated(related: readonly FhirResource[] | undefined): readonly ResourceText[] {
  if (related === undefined) return [];
  if (!Array.isArray(related)) {
    throw new PostbellError("invalid_argument", "related must be a list of resources", { field: "related" });
  }
  // Array.from visits holes too, and a hole is not a resource.
  return Array.from(related as readonly unknown[], (item, index) => readResource(item, `related[${index}]`));
}

function readResource(value: unknown, path: string): ResourceText {
  const read = serialiseResource(value);
  if (!("problem" in read)) return read;
  const field = read.element === undefined ? path : `${path}.${read.element}`;
  throw new PostbellError("invalid_argument", `${field} ${read.problem}`, { field, cause: read.cause });
}

/** Returns where a text refers to other entries. */
function findSlots(
  { references }: ResourceText,
  targets: ReadonlyMap<string, number>,
): readonly ReferenceSlot[] {
  const slots: ReferenceSlot[] = [];
  for (const { reference, start, end } of references) {
    const target = toTarget(reference);
    const index = target === undefined ? undefined : targets.get(target);
    if (index !== undefined) slots.push([start, end, index]);
  }
  return slots;
}

function computeDigest(
  { type, isOccurredAtGiven }: BundleRequest,
  timestamp: string,
  given: readonly ResourceText[],
): string {
  // No part contains a line feed, so two different lists of parts never give the same text.
  let text = `${type}\n${isOccurredAtGiven ? timestamp : ""}\n`;
  for (const part of given) text += `${part.text}\n`;
  return hash("sha256", text);
}
