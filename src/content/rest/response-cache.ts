/** Keeps whole answers to anonymous callers for as long as nothing has changed. Knows no route and no header. */

import { LRUCache } from "lru-cache";
import type { HttpResponse } from "../../http/types.js";

/** An answer to GET with all its bytes. Frozen: it is handed out as it is. */
export interface CachedResponse extends HttpResponse {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

export interface ResponseCache {
  /** `undefined` where there is none, or where it was made under another stamp. */
  readonly get: (key: string, stamp: number) => CachedResponse | undefined;
  /** One larger than an eighth of the cache is not kept. */
  readonly set: (key: string, stamp: number, answer: CachedResponse) => void;
}

/** What an entry costs beside its key and body. */
const OVERHEAD_BYTES = 2048;

/** `bytes`: of all answers and their keys; 0 keeps none. */
export function createResponseCache(bytes: number): ResponseCache {
  if (bytes === 0) return { get: () => undefined, set: () => {} };
  const kept = new LRUCache<string, { readonly stamp: number; readonly answer: CachedResponse }>({
    maxSize: bytes,
    maxEntrySize: Math.ceil(bytes / 8),
    sizeCalculation: ({ answer }, key) => answer.body.length + 2 * key.length + OVERHEAD_BYTES,
  });
  return {
    get(key, stamp) {
      const found = kept.get(key);
      return found?.stamp === stamp ? found.answer : undefined;
    },
    set: (key, stamp, answer) => void kept.set(key, { stamp, answer }),
  };
}
