/** Builds the stored form of an event: the focal resource, and everything it references. */

import { hash } from "node:crypto";
import { PostbellError } from "../../core/errors.js";
import { isUuid, nameUuid } from "../../core/uuid.js";
import type { FhirResource } from "../fhir.js";
import { largestBodyBytes, type PayloadHeader, type ReferenceSlot, writePayload } from "./notification.js";
import { isRelative, listTargets, type ResourceText, serialiseResource, toTarget } from "./resource-text.js";

export interface BundleRequest {
  /** A UUID. */
  eventId: string;
  account: string;
  type: string;
  /** Epoch milliseconds, within the years 0 to 9999. */
  occurredAt: number;
  /** True if the host gave that time. Only then is it part of the digest. */
  isOccurredAtGiven: boolean;
  resource: FhirResource;
  /** The resource types that `resource` may have; any if absent. */
  focalTypes?: readonly string[] | undefined;
  /** Resources that a reference may point to. Unreferenced ones are left out. */
  related?: readonly FhirResource[] | undefined;
  /**
   * Called for references that `related` does not hold: once for each, at most four times for each
   * entry allowed.
   */
  resolve?: ResolveEntry | undefined;
  /**
   * The `traceparent` of the span that emits the event. It is stored, but not sent and not part of
   * the digest.
   */
  trace?: string | undefined;
  limits: BundleLimits;
}

export interface BuiltPayload {
  /** The event as it is stored; `readPayload` reads it. */
  payload: string;
  /**
   * SHA-256 (hexadecimal) of what the host gave: type, time (if any), resource, related. What
   * `resolve` found is not part of it, so that emitting again matches even if a referenced record
   * has changed.
   */
  digest: string;
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
  checkBytes(largestBodyBytes(header, texts), request.limits.bytes);
  return writePayload(header, texts);
}

/** The last time that was converted: most events of a burst occur within a few milliseconds. */
let lastInstant = { at: Number.NaN, text: "" };

export function toInstant(occurredAt: number): string {
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

function readRelated(related: readonly FhirResource[] | undefined): ResourceText[] {
  if (related === undefined) return [];
  if (!Array.isArray(related)) {
    throw new PostbellError("invalid_argument", "related must be a list of resources", { field: "related" });
  }
  // Array.from visits holes too, and a hole is not a resource.
  return Array.from(related as unknown[], (item, index) => readResource(item, `related[${index}]`));
}

function readResource(value: unknown, path: string): ResourceText {
  const read = serialiseResource(value);
  if (!("problem" in read)) return read;
  const field = read.element === undefined ? path : `${path}.${read.element}`;
  throw new PostbellError("invalid_argument", `${field} ${read.problem}`, { field, cause: read.cause });
}

/** Returns where a text refers to other entries. */
function findSlots({ references }: ResourceText, targets: Map<string, number>): ReferenceSlot[] {
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
  resources: ResourceText[],
): string {
  // No part contains a line feed, so two different lists of parts never give the same text.
  let text = `${type}\n${isOccurredAtGiven ? timestamp : ""}\n`;
  for (const part of resources) text += `${part.text}\n`;
  return hash("sha256", text);
}

/**
 * Loads a referenced resource. A value that is not a resource, or not the referenced one, counts as
 * not found. Must not reject, and must settle in time.
 */
export type ResolveEntry = (reference: string) => unknown;

interface BundleLimits {
  /** Entries of the bundle, the focal one included. */
  entries: number;
  /** UTF-8 bytes of the largest body that could be sent for the event. */
  bytes: number;
}

interface CollectedEntries {
  entries: ResourceText[];
  /** From the target of a reference to the index of its entry. */
  targets: Map<string, number>;
}

/** Lookups of one event that run at a time, so that the host's database is not flooded. */
const LOOKUPS_AT_ONCE = 8;
/**
 * Lookups of one event for each entry that it may have, so that dead references do not become a
 * flood of queries.
 */
const LOOKUPS_PER_ENTRY = 4;

/** A reference to follow: its target, and its text. */
type Link = [target: string, reference: string];

/**
 * Follows references in the order they are written, each target once, so cycles end. Returns a
 * promise only if `resolve` was called.
 *
 * @throws `event_too_large`.
 */
function collectEntries(
  focal: ResourceText,
  related: ResourceText[],
  { resolve, limits }: { resolve?: ResolveEntry | undefined; limits: BundleLimits },
): CollectedEntries | Promise<CollectedEntries> {
  const { entries, targets, add } = createEntryList(limits);
  if (focal.references.length === 0) {
    add(focal);
    return { entries, targets };
  }
  const available = new Map<string, ResourceText>();
  for (const item of related) {
    for (const name of listTargets(item)) if (!available.has(name)) available.set(name, item);
  }
  const seen = new Set<string>();
  let done = 0;
  let lookUpsLeft = LOOKUPS_PER_ENTRY * limits.entries;

  const nextWave = (): Link[] => {
    const wave: Link[] = [];
    for (; done < entries.length; done++) {
      for (const { reference } of entries[done]?.references ?? []) {
        const target = toTarget(reference);
        if (target === undefined || targets.has(target) || seen.has(target)) continue;
        seen.add(target);
        wave.push([target, reference]);
      }
    }
    return wave;
  };

  const lookUp = async ([target, reference]: Link): Promise<ResourceText | undefined> => {
    const related = available.get(target);
    if (related !== undefined || resolve === undefined || lookUpsLeft === 0) return related;
    lookUpsLeft -= 1;
    const found = serialiseResource(await resolve(reference));
    if ("problem" in found) return undefined;
    return !isRelative(target) || listTargets(found).includes(target) ? found : undefined;
  };

  const addFound = ([target]: Link, resource: ResourceText | undefined): void => {
    if (resource !== undefined) targets.set(target, add(resource));
  };

  const lookUpAll = async (wave: Link[]): Promise<void> => {
    for (let at = 0; at < wave.length; at += LOOKUPS_AT_ONCE) {
      const part = wave.slice(at, at + LOOKUPS_AT_ONCE);
      const found = await Promise.all(part.map(lookUp));
      for (const [index, link] of part.entries()) addFound(link, found[index]);
    }
  };

  const followAll = (): CollectedEntries | Promise<CollectedEntries> => {
    while (done < entries.length) {
      const wave = nextWave();
      if (resolve !== undefined && !wave.every(([target]) => available.has(target)))
        return lookUpAll(wave).then(followAll);
      for (const link of wave) addFound(link, available.get(link[0]));
    }
    return { entries, targets };
  };

  add(focal);
  return followAll();
}

/** Holds each resource once, within the limits. */
function createEntryList(limits: BundleLimits): {
  entries: ResourceText[];
  targets: Map<string, number>;
  /** Adds a resource unless it is already there. Returns its index. */
  add: (resource: ResourceText) => number;
} {
  const entries: ResourceText[] = [];
  const targets = new Map<string, number>();
  let bytes = 0;
  const add = (resource: ResourceText): number => {
    const names = listTargets(resource);
    const [identity] = names;
    const existing = identity === undefined ? undefined : targets.get(identity);
    if (existing !== undefined) return existing;
    const index = entries.push(resource) - 1;
    bytes += Buffer.byteLength(resource.text);
    if (entries.length > limits.entries) {
      const size = `${entries.length} entries counted, the limit is ${limits.entries}`;
      throw new PostbellError("event_too_large", `the event's bundle is too large: ${size}`, {
        field: "resource",
      });
    }
    checkBytes(bytes, limits.bytes);
    for (const name of names) if (!targets.has(name)) targets.set(name, index);
    return index;
  };
  return { entries, targets, add };
}

/** Throws `event_too_large` if a notification of this size exceeds the limit. */
export function checkBytes(bytes: number, maxBytes: number, field = "resource"): void {
  if (bytes <= maxBytes) return;
  throw new PostbellError(
    "event_too_large",
    `the event's notification is too large: ${bytes} bytes counted, the limit is ${maxBytes}`,
    { field },
  );
}

/**
 * The namespace for resources whose id is not a UUID. It must never change, or their `fullUrl`
 * would change.
 */
const RESOURCES = "6b0f7c52-3d0e-4c59-9a3e-8f5f0f1f7a4d";

/**
 * Returns the UUID of each entry's `fullUrl`.
 *
 * - If the resource's id is a UUID: that id.
 * - With another id: a UUID named by account, type and id, so it is the same in every event.
 * - Without an id: a UUID named by the event and the position.
 */
function assignEntryUuids(
  entries: ResourceText[],
  { account, eventId }: { account: string; eventId: string },
): string[] {
  const taken = new Set<string>();
  return entries.map(({ resourceType, id }, index) => {
    const wanted = id !== undefined && isUuid(id) ? id.toLowerCase() : undefined;
    // Two types may share an id, but two entries of a bundle may not share a fullUrl (FHIR R4,
    // bdl-7).
    const uuid =
      wanted !== undefined && !taken.has(wanted)
        ? wanted
        : id === undefined
          ? nameUuid(eventId, `entry ${index}`)
          : nameUuid(RESOURCES, JSON.stringify([account, resourceType, id]));
    taken.add(uuid);
    return uuid;
  });
}
