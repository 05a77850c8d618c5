/** Maps keys to sets of ids, without empty sets. */

export interface MultiMap<K> {
  readonly add: (key: K, id: number) => void;
  readonly remove: (key: K, id: number) => void;
  /** Ascending. */
  readonly get: (key: K) => readonly number[];
}

export function createMultiMap<K>(): MultiMap<K> {
  const sets = new Map<K, Set<number>>();
  return {
    add(key, id) {
      const set = sets.get(key);
      if (set) set.add(id);
      else sets.set(key, new Set([id]));
    },
    remove(key, id) {
      const set = sets.get(key);
      set?.delete(id);
      if (set?.size === 0) sets.delete(key);
    },
    get: (key) => [...(sets.get(key) ?? [])].sort((a, b) => a - b),
  };
}
