/** What emitting makes of a resource: the focal resource, what it references in depth, and the stored form of both. */

import { createHash } from "node:crypto";
import { PostbellError } from "../../core/errors.js";
import { isUuid, nameUuid } from "../../core/uuid.js";
import type { FhirResource } from "../fhir.js";
import { largestBodyBytes } from "./notification.js";
import { type PayloadHeader, type ReferenceSlot, writePayload } from "./payload.js";
import { type ResourceText, serialiseResource } from "./resource-text.js";

/** Looks a reference up. What is no resource, or not the one referenced, counts as not found. Must not reject, and must settle in time. */
export type ResolveEntry = (reference: string) => unknown;

export interface BundleLimits {
  /** Entries of the bundle, the focal one included. */
  readonly entries: number;
  /** UTF-8 bytes of the largest body that could be sent for the event. */
  readonly bytes: number;
}

export interface BundleRequest {
  /** A UUID. */
  readonly eventId: string;
  readonly account: string;
  readonly type: string;
  /** Epoch milliseconds, within the years 0 to 9999. */
  readonly occurredAt: number;
  /** Whether the host gave that time: only then is it part of the digest. */
  readonly isOccurredAtGiven: boolean;
  readonly resource: FhirResource;
  /** The resource types that `resource` may have (see `focalTypes`); any if absent. */
  readonly focalTypes?: readonly string[] | undefined;
  /** Resources that a reference may point to. Those that none points to are left out. */
  readonly related?: readonly FhirResource[] | undefined;
  /** Asked, once for each and at most four times for each entry allowed, for references that `related` does not hold. */
  readonly resolve?: ResolveEntry | undefined;
  /** The `traceparent` of the span that emits it: stored beside what is sent, and no part of the digest. */
  readonly trace?: string | undefined;
  readonly limits: BundleLimits;
}

export interface BuiltPayload {
  /** The event as it is stored; `readPayload` reads it. */
  readonly payload: string;
  /**
   * SHA-256 (hexadecimal) over what the host gave: type, time if given, resource, related. Not over what `resolve` found,
   * so that emitting again matches although a referenced record has changed.
   */
  readonly digest: string;
}

/**
 * Collects an event's bundle and serialises it.
 *
 * References are followed breadth first from the focal resource, in the order they are written, each `Type/id` once: cycles end.
 * `Type/id` and `Type/id/_history/n` mean the related resource with that type and id, `urn:uuid:x` the one whose id is x; both, and every
 * other form (absolute URLs, searches), go to `resolve` else. What `resolve` finds for `Type/id` must have that type and id. `#contained` is left alone.
 * Guarantee: the same request and the same answers of `resolve` give the same payload.
 * Errors: `invalid_argument` when a resource, the time or the focal type cannot be used, with its path as `field`; `event_too_large`.
 */
export async function buildPayload(request: BundleRequest): Promise<BuiltPayload> {
  const timestamp = instant(request.occurredAt);
  const focal = readResource(request.resource, "resource");
  const { focalTypes } = request;
  if (focalTypes !== undefined && !focalTypes.includes(focal.resourceType)) {
    throw new PostbellError(
      "invalid_argument",
      `an event of type '${request.type}' is about a resource of type ${focalTypes.join(" or ")}, not ${focal.resourceType}`,
      { field: "resource.resourceType" },
    );
  }
  const related = readRelated(request.related);

  const { entries, targets } = await collect(focal, related, request);
  const uuids = entryUuids(entries, request);
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
      slotsOf(entry, targets),
    ]),
  };
  const texts = entries.map(({ text }) => text);
  checkBytes(largestBodyBytes(header, texts), request.limits);
  return {
    payload: writePayload(header, texts),
    digest: digestOf(request, timestamp, [focal, ...related]),
  };
}

function instant(occurredAt: number): string {
  const time = new Date(occurredAt);
  const text = Number.isNaN(time.getTime()) ? "" : time.toISOString();
  // Years beyond 0 to 9999 take a sign and six digits, which is no FHIR instant.
  if (text.length !== "2000-01-01T00:00:00.000Z".length) {
    throw new PostbellError("invalid_argument", "occurredAt must be a time within the years 0 to 9999", {
      field: "occurredAt",
    });
  }
  return text;
}

function readRelated(related: readonly FhirResource[] | undefined): readonly ResourceText[] {
  if (related === undefined) return [];
  if (!Array.isArray(related)) {
    throw new PostbellError("invalid_argument", "related must be a list of resources", { field: "related" });
  }
  // Array.from visits holes too, and a hole is no resource.
  return Array.from(related as readonly unknown[], (item, index) => readResource(item, `related[${index}]`));
}

function readResource(value: unknown, path: string): ResourceText {
  const read = serialiseResource(value);
  if (!("problem" in read)) return read;
  const field = read.element === undefined ? path : `${path}.${read.element}`;
  throw new PostbellError("invalid_argument", `${field} ${read.problem}`, { field, cause: read.cause });
}

interface Collected {
  readonly entries: readonly ResourceText[];
  /** From what `targetOf` makes of a reference to the index of its entry. */
  readonly targets: ReadonlyMap<string, number>;
}

/** How many look-ups of one event run at a time: the host's database should not notice. */
const LOOKUPS_AT_ONCE = 8;
/** How many look-ups an event may have, for each entry that it may have: an event full of dead references must not become a flood of questions. */
const LOOKUPS_PER_ENTRY = 4;

async function collect(
  focal: ResourceText,
  related: readonly ResourceText[],
  { resolve, limits }: BundleRequest,
): Promise<Collected> {
  const entries: ResourceText[] = [];
  const targets = new Map<string, number>();
  const seen = new Set<string>();
  let lookUps = LOOKUPS_PER_ENTRY * limits.entries;
  let bytes = 0;

  const add = (found: ResourceText): number => {
    const names = namesOf(found);
    const [identity] = names;
    const known = identity === undefined ? undefined : targets.get(identity);
    if (known !== undefined) return known;
    const index = entries.push(found) - 1;
    bytes += Buffer.byteLength(found.text);
    if (entries.length > limits.entries) {
      const size = `${entries.length} entries counted, the limit is ${limits.entries}`;
      throw new PostbellError("event_too_large", `the event's bundle is too large: ${size}`, {
        field: "resource",
      });
    }
    checkBytes(bytes, limits);
    for (const name of names) if (!targets.has(name)) targets.set(name, index);
    return index;
  };

  const available = new Map<string, ResourceText>();
  for (const item of related) {
    for (const name of namesOf(item)) if (!available.has(name)) available.set(name, item);
  }
  const lookUp = async (target: string, reference: string): Promise<ResourceText | undefined> => {
    const given = available.get(target);
    if (given !== undefined || resolve === undefined || lookUps === 0) return given;
    lookUps -= 1;
    const found = serialiseResource(await resolve(reference));
    if ("problem" in found) return undefined;
    return !isRelative(target) || namesOf(found).includes(target) ? found : undefined;
  };

  add(focal);
  for (let done = 0; done < entries.length; ) {
    const wave: [target: string, reference: string][] = [];
    for (const { references } of entries.slice(done)) {
      for (const { reference } of references) {
        const target = targetOf(reference);
        if (target === undefined || targets.has(target) || seen.has(target)) continue;
        seen.add(target);
        wave.push([target, reference]);
      }
    }
    done = entries.length;
    for (let at = 0; at < wave.length; at += LOOKUPS_AT_ONCE) {
      const part = wave.slice(at, at + LOOKUPS_AT_ONCE);
      const found = await Promise.all(part.map(([target, reference]) => lookUp(target, reference)));
      for (const [index, [target]] of part.entries()) {
        const resource = found[index];
        if (resource !== undefined) targets.set(target, add(resource));
      }
    }
  }
  return { entries, targets };
}

const RELATIVE = /^([A-Za-z][A-Za-z0-9]*\/[^/?#]+)(?:\/_history\/[^/?#]+)?$/;
const isRelative = (target: string): boolean => RELATIVE.test(target);

/** What a reference means, so that two ways to write it compare equal; `undefined` for `#contained` and the empty string. */
function targetOf(reference: string): string | undefined {
  if (reference === "" || reference.startsWith("#")) return undefined;
  if (reference.startsWith("urn:uuid:")) return reference.toLowerCase();
  return RELATIVE.exec(reference)?.[1] ?? reference;
}

/** The targets by which a resource is found, its identity first. None without an id. */
function namesOf({ resourceType, id }: ResourceText): readonly string[] {
  return id === undefined ? [] : [`${resourceType}/${id}`, `urn:uuid:${id.toLowerCase()}`];
}

function slotsOf(
  { references }: ResourceText,
  targets: ReadonlyMap<string, number>,
): readonly ReferenceSlot[] {
  const slots: ReferenceSlot[] = [];
  for (const { reference, start, end } of references) {
    const target = targetOf(reference);
    const index = target === undefined ? undefined : targets.get(target);
    if (index !== undefined) slots.push([start, end, index]);
  }
  return slots;
}

/** The namespace of the UUIDs of resources whose id is none. Must never change, or entries would change their `fullUrl`. */
const RESOURCES = "6b0f7c52-3d0e-4c59-9a3e-8f5f0f1f7a4d";

/**
 * The UUID of each entry's `fullUrl`: the resource's own id where it is one; else made from account, type and id, and so the same in every event;
 * else, without an id, from the event and the position.
 */
function entryUuids(
  entries: readonly ResourceText[],
  { account, eventId }: { account: string; eventId: string },
): readonly string[] {
  const taken = new Set<string>();
  return entries.map(({ resourceType, id }, index) => {
    const own = id !== undefined && isUuid(id) ? id.toLowerCase() : undefined;
    // Two types may share an id, but two entries of a bundle may not share a fullUrl (FHIR R4, bdl-7).
    const uuid =
      own !== undefined && !taken.has(own)
        ? own
        : id === undefined
          ? nameUuid(eventId, `entry ${index}`)
          : nameUuid(RESOURCES, JSON.stringify([account, resourceType, id]));
    taken.add(uuid);
    return uuid;
  });
}

function checkBytes(bytes: number, limits: BundleLimits): void {
  if (bytes <= limits.bytes) return;
  throw new PostbellError(
    "event_too_large",
    `the event's notification is too large: ${bytes} bytes counted, the limit is ${limits.bytes}`,
    { field: "resource" },
  );
}

function digestOf(
  { type, isOccurredAtGiven }: BundleRequest,
  timestamp: string,
  given: readonly ResourceText[],
): string {
  // No part holds a line feed: no two lists of parts read alike.
  const hash = createHash("sha256").update(`${type}\n${isOccurredAtGiven ? timestamp : ""}`);
  for (const { text } of given) hash.update("\n").update(text);
  return hash.update("\n").digest("hex");
}
