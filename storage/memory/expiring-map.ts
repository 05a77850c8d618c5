/** A bounded map whose entries expire in about the order in which they were set. */

export interface ExpiringMap<T> {
  readonly size: number;
  /** The value of `key`, unless it has expired. */
  get(key: string, now: number): T | undefined;
  /** Sets `key`; where the map is full, the oldest entry goes. */
  set(key: string, value: T): void;
  /** Frees entries that have expired, oldest first, at most `most`. One set out of order is freed after those before it. */
  dropExpired(now: number, most: number): void;
}

export function createExpiringMap<T extends { readonly expiresAt: number }>(max: number): ExpiringMap<T> {
  const entries = new Map<string, T>();
  // A fresh iterator steps over everything deleted since the map was last rehashed, so one is kept and only ever moves on.
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
