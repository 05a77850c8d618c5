/**
 * What is kept of the HTML of an author who may not write free HTML. Everything that is not known
 * to be harmless goes. Knows no post.
 */

import sanitizeHtml from "sanitize-html";
import { type BlockDelimiter, splitBlocks } from "./blocks.js";
import { escapeText, stripTags } from "./markup.js";
import { cleanStyle } from "./style-attribute.js";
import { isSafeUrl, isScriptUrl, URL_SCHEMES } from "./urls.js";

type AttributesByTag = { readonly [tag: string]: string };

const CELL = "abbr align axis bgcolor char charoff colspan headers height nowrap rowspan scope valign width";
const COLUMN = "align char charoff span valign width";
const ROWS = "align char charoff valign";

/**
 * WordPress's tags for posts and what each may have besides what all may have; without `object`,
 * `textarea` and other raw text.
 */
const POST_TAGS: AttributesByTag = {
  ...tags(
    "abbr acronym address b bdi bdo big center cite code dd dfn dl dt em fieldset i kbd mark rb rp rt rtc ruby",
  ),
  ...tags("s samp small strike strong sub sup tt u var wbr br"),
  ...tags(
    "article aside caption details div figcaption figure footer h1 h2 h3 h4 h5 h6 header hgroup legend main",
    "align",
  ),
  ...tags("nav p section span summary", "align"),
  a: "href rel rev name target download",
  area: "alt coords href nohref shape target",
  audio: "autoplay controls loop muted preload src",
  blockquote: "cite",
  button: "disabled name type value",
  col: COLUMN,
  colgroup: COLUMN,
  del: "cite datetime",
  details: "align open",
  font: "color face size",
  hr: "align noshade size width",
  img: "alt align border height hspace loading longdesc vspace src usemap width",
  ins: "cite datetime",
  label: "for",
  li: "align value",
  map: "name",
  menu: "type",
  ol: "start type reversed",
  pre: "width",
  q: "cite",
  table: "align bgcolor border cellpadding cellspacing rules summary width",
  tbody: ROWS,
  td: CELL,
  tfoot: ROWS,
  th: CELL,
  thead: ROWS,
  time: "datetime",
  tr: `${ROWS} bgcolor`,
  track: "default kind label src srclang",
  ul: "type",
  video: "autoplay controls height loop muted playsinline poster preload src width",
};

const POST_GLOBALS = "class dir hidden id lang role style title xml:lang aria-* data-*";

/** WordPress's tags for titles and comments. */
const TITLE_TAGS: AttributesByTag = {
  ...tags("b code em i s strike strong cite"),
  a: "href title",
  abbr: "title",
  acronym: "title",
  blockquote: "cite",
  del: "datetime",
  q: "cite",
};

function tags(names: string, attributes = ""): AttributesByTag {
  return Object.fromEntries(names.split(" ").map((name) => [name, attributes]));
}

/** No document that somebody wrote comes near; parsers slow down with the depth. */
const MAX_OPEN_ELEMENTS = 512;

/**
 * Nesting that the first pass makes valid may look different to the next; hostile text can need
 * more passes than this.
 */
const MAX_PASSES = 4;

/**
 * The HTML with WordPress's tags and attributes for posts alone: no scripts (what was in them stays
 * as text), event handlers, forms, frames; styles that only change looks; addresses of harmless
 * schemes; tags closed and nested. Block delimiters and `<!--more-->`, `<!--nextpage-->` stay in
 * place, other comments go. Texts in a delimiter's attributes lose tags and script addresses; a
 * delimiter without them stays as it is, byte for byte.
 *
 * Guarantee: filtering twice is filtering once. What cannot be made safe, because it nests deeper
 * than 512 elements or the parser fails, is escaped whole and shown as text. Entities but those of
 * `& < >` and the no-break space become characters. Time is linear.
 */
export function sanitiseHtml(raw: string): string {
  const kept: string[] = [];
  const marked = splitBlocks(withoutMarks(raw))
    .map((part) =>
      typeof part === "string" ? keepPageMarks(part, kept) : mark(harmlessDelimiter(part), kept),
    )
    .join("");
  return filter(marked, POST).replace(MARK, (_, index: string) => {
    const comment = kept[Number(index)] ?? "";
    // Once, in case another mark has the same number.
    kept[Number(index)] = "";
    return comment;
  });
}

/** The same with the few tags for titles; no comments. */
export const sanitiseTitle = (raw: string): string => filter(withoutMarks(raw), TITLE);

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
    // As in WordPress, what a refused element holds stays, as text.
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
 * What stands for `<`, `>`, `&` and the no-break space in texts while they are filtered. The parser
 * takes some µs for each of these signs in a text, and once more for their references in each
 * further pass.
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

/** True if nothing can be wrong with a text. */
const isPlain = (text: string): boolean => !/[<>&\u00a0]/.test(text);

function filter(html: string, options: sanitizeHtml.IOptions): string {
  if (isPlain(html)) return html;
  let text = withSignMarks(html);
  try {
    for (let pass = 0; pass < MAX_PASSES; pass += 1) {
      const filtered = filterOnce(text, options);
      if (filtered === text) return withWrittenSigns(text);
      text = filtered;
    }
  } catch {
    // Too deep, or a fault of the parser: either way nothing is known of the text.
  }
  return escapeText(html);
}

function filterOnce(html: string, options: sanitizeHtml.IOptions): string {
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
