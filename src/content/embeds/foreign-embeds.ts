/** Embeds of other sites' pages, for editors: fetched through the guarded client, made safe, kept for a while. */

import { buffer } from "node:stream/consumers";
import { LRUCache } from "lru-cache";
import type { Clock } from "../../core/clock.js";
import { createConcurrencyLimit } from "../../core/concurrency-limit.js";
import { parseUrl } from "../../core/parse-url.js";
import { type AddressPolicy, checkUrl } from "../../outbound/address-policy.js";
import { createOutboundClient } from "../../outbound/client.js";
import { createGuardedGet, type GuardedGet } from "../../outbound/guarded-get.js";
import type { Resolve } from "../../outbound/resolver.js";
import type { OutboundClient } from "../../outbound/types.js";
import { discoverEndpoint } from "./discovery.js";
import type { Embed } from "./embed.js";
import { readForeign } from "./foreign.js";
import { createProviderTable, type EmbedProvider, KNOWN_PROVIDERS } from "./providers.js";
import { sandboxEmbed } from "./safe.js";

export interface EmbedQuery {
  readonly url: string;
  readonly maxWidth: number;
  readonly maxHeight: number | undefined;
  /** Whether a page of an unknown site may name its own endpoint. */
  readonly discover: boolean;
}

export interface ForeignEmbeds {
  /**
   * The embed; `undefined` where there is none, whatever the reason; `busy` where too many are waited for. Who asks makes no difference: it is fetched
   * without credentials, so one answer serves all. Never rejects.
   */
  readonly of: (question: EmbedQuery) => Promise<Embed | undefined | "busy">;
  /** Closes its connections; a later question opens new ones. */
  readonly close: () => Promise<void>;
}

export interface ForeignEmbedsOptions {
  readonly clock: Clock;
  /** Asked before the built-in ones. */
  readonly providers: readonly EmbedProvider[];
  readonly discover: boolean;
  /** For everything that one question takes, waiting for its turn included. */
  readonly timeoutMs: number;
  /** Of the answers that are kept; 0 keeps none. */
  readonly cacheBytes: number;
  readonly destinations: AddressPolicy & {
    readonly ca: string | Uint8Array | undefined;
    readonly resolve: Resolve | undefined;
  };
  readonly isOwn: (url: string) => boolean;
}

const MAX_PAGE_BYTES = 150_000;
const MAX_ANSWER_BYTES = 150_000;
const RUNNING = 8;
const WAITING = 100;

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const DEFAULT_AGE_MS = 60 * MINUTE_MS;
const MIN_AGE_MS = 5 * MINUTE_MS;
/** A site that was away for a moment is asked again soon. */
const FAILURE_AGE_MS = MINUTE_MS / 2;
/** What an entry costs beside its texts. */
const OVERHEAD_BYTES = 500;

interface Kept {
  readonly embed: Embed | undefined;
  /** By the monotonic clock. */
  readonly until: number;
}

interface Found {
  readonly embed: Embed | undefined;
  readonly ageMs: number;
}

const NOTHING: Found = { embed: undefined, ageMs: FAILURE_AGE_MS };

export function createForeignEmbeds({
  clock,
  providers,
  discover: isDiscovering,
  timeoutMs,
  cacheBytes,
  destinations,
  isOwn,
}: ForeignEmbedsOptions): ForeignEmbeds {
  const endpointOf = createProviderTable([...providers, ...KNOWN_PROVIDERS]);
  const turns = createConcurrencyLimit({ running: RUNNING, waiting: WAITING });
  const underWay = new Map<string, Promise<Embed | undefined | "busy">>();
  const kept =
    cacheBytes === 0
      ? undefined
      : new LRUCache<string, Kept>({
          maxSize: cacheBytes,
          sizeCalculation: ({ embed }, key) =>
            2 * (key.length + JSON.stringify(embed ?? "").length) + OVERHEAD_BYTES,
        });
  let client: OutboundClient | undefined;
  let get: GuardedGet | undefined;

  const { ca, resolve, ...policy } = destinations;
  /** An address in an answer is for browsers: a page without TLS may stand there, a private one may not. */
  const shown = { ...policy, allowHttp: true };
  const isAllowed = (url: string): boolean => checkUrl(url, shown).ok;

  const guardedGet = (): GuardedGet => {
    client ??= createOutboundClient({
      clock,
      policy,
      ca: ca === undefined ? undefined : Buffer.from(ca),
      resolve,
    });
    get ??= createGuardedGet({ client, clock, anyPort: policy.allowPrivateNetworks });
    return get;
  };

  async function discovered(page: string, deadlineMs: number): Promise<string | undefined> {
    const answer = await guardedGet()({
      url: page,
      accept: "text/html",
      maxBytes: MAX_PAGE_BYTES,
      beyond: "end",
      deadlineMs,
    });
    if (answer.kind !== "response") return undefined;
    const isPage = /^\s*(?:text\/html|application\/xhtml\+xml)\s*(?:;|$)/i.test(
      answer.headers["content-type"] ?? "",
    );
    const endpoint =
      answer.status === 200 && isPage ? await discoverEndpoint(answer.body, answer.url) : undefined;
    answer.body.destroy();
    return endpoint;
  }

  async function ask(
    { url, maxWidth, maxHeight, discover }: EmbedQuery,
    leftMs: () => number,
  ): Promise<Found> {
    const page = parseUrl(url);
    const known = page && endpointOf(page);
    const endpoint = known ?? (discover && isDiscovering ? await discovered(url, leftMs()) : undefined);
    const question = endpoint === undefined ? undefined : parseUrl(endpoint);
    if (question === undefined) return NOTHING;
    // An endpoint that a page has named already says which page it is for, and in which format it answers.
    const asked = known === undefined ? {} : { url, format: "json" };
    const bounds = {
      maxwidth: String(maxWidth),
      ...(maxHeight === undefined ? {} : { maxheight: String(maxHeight) }),
    };
    for (const [name, value] of Object.entries({ ...asked, ...bounds }))
      question.searchParams.set(name, value);
    const answer = await guardedGet()({
      url: question.href,
      accept: "application/json, text/xml;q=0.5",
      maxBytes: MAX_ANSWER_BYTES,
      deadlineMs: leftMs(),
    });
    if (answer.kind !== "response") return NOTHING;
    if (answer.status !== 200) {
      answer.body.destroy();
      return NOTHING;
    }
    const foreign = readForeign(await buffer(answer.body), answer.headers["content-type"] ?? "");
    if (foreign === undefined) return NOTHING;
    const embed = sandboxEmbed(foreign, {
      page: url,
      maxWidth,
      maxHeight,
      isKnown: known !== undefined,
      isAllowed,
      isOwn,
    });
    return embed === undefined ? NOTHING : { embed, ageMs: ageOf(foreign.cache_age) };
  }

  async function fetchAndKeep(
    key: string,
    question: EmbedQuery,
    startedAt: number,
  ): Promise<Embed | undefined | "busy"> {
    const leftMs = (): number => timeoutMs - (clock.monotonic() - startedAt);
    // The time went by while it waited for its turn: nobody was asked, so nothing is known of the page.
    if (leftMs() <= 0) return "busy";
    // A body that was cut off, or cannot be decompressed: the other site's fault like all else.
    const found = await ask(question, leftMs).catch(() => NOTHING);
    kept?.set(key, { embed: found.embed, until: clock.monotonic() + found.ageMs });
    return found.embed;
  }

  return {
    async of(question) {
      const page = isAllowed(question.url) ? parseUrl(question.url) : undefined;
      if (page === undefined) return undefined;
      page.hash = "";
      const normalised = { ...question, url: page.href };
      const { maxWidth, maxHeight = "", discover } = normalised;
      const key = `${maxWidth} ${maxHeight} ${discover} ${page.href}`;
      const known = kept?.get(key);
      const now = clock.monotonic();
      if (known !== undefined && known.until > now) return known.embed;
      const shared = underWay.get(key);
      if (shared !== undefined) return shared;
      const coming = turns.run(() => fetchAndKeep(key, normalised, now));
      if (coming === undefined) return "busy";
      underWay.set(key, coming);
      return coming.finally(() => underWay.delete(key));
    },
    async close() {
      const closing = client;
      client = undefined;
      get = undefined;
      await closing?.close();
    },
  };
}

function ageOf(seconds: string | undefined): number {
  const ms = Number(seconds) * 1000;
  return seconds === undefined || Number.isNaN(ms)
    ? DEFAULT_AGE_MS
    : Math.min(Math.max(ms, MIN_AGE_MS), DAY_MS);
}
