/**
 * Collects the texts of WXR elements into entries, by the list of elements that are read. Works on
 * paths of elements; parses no XML.
 */

import type { WxrAuthor, WxrEntry, WxrItem, WxrTerm } from "./types.js";
import { getLongest, isEntry, MAX_ELEMENTS } from "./wxr-elements.js";

interface EntryCollector {
  /** `path` begins with the root and ends with the opened element. */
  open: (path: string[], getAttribute: (name: string) => string, line: number) => void;
  /** Takes the complete text of the innermost element of `path`. */
  addText: (path: string[], text: string) => void;
  /** `size`: memory that the entry takes, in characters. */
  close: (path: string[], size: number) => void;
  /** Skips the open entry for this reason. Returns false if no entry is open. */
  refuse: (reason: string) => boolean;
  /** Completes the open entry, if there is one, although its end tag is missing. */
  endEntry: () => void;
  /** True if an entry is open that was refused: its texts need not be read. */
  isRefused: () => boolean;
  /** Completes the site. Its elements must come before the first entry. */
  completeSite: () => void;
  isSiteComplete: () => boolean;
  /** True if all elements of the site that matter were read. */
  isSiteKnown: () => boolean;
  /** Removes and returns the entries that are complete. */
  takeComplete: () => WxrEntry[];
}

const VERSIONS: Set<string> = new Set(["1.0", "1.1", "1.2"]);

/** Texts that keep blanks at both ends. In other texts these belong to the layout of the file. */
const VERBATIM: Set<string> = new Set([
  "title",
  "content:encoded",
  "excerpt:encoded",
  "wp:post_password",
  "wp:meta_value",
]);

/** Texts of an entry, by the element they were in. */
type Texts = { [element: string]: string };

interface OpenEntry {
  element: string;
  line: number;
  texts: { [element: string]: string };
  terms: { taxonomy: string; slug: string; name: string }[];
  meta: { name: string; value: string }[];
  comments: number;
  /** How many of the counted elements it has, by name. */
  counts: { [element: string]: number };
  refusal?: { type: string; reason: string };
}

/** `fail` turns a sentence into the error that the collector throws. */
export function createEntryCollector(fail: (message: string) => Error): EntryCollector {
  const site: { [element: string]: string } = {};
  let isSiteComplete = false;
  let entry: OpenEntry | undefined;
  let meta: { [element: string]: string } = {};
  let assignment = { taxonomy: "", slug: "" };
  let complete: WxrEntry[] = [];

  function completeSite(): void {
    if (isSiteComplete) return;
    const version = site["wp:wxr_version"];
    if (version === undefined) throw fail("it is not a WXR file: wp:wxr_version is missing");
    if (!VERSIONS.has(version)) throw fail("its WXR version is not 1.0, 1.1 or 1.2");
    isSiteComplete = true;
    const url = site["wp:base_blog_url"] || site["wp:base_site_url"] || site["link"] || "";
    complete.push({ kind: "site", version, title: site["title"] ?? "", url });
  }

  function refuse(reason: string): boolean {
    if (entry === undefined) return false;
    const { element, line, texts, counts } = entry;
    const refusal = entry.refusal ?? { type: texts["wp:post_type"] ?? "", reason };
    entry = { element, line, texts: {}, terms: [], meta: [], comments: 0, counts, refusal };
    return true;
  }

  function endEntry(size: number): void {
    if (entry === undefined) return;
    const { element, line, refusal } = entry;
    complete.push(
      refusal === undefined ? toEntry(entry, size) : { kind: "refused", element, line, ...refusal },
    );
    entry = undefined;
  }

  function count({ counts }: OpenEntry, name: string): void {
    const limit = Object.hasOwn(MAX_ELEMENTS, name) ? MAX_ELEMENTS[name] : undefined;
    if (limit === undefined) return;
    counts[name] = (counts[name] ?? 0) + 1;
    if (counts[name] > limit.count) refuse(`it has more than ${limit.count} ${limit.what}`);
  }

  return {
    refuse,
    isRefused: () => entry?.refusal !== undefined,
    open(path, getAttribute, line) {
      const name = path.at(-1) ?? "";
      if (path.length === 3 && isEntry(name)) {
        completeSite();
        if (refuse(`it is damaged: it does not end before line ${line}`)) endEntry(0);
        entry = { element: name, line, texts: {}, terms: [], meta: [], comments: 0, counts: {} };
      }
      if (path.length !== 4) return;
      if (entry?.element === "item") count(entry, name);
      if (name === "wp:postmeta") meta = {};
      if (name === "wp:comment" && entry !== undefined) entry.comments += 1;
      if (name !== "category") return;
      assignment = { taxonomy: getAttribute("domain"), slug: getAttribute("nicename") };
      const [maxSlug, maxDomain] = [getLongest("wp:term_slug"), getLongest("wp:term_taxonomy")];
      if (assignment.slug.length > maxSlug || assignment.taxonomy.length > maxDomain)
        refuse(
          `a category has a nicename of more than ${maxSlug} or a domain of more than ${maxDomain} characters`,
        );
    },
    addText(path, text) {
      if (entry?.refusal !== undefined) return;
      const name = path.at(-1) ?? "";
      const value = VERBATIM.has(name) ? text : text.trim();
      if (path.length === 3) site[name] ??= value;
      else if (path.length === 5) meta[name] = value;
      else if (name === "category") entry?.terms.push({ ...assignment, name: value });
      else if (entry !== undefined && Object.hasOwn(entry.texts, name)) refuse(`it has two elements ${name}`);
      else if (entry !== undefined) entry.texts[name] = value;
    },
    close(path, size) {
      if (path.length === 4 && path.at(-1) === "wp:postmeta" && entry?.element === "item") {
        entry.meta.push({ name: meta["wp:meta_key"] ?? "", value: meta["wp:meta_value"] ?? "" });
      } else if (path.length === 3) endEntry(size);
    },
    endEntry: () => endEntry(0),
    completeSite,
    isSiteComplete: () => isSiteComplete,
    isSiteKnown: () => "wp:wxr_version" in site && "wp:base_blog_url" in site,
    takeComplete() {
      const entries = complete;
      complete = [];
      return entries;
    },
  };
}

function toEntry({ element, line, texts, ...lists }: OpenEntry, size: number): WxrEntry {
  if (element === "wp:author") return readAuthorElement(texts, size);
  return element === "item" ? toItem(texts, lists, line, size) : readTermElement(element, texts, line, size);
}

function toItem(
  texts: Texts,
  { terms, meta, comments }: Omit<OpenEntry, "element" | "line" | "texts">,
  line: number,
  size: number,
): WxrItem {
  const text = (name: string): string => texts[name] ?? "";
  return {
    kind: "item",
    line,
    id: parseWholeNumber(text("wp:post_id")),
    type: text("wp:post_type"),
    status: text("wp:status"),
    title: text("title"),
    content: text("content:encoded"),
    excerpt: text("excerpt:encoded"),
    slug: text("wp:post_name"),
    creator: text("dc:creator"),
    guid: text("guid"),
    password: text("wp:post_password"),
    parent: parseWholeNumber(text("wp:post_parent")),
    menuOrder: parseWholeNumber(text("wp:menu_order")),
    isSticky: text("wp:is_sticky") === "1",
    date: text("wp:post_date"),
    dateGmt: text("wp:post_date_gmt"),
    modified: text("wp:post_modified"),
    modifiedGmt: text("wp:post_modified_gmt"),
    commentStatus: text("wp:comment_status"),
    pingStatus: text("wp:ping_status"),
    attachmentUrl: text("wp:attachment_url"),
    terms,
    meta,
    comments,
    size,
  };
}

function readAuthorElement(texts: Texts, size: number): WxrAuthor {
  return {
    kind: "author",
    login: texts["wp:author_login"] ?? "",
    email: texts["wp:author_email"] ?? "",
    name: texts["wp:author_display_name"] ?? "",
    size,
  };
}

/** Reads a term from one of the three elements that describe terms. */
function readTermElement(element: string, texts: Texts, line: number, size: number): WxrTerm {
  const text = (name: string): string => texts[name] ?? "";
  const term = { kind: "term" as const, line, size, id: parseWholeNumber(text("wp:term_id")) };
  if (element === "wp:category") {
    return {
      ...term,
      taxonomy: "category",
      slug: text("wp:category_nicename"),
      name: text("wp:cat_name"),
      description: text("wp:category_description"),
      parent: text("wp:category_parent"),
    };
  }
  if (element === "wp:tag") {
    return {
      ...term,
      taxonomy: "post_tag",
      parent: "",
      slug: text("wp:tag_slug"),
      name: text("wp:tag_name"),
      description: text("wp:tag_description"),
    };
  }
  return {
    ...term,
    taxonomy: text("wp:term_taxonomy"),
    slug: text("wp:term_slug"),
    name: text("wp:term_name"),
    description: text("wp:term_description"),
    parent: text("wp:term_parent"),
  };
}

/** Returns 0 for a text that is not a whole number. */
export function parseWholeNumber(text: string): number {
  const number = /^\s*-?\d{1,15}\s*$/.test(text) ? Number(text) : 0;
  return Number.isSafeInteger(number) ? number : 0;
}
