/** Normalises references, so that two ways to write one compare equal. */

import type { ResourceText } from "./resource-text.js";

const RELATIVE = /^([A-Za-z][A-Za-z0-9]*\/[^/?#]+)(?:\/_history\/[^/?#]+)?$/;

/** True for a target of the form `Type/id`. */
export const isRelative = (target: string): boolean => RELATIVE.test(target);

/**
 * Returns the target of a reference: `Type/id` without its version, a lower-case `urn:uuid:`, or
 * else the text as it is. `undefined` for `#contained` and the empty string, which point to no
 * other resource.
 */
export function toTarget(reference: string): string | undefined {
  if (reference === "" || reference.startsWith("#")) return undefined;
  if (reference.startsWith("urn:uuid:")) return reference.toLowerCase();
  return RELATIVE.exec(reference)?.[1] ?? reference;
}

/**
 * Returns the targets that mean this resource, its identity first. Empty for a resource without an
 * id.
 */
export function listTargets({ resourceType, id }: ResourceText): readonly string[] {
  return id === undefined ? [] : [`${resourceType}/${id}`, `urn:uuid:${id.toLowerCase()}`];
}
