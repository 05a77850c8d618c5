/**
 * Reads what another site says about an embed, and makes of it an embed that may be shown to an
 * editor and put into a post. Pure.
 *
 * Its HTML is never passed on: a parser takes out the address of its frame and the text of its
 * quotation, and new HTML is written around those.
 */

import { parseUrl } from "../../core/parse-url.js";
import { stripAll } from "../text/markup.js";
import { type Embed, escapeHtml } from "./embed.js";
import { boundedParser } from "./parse.js";

interface EmbedTerms {
  /** The page that is embedded. */
  page: string;
  maxWidth: number;
  maxHeight: number | undefined;
  /**
   * The provider stands in the table, rather than that the page has named it: its frames keep their
   * own origin, which players need.
   */
  isKnown: boolean;
  /** True if the URL may appear in the response. None is fetched here. */
  isAllowed: (url: string) => boolean;
  /** True if the URL is on this site, where a frame with its own origin would not be foreign. */
  isOwn: (url: string) => boolean;
}

const MAX_TEXT = 500;
const MAX_QUOTE = 5_000;
const MAX_PIXELS = 4_000;
const DEFAULT_HEIGHT = 400;

/** Scripts of a foreign page, without a way to what surrounds it. */
const UNKNOWN_SANDBOX = "allow-scripts";
const KNOWN_SANDBOX = "allow-scripts allow-same-origin allow-popups allow-presentation";

/**
 * How much of a text is read for one of `max` characters: tags and blanks in it may take as much
 * again.
 */
const READ_PER_CHARACTER = 8;

const oneLine = (text: string, max: number): string => {
  const read = text.slice(0, READ_PER_CHARACTER * max);
  const isCut = read.length < text.length;
  const line = stripAll(isCut ? withoutOpenTag(read) : read);
  if (line === "" || (!isCut && line.length <= max)) return line;
  // Cut between characters, not inside one.
  return `${line.slice(0, max - 1).replace(/[\ud800-\udbff]$/, "")}…`;
};

/** Half a tag at the end of a text would be shown as text. */
const withoutOpenTag = (text: string): string =>
  text.lastIndexOf("<") > text.lastIndexOf(">") ? text.slice(0, text.lastIndexOf("<")) : text;

const pixels = (text: string | undefined): number | undefined => {
  const match = /^\s*(\d{1,6})(?:\.\d*)?(?:px)?\s*$/.exec(text ?? "");
  const count = Number(match?.[1] ?? 0);
  return count > 0 ? Math.min(count, MAX_PIXELS) : undefined;
};

/** The size within its bounds, its proportions kept. */
function fitted(
  width: number | undefined,
  height: number | undefined,
  { maxWidth, maxHeight = MAX_PIXELS }: EmbedTerms,
): { width: number; height: number } {
  const wide = width ?? maxWidth;
  const tall = height ?? Math.min(DEFAULT_HEIGHT, maxHeight);
  const scale = Math.min(1, maxWidth / wide, maxHeight / tall);
  return { width: Math.max(1, Math.floor(wide * scale)), height: Math.max(1, Math.floor(tall * scale)) };
}

/** Returns `undefined` if nothing of the embed may be shown. Never throws. */
export function sandboxEmbed(foreign: ForeignEmbed, terms: EmbedTerms): Embed | undefined {
  const text = (value: string | undefined): string | undefined =>
    value === undefined ? undefined : oneLine(value, MAX_TEXT) || undefined;
  const address = (value: string | undefined): string | undefined =>
    value !== undefined && terms.isAllowed(value) ? parseUrl(value)?.href : undefined;
  const title = text(foreign.title);
  const shown = renderBody(foreign, terms, { title, address });
  if (shown === undefined) return undefined;
  const thumbnail = address(foreign.thumbnail_url);
  return withoutEmpty({
    version: "1.0",
    ...shown,
    title,
    author_name: text(foreign.author_name),
    author_url: address(foreign.author_url),
    provider_name: text(foreign.provider_name),
    provider_url: address(foreign.provider_url),
    thumbnail_url: thumbnail,
    thumbnail_width: thumbnail && pixels(foreign.thumbnail_width),
    thumbnail_height: thumbnail && pixels(foreign.thumbnail_height),
  }) as unknown as Embed;
}

const withoutEmpty = (fields: { [name: string]: unknown }): { [name: string]: unknown } =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== ""));

interface Read {
  title: string | undefined;
  address: (value: string | undefined) => string | undefined;
}

interface Body {
  type: Embed["type"];
  html: string;
  url?: string;
  width?: number;
  height?: number;
}

function renderBody(foreign: ForeignEmbed, terms: EmbedTerms, read: Read): Body | undefined {
  const { type } = foreign;
  if (type === "link") return renderLink(terms, read);
  if (type === "photo") return renderPhoto(foreign, terms, read);
  return type === "video" || type === "rich" ? renderFrame(foreign, terms, read, type) : undefined;
}

function renderLink({ page }: EmbedTerms, { title }: Read): Body {
  return { type: "link", html: `<a href="${escapeHtml(page)}">${escapeHtml(title ?? page)}</a>` };
}

function renderPhoto(foreign: ForeignEmbed, terms: EmbedTerms, { title, address }: Read): Body | undefined {
  const url = address(foreign.url);
  if (url === undefined) return undefined;
  const size = fitted(pixels(foreign.width), pixels(foreign.height), terms);
  const image = `<img src="${escapeHtml(url)}" alt="${escapeHtml(title ?? "")}" width="${size.width}" height="${size.height}" />`;
  return { type: "photo", url, ...size, html: `<a href="${escapeHtml(terms.page)}">${image}</a>` };
}

/** Keeps the text of a quotation and one frame of the foreign HTML, and nothing else. */
function renderFrame(
  foreign: ForeignEmbed,
  terms: EmbedTerms,
  { title, address }: Read,
  type: "video" | "rich",
): Body | undefined {
  const { frame, quote } = readParts(foreign.html ?? "");
  const source = address(frame?.src);
  const isFrame = source?.startsWith("https:") === true && !terms.isOwn(source);
  const size = fitted(
    pixels(foreign.width) ?? pixels(frame?.width),
    pixels(foreign.height) ?? pixels(frame?.height),
    terms,
  );
  const page = escapeHtml(terms.page);
  const html =
    (quote === "" ? "" : `<blockquote cite="${page}">${escapeHtml(quote)}</blockquote>`) +
    (isFrame
      ? `<iframe sandbox="${terms.isKnown ? KNOWN_SANDBOX : UNKNOWN_SANDBOX}" src="${escapeHtml(source)}" ` +
        `width="${size.width}" height="${size.height}" title="${escapeHtml(title ?? "")}" loading="lazy" allowfullscreen ` +
        'referrerpolicy="strict-origin-when-cross-origin"></iframe>'
      : "");
  return html === "" ? undefined : { type, ...size, html };
}

interface Frame {
  src: string;
  width: string | undefined;
  height: string | undefined;
}

/** Whose contents are never text. */
const SILENT: Set<string> = new Set(["script", "style", "template", "noscript", "iframe", "textarea"]);

/** The first frame and the first quotation of the HTML; nothing of one that cannot be read. */
function readParts(html: string): { frame: Frame | undefined; quote: string } {
  let frame: Frame | undefined;
  let quote = "";
  let quoteDepth = 0;
  let silentDepth = 0;
  const parser = boundedParser("html", {
    open(name, { src, width, height }, depth) {
      if (name === "iframe" && src !== undefined && silentDepth === 0)
        frame ??= { src: src.trim(), width, height };
      if (name === "blockquote" && quoteDepth === 0 && quote === "") quoteDepth = depth;
      if (SILENT.has(name) && silentDepth === 0) silentDepth = depth;
    },
    close(_name, depth) {
      if (depth === quoteDepth) quoteDepth = 0;
      if (depth === silentDepth) silentDepth = 0;
      quote += quoteDepth > 0 ? " " : "";
    },
    text(data) {
      if (quoteDepth > 0 && silentDepth === 0 && quote.length <= MAX_QUOTE) quote += data;
    },
  });
  try {
    parser.write(html);
    parser.end();
  } catch {
    return { frame: undefined, quote: "" };
  }
  return { frame, quote: oneLine(quote, MAX_QUOTE) };
}

// Reads what another site answers about an embed: JSON or XML, and of it the fields that oEmbed
// knows. Nothing of it is trusted yet.

/** As the other site wrote them; absent where it wrote neither a text nor a number. */
interface ForeignEmbed {
  type?: string;
  title?: string;
  author_name?: string;
  author_url?: string;
  provider_name?: string;
  provider_url?: string;
  cache_age?: string;
  thumbnail_url?: string;
  thumbnail_width?: string;
  thumbnail_height?: string;
  width?: string;
  height?: string;
  url?: string;
  html?: string;
}

type Name = keyof ForeignEmbed;

const NAMES: Set<string> = new Set<Name>([
  "type",
  "title",
  "author_name",
  "author_url",
  "provider_name",
  "provider_url",
  "cache_age",
  "thumbnail_url",
  "thumbnail_width",
  "thumbnail_height",
  "width",
  "height",
  "url",
  "html",
]);

const JSON_TYPE = /^(?:application\/(?:[\w.-]+\+)?json(?:\+oembed)?|text\/(?:json|javascript))$/;
const XML_TYPE = /^(?:application|text)\/(?:[\w.-]+\+)?xml(?:\+oembed)?$/;

/** `undefined` for what is neither, by `contentType` and by its text. Never throws. Linear. */
export function readForeign(bytes: Uint8Array, contentType: string): ForeignEmbed | undefined {
  const type = (contentType.split(";", 1)[0] ?? "").trim().toLowerCase();
  const text = new TextDecoder().decode(bytes);
  try {
    if (JSON_TYPE.test(type)) return fromJson(text);
    return XML_TYPE.test(type) ? fromXml(text) : undefined;
  } catch {
    return undefined;
  }
}

function fromJson(text: string): ForeignEmbed | undefined {
  const json: unknown = JSON.parse(text);
  if (typeof json !== "object" || json === null || Array.isArray(json)) return undefined;
  const fields = Object.entries(json).filter(
    ([name, value]) => NAMES.has(name) && (typeof value === "string" || typeof value === "number"),
  );
  return Object.fromEntries(fields.map(([name, value]) => [name, String(value)]));
}

function fromXml(text: string): ForeignEmbed | undefined {
  const fields = new Map<string, string>();
  let root = "";
  let field = "";
  const parser = boundedParser("xml", {
    open(name, _attributes, depth) {
      if (depth === 1) root ||= name;
      field = depth === 2 && NAMES.has(name) && !fields.has(name) ? name : "";
    },
    close() {
      field = "";
    },
    text(data, depth) {
      if (field !== "" && depth === 2) fields.set(field, (fields.get(field) ?? "") + data);
    },
  });
  parser.write(text);
  parser.end();
  return root === "oembed" ? Object.fromEntries(fields) : undefined;
}
