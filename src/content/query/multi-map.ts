/** Maps keys to sets of ids, without empty sets. A key with one id, as most have, takes no set. */

export interface MultiMap<K> {
  /** Returns true if the key had no id before. */
  add: (key: K, id: number) => boolean;
  /** Returns true if that was the last id of the key. */
  remove: (key: K, id: number) => boolean;
  /** Ascending. */
  get: (key: K) => number[];
  /** True if an id of the key fits. Stops at the first one, which may be any of them. */
  some: (key: K, fits: (id: number) => boolean) => boolean;
}

export function createMultiMap<K>(): MultiMap<K> {
  const entries = new Map<K, number | Set<number>>();
  return {
    add(key, id) {
      const entry = entries.get(key);
      if (entry === undefined) entries.set(key, id);
      else if (typeof entry === "object") entry.add(id);
      else if (entry !== id) entries.set(key, new Set([entry, id]));
      return entry === undefined;
    },
    remove(key, id) {
      const entry = entries.get(key);
      if (typeof entry === "object") entry.delete(id);
      const isLast = typeof entry === "object" ? entry.size === 0 : entry === id;
      if (isLast) entries.delete(key);
      return isLast;
    },
    get(key) {
      const entry = entries.get(key);
      if (entry === undefined) return [];
      return typeof entry === "object" ? [...entry].sort((a, b) => a - b) : [entry];
    },
    some(key, fits) {
      const entry = entries.get(key);
      if (typeof entry !== "object") return entry !== undefined && fits(entry);
      for (const id of entry) if (fits(id)) return true;
      return false;
    },
  };
}
