/** Embeds of other sites' pages, for editors: cached, coalesced and bounded in number. */

import { buffer } from "node:stream/consumers";
import type { Clock } from "../../core/clock.js";
import { parseUrl } from "../../core/parse-url.js";
import type { DestinationOptions } from "../../outbound/destination-options.js";
import type { Embed } from "./embed.js";
import { createFetchCache, createPageGet, type Fetched, isHtml, type PageGet } from "./fetch-cache.js";
import { boundedParser } from "./parse.js";
import { createProviderTable, type EmbedProvider, KNOWN_PROVIDERS } from "./providers.js";
import { readForeign, sandboxEmbed } from "./safe.js";

/** `undefined`: the page has no embed, whatever the reason. `busy`: too many are waiting. */
type EmbedResult = Embed | undefined | "busy";

export interface ForeignEmbeds {
  /**
   * Returns the embed of a page. It is fetched without credentials, so one response serves every
   * caller. Never rejects.
   */
  find: (query: EmbedQuery) => Promise<EmbedResult>;
  /** Closes the connections. A later query opens new ones. */
  close: () => Promise<void>;
}

export function createForeignEmbeds(
  options: EmbedClientOptions & {
    /** The time for one query, including the wait for its turn. */
    timeoutMs: number;
    /** The size of the cached embeds; 0 caches none. */
    cacheBytes: number;
  },
): ForeignEmbeds {
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

// Fetches the embed of another site's page through the guarded client, and makes it safe.

interface EmbedQuery {
  url: string;
  maxWidth: number;
  maxHeight: number | undefined;
  /** True if the page of an unknown site may name its own endpoint. */
  discover: boolean;
}

/** An embed, and how long it may be cached. */
type FetchedEmbed = Fetched<Embed | undefined>;

interface EmbedClientOptions {
  clock: Clock;
  /** Tried before the built-in providers. */
  providers: EmbedProvider[];
  discover: boolean;
  destinations: DestinationOptions;
  isOwn: (url: string) => boolean;
}

interface EmbedClient {
  isAllowed: PageGet["isAllowed"];
  close: PageGet["close"];
  /** Rejects if a body is cut off or cannot be decompressed. */
  fetch: (query: EmbedQuery, getTimeLeft: () => number) => Promise<FetchedEmbed>;
}

const MAX_PAGE_BYTES = 150_000;
const MAX_EMBED_BYTES = 150_000;

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const DEFAULT_AGE_MS = 60 * MINUTE_MS;
const MIN_AGE_MS = 5 * MINUTE_MS;
/** Short, since a site that fails now may respond again soon. */
const FAILURE_AGE_MS = MINUTE_MS / 2;

const NO_EMBED: FetchedEmbed = { value: undefined, ageMs: FAILURE_AGE_MS };

function createEmbedClient(options: EmbedClientOptions): EmbedClient {
  const { clock, destinations, isOwn } = options;
  const findEndpoint = createProviderTable([...options.providers, ...KNOWN_PROVIDERS]);
  const { get, isAllowed, close } = createPageGet(clock, destinations);

  /** Returns the endpoint that the page itself names. */
  async function discover(page: string, deadlineMs: number): Promise<string | undefined> {
    const limits = { maxBytes: MAX_PAGE_BYTES, beyond: "end", deadlineMs } as const;
    const response = await get({ url: page, accept: "text/html", ...limits });
    if (response.kind !== "response") return undefined;
    const isPage = response.status === 200 && isHtml(response.headers["content-type"] ?? "");
    const endpoint = isPage ? await discoverEndpoint(response.body, response.url) : undefined;
    response.body.destroy();
    return endpoint;
  }

  async function getForeign(url: string, deadlineMs: number) {
    const accept = "application/json, text/xml;q=0.5";
    const response = await get({ url, accept, maxBytes: MAX_EMBED_BYTES, deadlineMs });
    if (response.kind !== "response") return undefined;
    if (response.status !== 200) {
      response.body.destroy();
      return undefined;
    }
    return readForeign(await buffer(response.body), response.headers["content-type"] ?? "");
  }

  return {
    isAllowed,
    async fetch(query, getTimeLeft) {
      const { url, maxWidth, maxHeight } = query;
      const page = parseUrl(url);
      const found = page && findEndpoint(page);
      const mayDiscover = query.discover && options.discover;
      const endpoint = found ?? (mayDiscover ? await discover(url, getTimeLeft()) : undefined);
      const target = endpoint === undefined ? undefined : parseUrl(endpoint);
      if (target === undefined) return NO_EMBED;
      addParameters(target, query, found !== undefined);
      const foreign = await getForeign(target.href, getTimeLeft());
      if (foreign === undefined) return NO_EMBED;
      const isKnown = found !== undefined;
      const embed = sandboxEmbed(foreign, { page: url, maxWidth, maxHeight, isKnown, isAllowed, isOwn });
      return embed === undefined ? NO_EMBED : { value: embed, ageMs: readAge(foreign.cache_age) };
    },
    close,
  };
}

/** A discovered endpoint already names its page and format. */
function addParameters(target: URL, { url, maxWidth, maxHeight }: EmbedQuery, isKnown: boolean): void {
  const { searchParams } = target;
  if (isKnown) {
    searchParams.set("url", url);
    searchParams.set("format", "json");
  }
  searchParams.set("maxwidth", String(maxWidth));
  if (maxHeight !== undefined) searchParams.set("maxheight", String(maxHeight));
}

function readAge(seconds: string | undefined): number {
  const ms = Number(seconds) * 1000;
  return seconds === undefined || Number.isNaN(ms)
    ? DEFAULT_AGE_MS
    : Math.min(Math.max(ms, MIN_AGE_MS), DAY_MS);
}

// Finds in a page where its embed is: `<link rel="alternate" type="application/json+oembed"
// href="…">` in its head.

const TYPES: string[] = ["application/json+oembed", "text/xml+oembed"];

/**
 * The address that the page names, absolute, JSON rather than XML; `undefined` where it names none.
 * Reads the head alone: what follows is left unread, and `page` is then left. What cannot be read
 * counts as the end. Nothing is said of the address: check it before it is requested.
 */
async function discoverEndpoint(
  page: AsyncIterable<Uint8Array>,
  pageUrl: string,
): Promise<string | undefined> {
  const found = new Map<string, string>();
  let isOver = false;
  const parser = boundedParser("html", {
    open(name, attributes) {
      if (name === "body") isOver = true;
      if (name !== "link" || isOver) return;
      const { rel = "", type = "", href = "" } = attributes;
      const kind = type.trim().toLowerCase();
      const isAlternate = rel.toLowerCase().split(/\s+/).includes("alternate");
      if (!isAlternate || !TYPES.includes(kind) || found.has(kind)) return;
      const endpoint = parseUrl(href, pageUrl);
      if (endpoint !== undefined) found.set(kind, endpoint.href);
    },
    close(name) {
      if (name === "head") isOver = true;
    },
  });
  try {
    const decoder = new TextDecoder();
    for await (const chunk of page) {
      parser.write(decoder.decode(chunk, { stream: true }));
      if (isOver || found.has(TYPES[0] as string)) break;
    }
  } catch {
    // Cut off, or nonsense: what the head has named so far is as good as ever.
  }
  return TYPES.map((type) => found.get(type)).find((url) => url !== undefined);
}
