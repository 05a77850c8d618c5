/** Embeds of other sites' pages, for editors: cached, coalesced and bounded in number. */

import { LRUCache } from "lru-cache";
import { createConcurrencyLimit } from "../../core/concurrency-limit.js";
import { parseUrl } from "../../core/parse-url.js";
import type { Embed } from "./embed.js";
import { createEmbedClient, type EmbedClientOptions, type EmbedQuery, NO_EMBED } from "./embed-client.js";

export type { EmbedQuery } from "./embed-client.js";

/** `undefined`: the page has no embed, whatever the reason. `busy`: too many are waiting. */
type EmbedResult = Embed | undefined | "busy";

export interface ForeignEmbeds {
  /**
   * Returns the embed of a page. It is fetched without credentials, so one response serves every
   * caller. Never rejects.
   */
  readonly find: (query: EmbedQuery) => Promise<EmbedResult>;
  /** Closes the connections. A later query opens new ones. */
  readonly close: () => Promise<void>;
}

export interface ForeignEmbedsOptions extends EmbedClientOptions {
  /** The time for one query, including the wait for its turn. */
  readonly timeoutMs: number;
  /** The size of the cached embeds; 0 caches none. */
  readonly cacheBytes: number;
}

const RUNNING = 8;
const WAITING = 100;

/** The approximate size of a cache entry besides its texts. */
const OVERHEAD_BYTES = 500;

interface CachedEmbed {
  readonly embed: Embed | undefined;
  /** By the monotonic clock. */
  readonly until: number;
}

export function createForeignEmbeds(options: ForeignEmbedsOptions): ForeignEmbeds {
  const { clock, timeoutMs } = options;
  const client = createEmbedClient(options);
  const limit = createConcurrencyLimit({ running: RUNNING, waiting: WAITING });
  const inFlight = new Map<string, Promise<EmbedResult>>();
  const cache = createCache(options.cacheBytes);

  async function fetchAndCache(key: string, query: EmbedQuery, startedAt: number): Promise<EmbedResult> {
    const getTimeLeft = (): number => timeoutMs - (clock.monotonic() - startedAt);
    // The whole time went into waiting. No site was asked, so nothing is known of the page.
    if (getTimeLeft() <= 0) return "busy";
    // A body that is cut off or cannot be decompressed is the other site's failure.
    const { embed, ageMs } = await client.fetch(query, getTimeLeft).catch(() => NO_EMBED);
    cache?.set(key, { embed, until: clock.monotonic() + ageMs });
    return embed;
  }

  return {
    async find(query) {
      const page = client.isAllowed(query.url) ? parseUrl(query.url) : undefined;
      if (page === undefined) return undefined;
      page.hash = "";
      const normalised = { ...query, url: page.href };
      const { maxWidth, maxHeight = "", discover } = normalised;
      const key = `${maxWidth} ${maxHeight} ${discover} ${page.href}`;
      const cached = cache?.get(key);
      const now = clock.monotonic();
      if (cached !== undefined && cached.until > now) return cached.embed;
      const shared = inFlight.get(key);
      if (shared !== undefined) return shared;
      const started = limit.run(() => fetchAndCache(key, normalised, now));
      if (started === undefined) return "busy";
      inFlight.set(key, started);
      return started.finally(() => inFlight.delete(key));
    },
    close: client.close,
  };
}

const createCache = (bytes: number): LRUCache<string, CachedEmbed> | undefined =>
  bytes === 0
    ? undefined
    : new LRUCache<string, CachedEmbed>({
        maxSize: bytes,
        sizeCalculation: ({ embed }, key) =>
          2 * (key.length + JSON.stringify(embed ?? "").length) + OVERHEAD_BYTES,
      });
