/** Caches what is fetched from other sites: coalesced, and bounded in number, time and size. */

import { AsyncResource } from "node:async_hooks";
import { LRUCache } from "lru-cache";
import type { Clock } from "../../core/clock.js";
import { createConcurrencyLimit } from "../../core/concurrency-limit.js";
import { checkUrl } from "../../outbound/address-policy.js";
import { createOutboundClient } from "../../outbound/client.js";
import { createAddressPolicy, type DestinationOptions } from "../../outbound/destination-options.js";
import { createGuardedGet, type GuardedGet } from "../../outbound/guarded-get.js";
import { parseProxy } from "../../outbound/proxy.js";
import type { OutboundClient } from "../../outbound/types.js";

/** A fetched value, and how long it may be cached. */
export interface Fetched<V> {
  value: V;
  ageMs: number;
}

export interface FetchCache<Q, V> {
  /**
   * Resolves with the value of `key`, from the cache if it is there, and otherwise fetched by
   * `query`. Calls with the same key share one fetch. `busy`: too many are waiting.
   */
  find: (key: string, query: Q) => Promise<V | "busy">;
}

const RUNNING = 8;
const WAITING = 100;

/** The approximate size of a cache entry besides its texts. */
const OVERHEAD_BYTES = 500;

interface CachedValue<V> {
  value: V;
  /** By the monotonic clock. */
  until: number;
}

export function createFetchCache<Q, V>(options: {
  clock: Clock;
  /** The time for one query, including the wait for its turn. */
  timeoutMs: number;
  /** The size of the cached values; 0 caches none. */
  cacheBytes: number;
  /** Must not reject. */
  fetch: (query: Q, getTimeLeft: () => number) => Promise<Fetched<V>>;
}): FetchCache<Q, V> {
  const { clock, timeoutMs, cacheBytes, fetch } = options;
  const limit = createConcurrencyLimit({ running: RUNNING, waiting: WAITING });
  const inFlight = new Map<string, Promise<V | "busy">>();
  const cache = createCache<V>(cacheBytes);

  async function fetchAndCache(key: string, query: Q, startedAt: number): Promise<V | "busy"> {
    const getTimeLeft = (): number => timeoutMs - (clock.monotonic() - startedAt);
    // The whole time went into waiting. No site was asked, so nothing is known of the page.
    if (getTimeLeft() <= 0) return "busy";
    const { value, ageMs } = await fetch(query, getTimeLeft);
    cache?.set(key, { value, until: clock.monotonic() + ageMs });
    return value;
  }

  return {
    async find(key, query) {
      const cached = cache?.get(key);
      const now = clock.monotonic();
      if (cached !== undefined && cached.until > now) return cached.value;
      const shared = inFlight.get(key);
      if (shared !== undefined) return shared;
      const started = limit.run(() => fetchAndCache(key, query, now));
      if (started === undefined) return "busy";
      inFlight.set(key, started);
      return started.finally(() => inFlight.delete(key));
    },
  };
}

const createCache = <V>(bytes: number): LRUCache<string, CachedValue<V>> | undefined =>
  bytes === 0
    ? undefined
    : new LRUCache<string, CachedValue<V>>({
        maxSize: bytes,
        sizeCalculation: ({ value }, key) =>
          2 * (key.length + (JSON.stringify(value) ?? "").length) + OVERHEAD_BYTES,
      });

// The guarded GET for pages of other sites. It opens its client at the first request, and again
// after it was closed.

export interface PageGet {
  get: GuardedGet;
  /** True if browsers may be sent to the URL: without TLS is fine, a private address is not. */
  isAllowed: (url: string) => boolean;
  /** Closes the connections. A later request opens new ones. */
  close: () => Promise<void>;
}

export function createPageGet(clock: Clock, destinations: DestinationOptions): PageGet {
  const { ca } = destinations;
  // Requests share what is fetched, so it must not depend on what one keeps in its async context.
  const resolve = destinations.resolve && AsyncResource.bind(destinations.resolve);
  const proxy = parseProxy(destinations.proxy);
  const policy = createAddressPolicy(destinations);
  const shown = { ...policy, allowHttp: true };
  let client: OutboundClient | undefined;
  let guarded: GuardedGet | undefined;

  const open = (): GuardedGet => {
    const trusted = ca === undefined ? undefined : Buffer.from(ca);
    client ??= createOutboundClient({ clock, policy, ca: trusted, resolve, proxy });
    guarded ??= createGuardedGet({ client, clock, anyPort: policy.allowPrivateNetworks });
    return guarded;
  };

  return {
    get: (request) => open()(request),
    isAllowed: (url) => checkUrl(url, shown).ok,
    async close() {
      const closing = client;
      client = undefined;
      guarded = undefined;
      await closing?.close();
    },
  };
}

/** True for the content type of a page. */
export const isHtml = (contentType: string): boolean =>
  /^\s*(?:text\/html|application\/xhtml\+xml)\s*(?:;|$)/i.test(contentType);
