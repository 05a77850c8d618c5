/** Collects the entries of a bundle: the focal resource, and what it references, breadth first. */

import { PostbellError } from "../../core/errors.js";
import { isRelative, listTargets, toTarget } from "./reference-target.js";
import { type ResourceText, serialiseResource } from "./resource-text.js";

/**
 * Loads a referenced resource. A value that is not a resource, or not the referenced one, counts as
 * not found. Must not reject, and must settle in time.
 */
export type ResolveEntry = (reference: string) => unknown;

export interface BundleLimits {
  /** Entries of the bundle, the focal one included. */
  readonly entries: number;
  /** UTF-8 bytes of the largest body that could be sent for the event. */
  readonly bytes: number;
}

export interface CollectedEntries {
  readonly entries: readonly ResourceText[];
  /** From the target of a reference to the index of its entry. */
  readonly targets: ReadonlyMap<string, number>;
}

/** Lookups of one event that run at a time, so that the host's database is not flooded. */
const LOOKUPS_AT_ONCE = 8;
/**
 * Lookups of one event for each entry that it may have, so that dead references do not become a
 * flood of queries.
 */
const LOOKUPS_PER_ENTRY = 4;

/** A reference to follow: its target, and its text. */
type Link = readonly [target: string, reference: string];

/**
 * Follows references in the order they are written, each target once, so cycles end. Returns a
 * promise only if `resolve` was called.
 *
 * @throws `event_too_large`.
 */
export function collectEntries(
  focal: ResourceText,
  related: readonly ResourceText[],
  { resolve, limits }: { readonly resolve?: ResolveEntry | undefined; readonly limits: BundleLimits },
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

  const nextWave = (): readonly Link[] => {
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
    const given = available.get(target);
    if (given !== undefined || resolve === undefined || lookUpsLeft === 0) return given;
    lookUpsLeft -= 1;
    const found = serialiseResource(await resolve(reference));
    if ("problem" in found) return undefined;
    return !isRelative(target) || listTargets(found).includes(target) ? found : undefined;
  };

  const addFound = ([target]: Link, resource: ResourceText | undefined): void => {
    if (resource !== undefined) targets.set(target, add(resource));
  };

  const lookUpAll = async (wave: readonly Link[]): Promise<void> => {
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
  readonly entries: readonly ResourceText[];
  readonly targets: Map<string, number>;
  /** Adds a resource unless it is already there. Returns its index. */
  readonly add: (resource: ResourceText) => number;
} {
  const entries: ResourceText[] = [];
  const targets = new Map<string, number>();
  let bytes = 0;
  const add = (resource: ResourceText): number => {
    const names = listTargets(resource);
    const [identity] = names;
    const known = identity === undefined ? undefined : targets.get(identity);
    if (known !== undefined) return known;
    const index = entries.push(resource) - 1;
    bytes += Buffer.byteLength(resource.text);
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
  return { entries, targets, add };
}

/** Throws `event_too_large` if a notification of this size exceeds the limit. */
export function checkBytes(bytes: number, limits: BundleLimits): void {
  if (bytes <= limits.bytes) return;
  throw new PostbellError(
    "event_too_large",
    `the event's notification is too large: ${bytes} bytes counted, the limit is ${limits.bytes}`,
    { field: "resource" },
  );
}
