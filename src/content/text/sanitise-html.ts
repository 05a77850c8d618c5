/**
 * Sanitises the HTML of authors who may not write free HTML. Removes everything that is not known
 * to be harmless.
 */

import sanitizeHtml from "sanitize-html";
import { type AttributesByTag, POST_GLOBALS, POST_TAGS, TITLE_TAGS } from "./allowed-tags.js";
import { createDelimiterFilter } from "./block-attributes.js";
import { splitBlocks } from "./blocks.js";
import { escapeText } from "./markup.js";
import { restoreSpelling } from "./restore-spelling.js";
import { cleanStyle } from "./style-attribute.js";
import { isSafeUrl, isSitePdf, URL_SCHEMES } from "./urls.js";

/** Far more than a written document needs; parsers slow down with the depth. */
const MAX_OPEN_ELEMENTS = 512;

/**
 * One pass can produce nesting that the next one parses in another way. Hostile text that needs
 * more passes than this is escaped.
 */
const MAX_PASSES = 4;

export interface SanitiseOptions {
  /**
   * The URL under which the site's uploads are, such as `https://example.org/uploads`. Its PDF files
   * may be shown by `<object>`, as the File block does. Without it, `<object>` is removed.
   */
  readonly uploads?: string | undefined;
}

/**
 * Sanitises the HTML of a post: keeps WordPress's tags and attributes for posts. Removes scripts
 * (their content stays as text), event handlers, forms and frames. Styles may only change looks,
 * and URLs need a harmless scheme. The result's tags are closed and nested.
 *
 * Harmless tags, references, white space and comments keep their spelling, byte for byte. In block
 * delimiters, strings of the attributes are sanitised like the text. Conditional comments and
 * directives of servers are removed.
 *
 * Sanitising the result again changes nothing. HTML that nests deeper than 512 elements, or that
 * the parser fails on, is escaped as a whole and shown as text. Time is linear.
 */
export function sanitiseHtml(raw: string, { uploads }: SanitiseOptions = {}): string {
  const options = uploads === undefined ? POST : optionsFor(POST_TAGS, POST_GLOBALS, uploads);
  const filterDelimiter = createDelimiterFilter({
    withoutMarks,
    sanitise: (html) => sanitise(html, options),
    isAllowedTag: (name) => Object.hasOwn(POST_TAGS, name),
  });
  const kept: string[] = [];
  const marked = splitBlocks(withoutMarks(raw))
    .map((part) => (typeof part === "string" ? keepComments(part, kept) : mark(filterDelimiter(part), kept)))
    .join("");
  return sanitise(marked, options).replace(MARK, (_, index: string) => {
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

/**
 * Comments that no browser ends early, no server reads as a directive, and no editor as the
 * beginning of a block: for its parser, a delimiter may go on after a `-->` in a string.
 */
const COMMENT = /<!--(?!\s*(?:#|esi\b|\/?wp:))(?:[^<>-]|-(?!-))+-->/gi;

const keepComments = (text: string, kept: string[]): string =>
  text.replace(COMMENT, (comment) => mark(comment, kept));

const URL_ATTRIBUTES: ReadonlySet<string> = new Set([
  ...["cite", "data", "href", "longdesc", "poster", "src", "usemap"],
]);

const POST = optionsFor(POST_TAGS, POST_GLOBALS);
const TITLE = optionsFor(TITLE_TAGS, "");

function optionsFor(
  attributesByTag: AttributesByTag,
  globals: string,
  uploads?: string,
): sanitizeHtml.IOptions {
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
    // Empty values matter: `download` and `alt`.
    nonBooleanAttributes: [],
    // Its CSS parser takes quadratic time on brackets that are never closed.
    parseStyleAttributes: false,
    transformTags: {
      "*": (tagName, attributes) => {
        const attribs = harmlessAttributes(attributes);
        return {
          tagName: tagName === "object" && !isPdfObject(attribs, uploads) ? "refused" : tagName,
          attribs,
        };
      },
    },
    textFilter: withMarksForWrittenSigns,
  };
}

const isPdfObject = ({ data, type }: sanitizeHtml.Attributes, uploads: string | undefined): boolean =>
  uploads !== undefined && type === "application/pdf" && data !== undefined && isSitePdf(data, uploads);

/** `data-wp-*` are directives of a script that browsers may run. */
const ATTRIBUTE_NAME = /^(?!data-wp-)[a-z][a-z0-9_-]*$|^xml:lang$/;

function harmlessAttributes(attributes: sanitizeHtml.Attributes): sanitizeHtml.Attributes {
  const harmless: sanitizeHtml.Attributes = Object.create(null);
  for (const [name, value] of Object.entries(attributes)) {
    const text = withSigns(withoutMarkedComments(value));
    if (!ATTRIBUTE_NAME.test(name)) continue;
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
      if (sanitised === text) return restoreSpelling(html, withWrittenSigns(text));
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
