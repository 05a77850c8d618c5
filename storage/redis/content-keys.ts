/**
 * The keys of the content of a site: eight keys with one hash tag, so that a script commits to all
 * of them at once.
 */

import type { KeySet } from "./partition.js";

/** In the order in which the scripts name them (content.lua). */
const KEY_NAMES = ["meta", "heads", "columns", "bodies", "names", "ids", "changes", "commits"] as const;

export interface ContentKeys extends KeySet {
  key(name: (typeof KEY_NAMES)[number]): string;
}

export function createContentKeys(prefix: string): ContentKeys {
  const key = (name: string): string => `{${prefix}:content}:${name}`;
  return { keys: KEY_NAMES.map(key), key };
}

/**
 * Lists the content that a site has lost, from the size of each key in the order of `KEY_NAMES`.
 * Lost content cannot be rebuilt, so there is only a warning. Pure.
 */
export function listContentWarnings(sizes: readonly number[]): string[] {
  const sizeOf = (name: (typeof KEY_NAMES)[number]): number => sizes[KEY_NAMES.indexOf(name)] ?? 0;
  // Ids are allocated before anything is stored.
  if (KEY_NAMES.every((name) => name === "ids" || sizeOf(name) === 0)) return [];
  const lost = KEY_NAMES.filter((name) => sizeOf(name) === 0);
  if (lost.length > 0) {
    return [`The content has lost what was in ${lost.join(", ")}. Restore Redis from a copy.`];
  }
  const [records, bodies] = [sizeOf("heads"), sizeOf("bodies")];
  if (records === bodies) return [];
  return [`The content has ${records} records and ${bodies} bodies. Restore Redis from a copy.`];
}
