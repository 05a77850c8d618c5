/** Embeds of other sites' pages, for editors: cached, coalesced and bounded in number. */

import { parseUrl } from "../../core/parse-url.js";
import type { Embed } from "./embed.js";
import { createEmbedClient, type EmbedClientOptions, type EmbedQuery, NO_EMBED } from "./embed-client.js";
import { createFetchCache } from "./fetch-cache.js";

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

export function createForeignEmbeds(options: ForeignEmbedsOptions): ForeignEmbeds {
  const client = createEmbedClient(options);
  const cache = createFetchCache<EmbedQuery, Embed | undefined>({
    ...options,
    // A body that is cut off or cannot be decompressed is the other site's failure.
    fetch: (query, getTimeLeft) => client.fetch(query, getTimeLeft).catch(() => NO_EMBED),
  });

  return {
    async find(query) {
      const page = client.isAllowed(query.url) ? parseUrl(query.url) : undefined;
      if (page === undefined) return undefined;
      page.hash = "";
      const { maxWidth, maxHeight = "", discover } = query;
      return cache.find(`${maxWidth} ${maxHeight} ${discover} ${page.href}`, { ...query, url: page.href });
    },
    close: client.close,
  };
}
