/** Reads a WXR file piece by piece into what it holds. Holds one entry at a time in memory; knows no site. */

import sax from "sax";
import { PostbellError } from "../../core/errors.js";
import { isEntry, isRead, parseWholeNumber, readTermElement, type Texts } from "./elements.js";
import type { WxrEntry, WxrItem } from "./types.js";
import { createUtf8Decoder } from "./utf8-decoder.js";

export interface WxrReader {
  /** What is complete with these bytes, in the order of the file. Give at most some 100 KB at once: all that they hold is answered. */
  readonly push: (bytes: Uint8Array) => readonly WxrEntry[];
  /** Must be called at the end: it refuses a file that is cut off. */
  readonly end: () => readonly WxrEntry[];
  /** Characters that were left out because XML does not know them. */
  readonly dropped: () => number;
}

export interface WxrReaderOptions {
  /** Characters of one entry, all its texts together. */
  readonly maxEntry: number;
}

const VERSIONS: ReadonlySet<string> = new Set(["1.0", "1.1", "1.2"]);
const MAX_DEPTH = 32;
/** What an element or an attribute counts for beside its text, so that millions of empty ones are not free. */
const ELEMENT_COST = 100;

/** Texts where blanks count; around others they are those of whoever laid out the file. */
const VERBATIM: ReadonlySet<string> = new Set([
  "title",
  "content:encoded",
  "excerpt:encoded",
  "wp:post_password",
  "wp:meta_value",
]);

/** Those that XML 1.0 knows are let through. */
const CONTROL = /(?![\t\n\r\u007f-\u009f])\p{Cc}|[\ufffe\uffff]/gu;

interface Entry {
  readonly element: string;
  readonly line: number;
  readonly texts: { [element: string]: string };
  readonly terms: { readonly taxonomy: string; readonly slug: string; readonly name: string }[];
  readonly meta: { readonly name: string; readonly value: string }[];
  comments: number;
}

/** Of the one category element of an item that is open. */
interface Assignment {
  readonly taxonomy: string;
  readonly slug: string;
}

/**
 * Errors of its functions: `invalid_import`, naming the line: what is no XML or no WXR of version 1.0 to 1.2, a document type or an entity
 * of its own, another encoding than UTF-8, an entry of more than `maxEntry` characters, elements in each other deeper than {@link MAX_DEPTH}.
 */
export function createWxrReader({ maxEntry }: WxrReaderOptions): WxrReader {
  const parser = sax.parser(true, { position: true });
  const fail = (message: string): PostbellError =>
    new PostbellError("invalid_import", `The file cannot be imported: line ${parser.line + 1}: ${message}.`);
  const textOf = createUtf8Decoder(fail);

  const path: string[] = [];
  const site: { [element: string]: string } = {};
  let isSiteTold = false;
  let entry: Entry | undefined;
  let meta: { [element: string]: string } = {};
  let assignment: Assignment = { taxonomy: "", slug: "" };
  let parts: string[] | undefined;
  let size = 0;
  let dropped = 0;
  let complete: WxrEntry[] = [];

  const grow = (by: number): void => {
    size += by;
    if (size > maxEntry) throw fail(`an entry has more than ${maxEntry} characters`);
  };

  const cleaned = (text: string): string =>
    text.replace(CONTROL, () => {
      dropped += 1;
      return "";
    });

  function tellSite(): void {
    if (isSiteTold) return;
    const version = site["wp:wxr_version"];
    if (version === undefined) throw fail("it is no WXR file: wp:wxr_version is missing");
    if (!VERSIONS.has(version)) throw fail("its version of WXR is not 1.0, 1.1 or 1.2");
    isSiteTold = true;
    const url = site["wp:base_blog_url"] || site["wp:base_site_url"] || site["link"] || "";
    complete.push({ kind: "site", version, title: site["title"] ?? "", url });
  }

  function open(name: string, attributes: sax.Tag["attributes"]): void {
    path.push(name);
    parts = undefined;
    if (path.length > MAX_DEPTH) throw fail(`elements stand in each other more than ${MAX_DEPTH} deep`);
    if (path.length === 1 && name !== "rss") throw fail("it is no WXR file: its first element is not rss");
    if (path.length === 2 && name !== "channel") throw fail("it is no WXR file: rss holds no channel");
    if (path.length < 3) size = 0;
    if (path.length === 3 && isEntry(name)) {
      tellSite();
      entry = { element: name, line: parser.line + 1, texts: {}, terms: [], meta: [], comments: 0 };
    }
    if (path.length === 4 && name === "wp:postmeta") meta = {};
    if (path.length === 4 && name === "wp:comment" && entry !== undefined) entry.comments += 1;
    if (path.length === 4 && name === "category") {
      const attribute = (which: string): string => cleaned(String(attributes[which] ?? ""));
      assignment = { taxonomy: attribute("domain"), slug: attribute("nicename") };
    }
    const isTextRead = isRead(path);
    if (isTextRead || path.length === 4) grow(ELEMENT_COST);
    if (isTextRead) parts = [];
  }

  function take(text: string): void {
    if (parts === undefined) return;
    grow(text.length);
    parts.push(text);
  }

  function close(): void {
    const name = path.at(-1) ?? "";
    if (parts !== undefined) {
      const text = cleaned(parts.join(""));
      keep(name, VERBATIM.has(name) ? text : text.trim());
      parts = undefined;
    } else if (path.length === 4 && name === "wp:postmeta" && entry?.element === "item") {
      entry.meta.push({ name: meta["wp:meta_key"] ?? "", value: meta["wp:meta_value"] ?? "" });
    } else if (path.length === 3 && entry !== undefined) {
      complete.push(entryOf(entry, size));
      entry = undefined;
    }
    if (path.length === 3) size = 0;
    path.pop();
    if (path.length === 1) tellSite();
  }

  function keep(name: string, text: string): void {
    if (path.length === 3) site[name] ??= text;
    else if (path.length === 5) meta[name] = text;
    else if (name === "category") entry?.terms.push({ ...assignment, name: text });
    else if (entry !== undefined) entry.texts[name] = text;
  }

  // Before the element that has it: all of them are held until that is open.
  parser.onattribute = ({ name, value }) => grow(ELEMENT_COST + name.length + value.length);
  parser.onopentag = ({ name, attributes }) => open(name, attributes as sax.Tag["attributes"]);
  parser.onclosetag = close;
  parser.ontext = take;
  parser.oncdata = take;
  parser.ondoctype = () => {
    throw fail("it has a document type, which no WXR file needs");
  };
  parser.onprocessinginstruction = ({ name, body }) => {
    const [, encoding] = /\bencoding\s*=\s*["']([^"']*)["']/.exec(body) ?? [];
    if (name !== "xml" || encoding === undefined || /^utf-?8$/i.test(encoding)) return;
    throw fail("it declares another encoding than UTF-8");
  };
  parser.onerror = (error) => {
    throw fail(`it is not well-formed XML (${(error.message.split("\n")[0] ?? "").slice(0, 100)})`);
  };

  const completed = (): readonly WxrEntry[] => {
    const entries = complete;
    complete = [];
    return entries;
  };

  return {
    push(bytes) {
      const text = textOf(bytes);
      if (text !== "") parser.write(text);
      return completed();
    },
    end() {
      const rest = textOf(null);
      if (rest !== "") parser.write(rest);
      parser.close();
      if (!isSiteTold) throw fail("it is no WXR file: it is empty");
      return completed();
    },
    dropped: () => dropped,
  };
}

function entryOf({ element, line, texts, ...lists }: Entry, size: number): WxrEntry {
  if (element === "wp:author") {
    return {
      kind: "author",
      login: texts["wp:author_login"] ?? "",
      email: texts["wp:author_email"] ?? "",
      name: texts["wp:author_display_name"] ?? "",
      size,
    };
  }
  return element === "item" ? itemOf(texts, lists, line, size) : readTermElement(element, texts, line, size);
}

function itemOf(
  texts: Texts,
  { terms, meta, comments }: Pick<Entry, "terms" | "meta" | "comments">,
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
