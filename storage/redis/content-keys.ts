/** Where the content of a site lives: eight keys with one hash tag, so that a script commits to all of them at once. */

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
