/**
 * Fetches the details of pages that an editor links to, through the guarded client, for the route
 * `/url-details`.
 */

import type { Clock } from "../../core/clock.js";
import { parseUrl } from "../../core/parse-url.js";
import { type AddressPolicy, checkUrl } from "../../outbound/address-policy.js";
import type { DestinationOptions } from "../../outbound/destination-options.js";
import { toText } from "../../schema/coerce.js";
import type { Argument, Schema } from "../../schema/types.js";
import { LENGTHS } from "../argument-bounds.js";
import { createFetchCache, createPageGet, type Fetched, isHtml } from "../embeds/fetch-cache.js";
import { boundedParser } from "../embeds/parse.js";
import { RestError } from "../rest/error.js";
import { ALL } from "../rest/record-fields.js";
import type { RestRoute } from "../rest/types.js";
import { stripAll } from "../text/markup.js";
import { forEditors } from "./editor-options.js";

/**
 * `no_response`: the page cannot be reached, or its status is not 200. `no_content`: it is empty.
 */
type FetchedDetails = PageDetails | "no_response" | "no_content";

export interface LinkedPages {
  /**
   * Returns the details of a page. It is fetched without credentials, so one response serves every
   * caller. `busy`: too many are waiting. Never rejects.
   */
  find: (url: string) => Promise<FetchedDetails | "busy">;
  /** Closes the connections. A later query opens new ones. */
  close: () => Promise<void>;
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

export function createLinkedPages({
  clock,
  destinations,
  ...limits
}: {
  clock: Clock;
  destinations: DestinationOptions;
  /** The time for one page, including the wait for its turn. */
  timeoutMs: number;
  /** The size of the cached details; 0 caches none. */
  cacheBytes: number;
}): LinkedPages {
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

/** An empty text for what the page does not say. */
interface PageDetails {
  title: string;
  /** An absolute URL, or the picture itself as a `data:` URL. */
  icon: string;
  description: string;
  /** An absolute URL. */
  image: string;
}

const ICON_RELATIONS: Set<string> = new Set(["icon", "shortcut icon", "icon shortcut"]);
const DESCRIPTIONS: Set<string> = new Set(["description", "og:description"]);
const IMAGES: Set<string> = new Set(["og:image", "og:image:url"]);

interface FoundDetails {
  title: string | undefined;
  icon: string | undefined;
  description: string | undefined;
  image: string | undefined;
}

/**
 * Reads the head of the page; what follows is left unread. The first mention of each detail counts.
 * A page that is cut off has those that came before.
 *
 * @param pageUrl relative addresses count from the root of its host, as in WordPress
 */
async function readPageDetails(page: AsyncIterable<Uint8Array>, pageUrl: string): Promise<PageDetails> {
  const found: FoundDetails = {
    title: undefined,
    icon: undefined,
    description: undefined,
    image: undefined,
  };
  const reader = createHeadReader(found);
  try {
    const decoder = new TextDecoder();
    for await (const chunk of page) {
      reader.write(decoder.decode(chunk, { stream: true }));
      if (reader.isOver()) break;
    }
  } catch {
    // The rest cannot be read. What the head has named so far counts.
  }
  return {
    title: toPlainText(found.title),
    icon: toAddress(found.icon, pageUrl, isPicture),
    description: toPlainText(found.description),
    image: toAddress(found.image, pageUrl, () => false),
  };
}

function createHeadReader(found: FoundDetails) {
  let isOver = false;
  let isInTitle = false;
  const parser = boundedParser("html", {
    open(name, attributes) {
      if (name === "body") isOver = true;
      if (isOver) return;
      if (name === "title" && found.title === undefined) {
        isInTitle = true;
        found.title = "";
      }
      if (name === "link") readLink(attributes, found);
      if (name === "meta") readMeta(attributes, found);
    },
    text(text) {
      // Longer titles are cut off, so that the text is not collected beyond use.
      if (isInTitle && (found.title ?? "").length < LENGTHS.title) found.title += text;
    },
    close(name) {
      if (name === "title") isInTitle = false;
      if (name === "head") isOver = true;
    },
  });
  return { write: parser.write, isOver: () => isOver };
}

type Attributes = Record<string, string>;

function readLink({ rel = "", href = "" }: Attributes, found: FoundDetails): void {
  const relation = rel.trim().toLowerCase().replace(/\s+/g, " ");
  if (href !== "" && ICON_RELATIONS.has(relation)) found.icon ??= href.trim();
}

function readMeta({ name = "", property = "", content }: Attributes, found: FoundDetails): void {
  if (content === undefined) return;
  if (DESCRIPTIONS.has(name.trim().toLowerCase())) found.description ??= content;
  if (IMAGES.has(property.trim().toLowerCase())) found.image ??= content.trim();
}

const toPlainText = (raw = ""): string => stripAll(raw.slice(0, LENGTHS.title));

/** A picture cannot run scripts where an editor shows it as an image. */
const isPicture = (url: string): boolean => /^data:image\//i.test(url);

function toAddress(raw: string | undefined, pageUrl: string, isAccepted: (url: string) => boolean): string {
  if (raw === undefined || raw === "" || raw.length > LENGTHS.url) return "";
  if (isAccepted(raw)) return raw;
  const root = parseUrl("/", pageUrl)?.href;
  const url = root === undefined ? undefined : parseUrl(raw, root);
  return url?.protocol === "https:" || url?.protocol === "http:" ? url.href : "";
}

// `/wp-block-editor/v1/url-details`: what a linked page says of itself.

const detail = (description: string, format?: "uri"): Schema => ({
  description,
  type: "string",
  ...(format === undefined ? {} : { format }),
  context: ALL,
  readonly: true,
});

const SCHEMA: Schema = {
  title: "url-details",
  type: "object",
  properties: {
    title: detail("The contents of the <title> element from the URL."),
    icon: detail('The favicon image link of the <link rel="icon"> element from the URL.', "uri"),
    description: detail('The content of the <meta name="description"> element from the URL.'),
    image: detail(
      'The Open Graph image link of the <meta property="og:image"> or <meta property="og:image:url"> element from the URL.',
      "uri",
    ),
  },
};

const FAILURES = {
  no_response: "URL not found. Response returned a non-200 status code for this URL.",
  no_content: "Unable to retrieve body from response at this URL.",
} as const;

const tooMany = (): RestError =>
  new RestError(429, "rest_too_many_embeds", "Too many pages are being fetched; try again in a moment.", {
    retryAfter: 5,
  });

/** Refuses a URL that no page of others can have, such as one with a private address. */
const urlArgument = (policy: AddressPolicy): Argument => ({
  description: "The URL to process.",
  required: true,
  type: "string",
  format: "uri",
  maxLength: LENGTHS.url,
  validate: (value) =>
    typeof value === "string" && checkUrl(value, { ...policy, allowHttp: true }).ok
      ? undefined
      : { code: "", message: "Invalid parameter." },
});

export const urlDetailsRoute = (pages: LinkedPages | undefined, policy: AddressPolicy): RestRoute => ({
  namespace: "wp-block-editor/v1",
  path: "/url-details",
  schema: SCHEMA,
  endpoints: [
    {
      methods: ["GET"],
      args: { url: urlArgument(policy) },
      described: {
        summary: "Ask another site for the title and pictures of a page",
        form: "json",
        schema: SCHEMA,
        errors: [403, 404, 429],
      },
      permit: forEditors(
        "rest_cannot_view_url_details",
        "Sorry, you are not allowed to process remote URLs.",
      ),
      async handle({ input }) {
        // The URL as the client sent it: it was checked before anything repaired it.
        const details = (await pages?.find(toText(input["url"]))) ?? "no_response";
        if (details === "busy") throw tooMany();
        if (typeof details === "string") throw new RestError(404, details, FAILURES[details]);
        return { status: 200, headers: {}, body: { json: { ...details } } };
      },
    },
  ],
});
