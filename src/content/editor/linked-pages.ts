/** Fetches the details of pages that an editor links to, through the guarded client. */

import type { Clock } from "../../core/clock.js";
import { parseUrl } from "../../core/parse-url.js";
import type { DestinationOptions } from "../../outbound/destination-options.js";
import { createFetchCache, type Fetched } from "../embeds/fetch-cache.js";
import { createPageGet, isHtml } from "../embeds/page-get.js";
import { type PageDetails, readPageDetails } from "./page-details.js";

/**
 * `no_response`: the page cannot be reached, or its status is not 200. `no_content`: it is empty.
 */
type FetchedDetails = PageDetails | "no_response" | "no_content";

export interface LinkedPages {
  /**
   * Returns the details of a page. It is fetched without credentials, so one response serves every
   * caller. `busy`: too many are waiting. Never rejects.
   */
  readonly find: (url: string) => Promise<FetchedDetails | "busy">;
  /** Closes the connections. A later query opens new ones. */
  readonly close: () => Promise<void>;
}

export interface LinkedPagesOptions {
  readonly clock: Clock;
  readonly destinations: DestinationOptions;
  /** The time for one page, including the wait for its turn. */
  readonly timeoutMs: number;
  /** The size of the cached details; 0 caches none. */
  readonly cacheBytes: number;
}

/** Of a longer page, the beginning is read. */
const MAX_PAGE_BYTES = 153_600;

const AGE_MS = 3_600_000;
/** Short, since a site that fails now may respond again soon. */
const FAILURE_AGE_MS = 30_000;

const NO_DETAILS: PageDetails = { title: "", icon: "", description: "", image: "" };

const failed = (value: "no_response" | "no_content"): Fetched<FetchedDetails> => ({
  value,
  ageMs: FAILURE_AGE_MS,
});

export function createLinkedPages({ clock, destinations, ...limits }: LinkedPagesOptions): LinkedPages {
  const { get, close } = createPageGet(clock, destinations);

  async function fetchDetails(url: string, getTimeLeft: () => number): Promise<Fetched<FetchedDetails>> {
    const response = await get({
      url,
      accept: "text/html",
      maxBytes: MAX_PAGE_BYTES,
      beyond: "end",
      deadlineMs: getTimeLeft(),
    });
    if (response.kind !== "response") return failed("no_response");
    const { status, headers, body } = response;
    try {
      if (status !== 200) return failed("no_response");
      const counted = countBytes(body);
      const isPage = isHtml(headers["content-type"] ?? "text/html");
      const value = isPage ? await readPageDetails(counted.chunks(), url) : NO_DETAILS;
      return isPage && counted.bytes() === 0 ? failed("no_content") : { value, ageMs: AGE_MS };
    } finally {
      body.destroy();
    }
  }

  const cache = createFetchCache<string, FetchedDetails>({
    clock,
    ...limits,
    fetch: (url, getTimeLeft) => fetchDetails(url, getTimeLeft).catch(() => failed("no_response")),
  });

  return {
    async find(url) {
      const page = parseUrl(url);
      if (page === undefined) return "no_response";
      page.hash = "";
      return cache.find(page.href, page.href);
    },
    close,
  };
}

/** Passes chunks on, and counts their bytes. */
function countBytes(body: AsyncIterable<Uint8Array>) {
  let count = 0;
  async function* chunks(): AsyncIterable<Uint8Array> {
    for await (const chunk of body) {
      count += chunk.length;
      yield chunk;
    }
  }
  return { chunks, bytes: () => count };
}
