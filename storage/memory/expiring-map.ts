/** A bounded map whose entries expire in about the order in which they were set. */

export interface ExpiringMap<T> {
  readonly size: number;
  /** Returns the value of `key`, unless it has expired. */
  get(key: string, now: number): T | undefined;
  /** Sets `key`. If the map is full, the oldest entry is removed. */
  set(key: string, value: T): void;
  /**
   * Removes at most `most` expired entries, oldest first. An entry that was set out of order is
   * removed after those before it.
   */
  dropExpired(now: number, most: number): void;
}

export function createExpiringMap<T extends { readonly expiresAt: number }>(max: number): ExpiringMap<T> {
  const entries = new Map<string, T>();
  // A new iterator steps over everything deleted since the map was last rehashed. So one iterator
  // is kept, and only moves forward.
  let order = entries.keys();
  let head: string | undefined;

  const oldest = (): string | undefined => {
    if (head !== undefined || entries.size === 0) return head;
    let next = order.next();
    if (next.done) {
      order = entries.keys();
      next = order.next();
    }
    head = next.value;
    return head;
  };
  const remove = (key: string): void => {
    entries.delete(key);
    if (key === head) head = undefined;
  };

  return {
    get size() {
      return entries.size;
    },
    get(key, now) {
      const value = entries.get(key);
      return value && value.expiresAt > now ? value : undefined;
    },
    set(key, value) {
      remove(key);
      const first = oldest();
      if (entries.size >= max && first !== undefined) remove(first);
      entries.set(key, value);
    },
    dropExpired(now, most) {
      for (let left = most; left > 0; left--) {
        const key = oldest();
        const value = key === undefined ? undefined : entries.get(key);
        if (key === undefined || !value || value.expiresAt > now) return;
        remove(key);
      }
    },
  };
}
