/** Reads what a page of another site says of itself in its head, for the link dialog of editors. */

import { parseUrl } from "../../core/parse-url.js";
import { LENGTHS } from "../argument-bounds.js";
import { boundedParser } from "../embeds/parse.js";
import { stripAll } from "../text/plain.js";

/** An empty text for what the page does not say. */
export interface PageDetails {
  readonly title: string;
  /** An absolute URL, or the picture itself as a `data:` URL. */
  readonly icon: string;
  readonly description: string;
  /** An absolute URL. */
  readonly image: string;
}

const ICON_RELATIONS: ReadonlySet<string> = new Set(["icon", "shortcut icon", "icon shortcut"]);
const DESCRIPTIONS: ReadonlySet<string> = new Set(["description", "og:description"]);
const IMAGES: ReadonlySet<string> = new Set(["og:image", "og:image:url"]);

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
export async function readPageDetails(
  page: AsyncIterable<Uint8Array>,
  pageUrl: string,
): Promise<PageDetails> {
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

type Attributes = Readonly<Record<string, string>>;

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
