/**
 * Sanitises the HTML of authors who may not write free HTML. Removes everything that is not known
 * to be harmless.
 */

import sanitizeHtml from "sanitize-html";
import { type AttributesByTag, POST_GLOBALS, POST_TAGS, TITLE_TAGS } from "./allowed-tags.js";
import { type BlockDelimiter, splitBlocks } from "./blocks.js";
import { escapeText, stripTags } from "./markup.js";
import { cleanStyle } from "./style-attribute.js";
import { isSafeUrl, isScriptUrl, URL_SCHEMES } from "./urls.js";

/** Far more than a written document needs; parsers slow down with the depth. */
const MAX_OPEN_ELEMENTS = 512;

/**
 * One pass can produce nesting that the next one parses in another way. Hostile text that needs
 * more passes than this is escaped.
 */
const MAX_PASSES = 4;

/**
 * Sanitises the HTML of a post: keeps WordPress's tags and attributes for posts. Removes scripts
 * (their content stays as text), event handlers, forms and frames. Styles may only change looks,
 * and URLs need a harmless scheme. The result's tags are closed and nested.
 *
 * Block delimiters, `<!--more-->` and `<!--nextpage-->` stay in place; other comments are removed.
 * Strings in a delimiter's attributes lose tags and script URLs. A delimiter without them stays as
 * it is, byte for byte.
 *
 * Sanitising the result again changes nothing. HTML that nests deeper than 512 elements, or that
 * the parser fails on, is escaped as a whole and shown as text. Entities become characters, except
 * those of `& < >` and the no-break space. Time is linear.
 */
export function sanitiseHtml(raw: string): string {
  const kept: string[] = [];
  const marked = splitBlocks(withoutMarks(raw))
    .map((part) =>
      typeof part === "string" ? keepPageMarks(part, kept) : mark(harmlessDelimiter(part), kept),
    )
    .join("");
  return sanitise(marked, POST).replace(MARK, (_, index: string) => {
    const comment = kept[Number(index)] ?? "";
    // Once, in case another mark has the same number.
    kept[Number(index)] = "";
    return comment;
  });
}

/** Sanitises a title: keeps WordPress's few tags for titles, and no comments. */
export const sanitiseTitle = (raw: string): string => sanitise(withoutMarks(raw), TITLE);

// Comments are set aside behind marks that the text itself does not hold, and put back where the
// parser found the mark to be text.
const MARK = /\ufdd0(\d+)\ufdd1/g;
const withoutMarks = (raw: string): string =>
  raw.replace(/[\0\ufdd0\ufdd1\ufdd3-\ufdd6]/g, "").replace(MARK_REFERENCE, "\ufffd");

/**
 * References that the parser would turn into marks. A character takes their place, as what is
 * around them could make another.
 */
const MARK_REFERENCE = /&#(?:x0*fdd[0-6]|0*6497[6-9]|0*6498[0-2])(?![\da-f]);?/gi;

function mark(comment: string, kept: string[]): string {
  kept.push(comment);
  return `\ufdd0${kept.length - 1}\ufdd1`;
}

const keepPageMarks = (text: string, kept: string[]): string =>
  text.replace(/<!--(?:more(?: [^<>-]*)?|nextpage|noteaser)-->/g, (comment) => mark(comment, kept));

function harmlessDelimiter({ kind, name, attributes, text }: BlockDelimiter): string {
  if (attributes === "") return text;
  const slash = kind === "close" ? "/" : "";
  const end = kind === "void" ? "/" : "";
  let json = "";
  try {
    let isChanged = /--|[<>]/.test(attributes);
    const value: unknown = JSON.parse(attributes, (_, item: unknown) => {
      if (typeof item !== "string") return item;
      const plain = stripTags(item);
      const harmless = isScriptUrl(plain) ? "" : plain;
      isChanged ||= harmless !== item;
      return harmless;
    });
    if (!isChanged) return text;
    json = `${escapeJson(JSON.stringify(value))} `;
  } catch {
    // No JSON, or deeper than the parser goes: the block stays, its attributes do not.
  }
  return `<!-- ${slash}wp:${name.replace(/^core\//, "")} ${json}${end}-->`;
}

/** So that no attribute can end the comment, as the editor writes it. */
const escapeJson = (json: string): string =>
  json.replaceAll("--", "\\u002d\\u002d").replaceAll("<", "\\u003c").replaceAll(">", "\\u003e");

const URL_ATTRIBUTES: ReadonlySet<string> = new Set(["cite", "href", "longdesc", "poster", "src", "usemap"]);

const POST = optionsFor(POST_TAGS, POST_GLOBALS);
const TITLE = optionsFor(TITLE_TAGS, "");

function optionsFor(attributesByTag: AttributesByTag, globals: string): sanitizeHtml.IOptions {
  const lists = Object.entries({ ...attributesByTag, "*": globals }).map(([tag, names]) => [
    tag,
    names.split(" ").filter((name) => name !== ""),
  ]);
  return {
    allowedTags: Object.keys(attributesByTag),
    allowedAttributes: Object.fromEntries(lists),
    allowedSchemes: [...URL_SCHEMES],
    selfClosing: ["area", "br", "col", "hr", "img", "track", "wbr"],
    // As in WordPress, the content of a refused element stays as text.
    nonTextTags: [],
    // Its CSS parser takes quadratic time on brackets that are never closed.
    parseStyleAttributes: false,
    transformTags: { "*": (tagName, attributes) => ({ tagName, attribs: harmlessAttributes(attributes) }) },
    textFilter: withMarksForWrittenSigns,
  };
}

function harmlessAttributes(attributes: sanitizeHtml.Attributes): sanitizeHtml.Attributes {
  const harmless: sanitizeHtml.Attributes = Object.create(null);
  for (const [name, value] of Object.entries(attributes)) {
    const text = withSigns(withoutMarkedComments(value));
    if (!/^[a-z][a-z0-9_.:-]*$/.test(name)) continue;
    // The library takes quadratic time on comments in an address.
    if (URL_ATTRIBUTES.has(name) && (text.includes("<") || !isSafeUrl(text))) continue;
    const clean = name === "style" ? cleanStyle(text) : text;
    if (clean !== "" || name !== "style") harmless[name] = clean;
  }
  return harmless;
}

/** A comment that is put back into an attribute could end it. */
const withoutMarkedComments = (value: string): string => value.replace(MARK, "");

/**
 * Marks that replace `<`, `>`, `&` and the no-break space in texts during sanitising. The parser
 * would take some µs for each of these signs, and again for their references in each further pass.
 */
const SIGNS = [
  { mark: "\ufdd3", sign: "<", written: "&lt;" },
  { mark: "\ufdd4", sign: ">", written: "&gt;" },
  { mark: "\ufdd5", sign: "&", written: "&amp;" },
  { mark: "\ufdd6", sign: "\u00a0", written: "&nbsp;" },
] as const;

/** Signs that begin neither a tag, a comment nor a reference, wherever they stand. */
const withSignMarks = (html: string): string =>
  html.replace(/<(?![a-z!?/])/gi, SIGNS[0].mark).replace(/&(?!(?:[a-z]|#(?:\d|x[\da-f])))/gi, SIGNS[2].mark);

/** Of a text as the library writes it: with `&lt;`, `&gt;` and `&amp;`, and no other reference. */
function withMarksForWrittenSigns(text: string): string {
  const marked = text.replaceAll("\u00a0", SIGNS[3].mark);
  if (!marked.includes("&")) return marked;
  return SIGNS.reduce((whole, { mark, written }) => whole.replaceAll(written, mark), marked);
}

const withSigns = (text: string): string =>
  SIGNS.reduce((whole, { mark, sign }) => whole.replaceAll(mark, sign), text);

const withWrittenSigns = (html: string): string =>
  SIGNS.reduce((whole, { mark, written }) => whole.replaceAll(mark, written), html);

/** True if the text holds nothing to sanitise. */
const isPlain = (text: string): boolean => !/[<>&\u00a0]/.test(text);

function sanitise(html: string, options: sanitizeHtml.IOptions): string {
  if (isPlain(html)) return html;
  let text = withSignMarks(html);
  try {
    for (let pass = 0; pass < MAX_PASSES; pass += 1) {
      const sanitised = sanitiseOnce(text, options);
      if (sanitised === text) return withWrittenSigns(text);
      text = sanitised;
    }
  } catch {
    // Nested too deep, or the parser failed: the text may be unsafe, so it is escaped.
  }
  return escapeText(html);
}

function sanitiseOnce(html: string, options: sanitizeHtml.IOptions): string {
  let open = 0;
  return sanitizeHtml(html, {
    ...options,
    onOpenTag: () => {
      open += 1;
      if (open > MAX_OPEN_ELEMENTS) throw new RangeError("too many open elements");
    },
    onCloseTag: () => {
      open -= 1;
    },
  });
}
