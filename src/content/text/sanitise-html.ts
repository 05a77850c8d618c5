/**
 * Sanitises the HTML of authors who may not write free HTML. Removes everything that is not known
 * to be harmless.
 */

import sanitizeHtml from "sanitize-html";
import { runSteps, type Steps } from "../../core/next-turn.js";
import { type AttributesByTag, POST_GLOBALS, POST_TAGS, TITLE_TAGS } from "./allowed-tags.js";
import { createDelimiterFilter, splitBlocks } from "./blocks.js";
import { escapeText, stripTags } from "./markup.js";
import {
  closingTags,
  type HtmlPiece,
  type NestingRules,
  nestHtml,
  openingTags,
  restoreSpelling,
} from "./nested-html.js";
import { cleanStyle } from "./style-attribute.js";
import { isSafeUrl, isSitePdf, URL_SCHEMES } from "./urls.js";

/**
 * A pass can change the attributes of a tag so that the next one reads them in another way. Hostile
 * text that needs more passes than this is escaped.
 */
const MAX_PASSES = 4;

interface SanitiseOptions {
  /**
   * The URL under which the site's uploads are, such as `https://example.org/uploads`. Its PDF files
   * may be shown by `<object>`, as the File block does. Without it, `<object>` is removed.
   */
  uploads?: string | undefined;
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
export const sanitiseHtml = (raw: string, options: SanitiseOptions = {}): string =>
  runSteps(sanitiseSteps(raw, options));

/** Does the same in steps. */
export function* sanitiseSteps(raw: string, { uploads }: SanitiseOptions = {}): Steps<string> {
  const rules = uploads === undefined ? POST : rulesFor(POST_TAGS, POST_GLOBALS, uploads);
  const filterDelimiter = createDelimiterFilter({
    withoutMarks,
    sanitise: (html) => sanitise(html, rules),
    isAllowedTag: (name) => Object.hasOwn(POST_TAGS, name),
  });
  const kept: string[] = [];
  let marked = "";
  for (const part of splitBlocks(withoutMarks(raw))) {
    marked += typeof part === "string" ? keepComments(part, kept) : mark(yield* filterDelimiter(part), kept);
  }
  return (yield* sanitise(marked, rules)).replace(MARK, (_, index: string) => {
    const comment = kept[Number(index)] ?? "";
    // Once, in case another mark has the same number.
    kept[Number(index)] = "";
    return comment;
  });
}

/** Sanitises a title: keeps WordPress's few tags for titles, and no comments. */
export const sanitiseTitle = (raw: string): string => runSteps(sanitiseTitleSteps(raw));

/** Does the same in steps. */
export const sanitiseTitleSteps = (raw: string): Steps<string> => sanitise(withoutMarks(raw), TITLE);

/**
 * Notes with markup that are sanitised in one text. Further ones, which no author writes, lose
 * their tags, because each call of the sanitiser takes a fraction of a millisecond.
 */
const MAX_HTML_NOTES = 500;

/**
 * Sanitises the footnotes of a post in steps, which are a JSON list of notes: keeps the id and the
 * sanitised content of each. Returns an empty text for anything else. Source: WordPress 7.1.
 */
export function* footnoteSteps(text: string, options: SanitiseOptions = {}): Steps<string> {
  let budget = MAX_HTML_NOTES;
  const sanitised: Note[] = [];
  const notes = readNotes(text);
  for (const { id, content } of notes ?? []) {
    if (isPlain(content)) {
      sanitised.push({ id, content: yield* sanitiseSteps(content, options) });
      continue;
    }
    budget -= 1;
    sanitised.push({ id, content: budget < 0 ? stripTags(content) : yield* sanitiseSteps(content, options) });
    yield;
  }
  return notes === undefined ? "" : JSON.stringify(sanitised);
}

interface Note {
  id: string;
  content: string;
}

/** The notes that have an id and a content; `undefined` if it is no list. */
function readNotes(json: string): Note[] | undefined {
  let notes: unknown;
  try {
    notes = JSON.parse(json);
  } catch {
    return undefined;
  }
  if (!Array.isArray(notes)) return undefined;
  return notes.flatMap((note: { id?: unknown; content?: unknown } | null) => {
    const { id, content } = note ?? {};
    if (typeof id !== "string" || typeof content !== "string" || id === "" || content === "") return [];
    return [{ id: id.toLowerCase().replace(/[^a-z0-9_-]/g, ""), content }];
  });
}

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

const URL_ATTRIBUTES: Set<string> = new Set([
  ...["cite", "data", "href", "longdesc", "poster", "src", "usemap"],
]);

const SELF_CLOSING: Set<string> = new Set(["area", "br", "col", "hr", "img", "track", "wbr"]);

/** The allow-list, for the parser that makes a text nest and for the sanitiser. */
interface Rules extends NestingRules {
  /**
   * Returns the options of the sanitiser for HTML with elements of these names. With the whole list
   * of tags, each call would take a tenth of a millisecond more.
   */
  optionsFor: (names: Set<string>) => sanitizeHtml.IOptions;
}

const split = (names: string): string[] => names.split(" ").filter((name) => name !== "");

const POST = rulesFor(POST_TAGS, POST_GLOBALS);
const TITLE = rulesFor(TITLE_TAGS, "");

function rulesFor(attributesByTag: AttributesByTag, globals: string, uploads?: string): Rules {
  const allowed = new Map(Object.entries(attributesByTag).map(([tag, names]) => [tag, split(names)]));
  const isRefused = (name: string, attributes: sanitizeHtml.Attributes): boolean =>
    name === "object" && !isPdfObject(attributes, uploads);
  const common: sanitizeHtml.IOptions = {
    allowedSchemes: [...URL_SCHEMES],
    selfClosing: [...SELF_CLOSING],
    // As in WordPress, the content of a refused element stays as text.
    nonTextTags: [],
    // Empty values matter: `download` and `alt`.
    nonBooleanAttributes: [],
    // Its CSS parser takes quadratic time on brackets that are never closed.
    parseStyleAttributes: false,
    transformTags: {
      "*": (tagName, attributes) => {
        const attribs = harmlessAttributes(attributes);
        return { tagName: isRefused(tagName, attribs) ? "refused" : tagName, attribs };
      },
    },
  };
  return {
    optionsFor(names) {
      const tags = [...names].filter((name) => allowed.has(name));
      const lists = tags.map((tag) => [tag, allowed.get(tag) ?? []]);
      return {
        ...common,
        allowedTags: tags,
        allowedAttributes: { ...Object.fromEntries(lists), "*": split(globals) },
      };
    },
    writeText: (text) => withSignMarks(text),
    writeTag(name, attributes) {
      if (!allowed.has(name)) return undefined;
      const harmless = harmlessAttributes(attributes);
      return isRefused(name, harmless) ? undefined : writeTag(name, harmless);
    },
  };
}

/** Writes a tag as the sanitiser would, so that it seldom needs a second pass. */
const writeTag = (name: string, attributes: sanitizeHtml.Attributes): string =>
  `<${name}${Object.entries(attributes).map(writeAttribute).join("")}${SELF_CLOSING.has(name) ? " />" : ">"}`;

const writeAttribute = ([name, value]: [string, string]): string =>
  value === "" && name !== "alt" ? ` ${name}` : ` ${name}="${escapeValue(value)}"`;

const escapeValue = (value: string): string =>
  value.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");

const isPdfObject = ({ data, type }: sanitizeHtml.Attributes, uploads: string | undefined): boolean =>
  uploads !== undefined && type === "application/pdf" && data !== undefined && isSitePdf(data, uploads);

/** `data-wp-*` are directives of a script that browsers may run. */
const ATTRIBUTE_NAME = /^(?!data-wp-)[a-z][a-z0-9_-]*$|^xml:lang$/;

function harmlessAttributes(attributes: sanitizeHtml.Attributes): sanitizeHtml.Attributes {
  const harmless: sanitizeHtml.Attributes = Object.create(null);
  for (const [name, value] of Object.entries(attributes)) {
    if (!ATTRIBUTE_NAME.test(name)) continue;
    const text = withoutMarkedComments(value);
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
 * would take some µs for each of these signs, and again for their references in each pass.
 */
const SIGNS = [
  { mark: "\ufdd3", sign: "<", written: "&lt;" },
  { mark: "\ufdd4", sign: ">", written: "&gt;" },
  { mark: "\ufdd5", sign: "&", written: "&amp;" },
  { mark: "\ufdd6", sign: "\u00a0", written: "&nbsp;" },
] as const;

const withSignMarks = (text: string): string =>
  isPlain(text) ? text : SIGNS.reduce((whole, { mark, sign }) => whole.replaceAll(sign, mark), text);

const withWrittenSigns = (html: string): string =>
  SIGNS.reduce((whole, { mark, written }) => whole.replaceAll(mark, written), html);

/** True if the text holds nothing to sanitise. */
const isPlain = (text: string): boolean => !/[<>&\u00a0]/.test(text);

function* sanitise(html: string, rules: Rules): Steps<string> {
  if (isPlain(html)) return html;
  try {
    let sanitised = "";
    for (const piece of yield* nestHtml(html, rules)) {
      sanitised += sanitisePiece(piece, rules);
      yield;
    }
    return yield* restoreSpelling(html, withWrittenSigns(sanitised));
  } catch {
    // Nested too deep, or the parser failed: the text may be unsafe, so it is escaped.
    return escapeText(html);
  }
}

/** Sanitises a piece behind the tags of the elements around it, which are removed again. */
function sanitisePiece({ around, html, open, names }: HtmlPiece, { optionsFor }: Rules): string {
  if (!html.includes("<")) return html;
  const options = optionsFor(names);
  const before = openingTags(around);
  const shell = before === "" ? "" : sanitizeHtml(before, options);
  const start = shell.slice(0, shell.length - closingTags(around).length);
  const end = closingTags(open);
  let text = html;
  for (let pass = 0; pass < MAX_PASSES; pass += 1) {
    const whole = sanitizeHtml(before + text, options);
    if (!whole.startsWith(start) || !whole.endsWith(end)) throw new Error("The piece was cut.");
    const sanitised = whole.slice(start.length, whole.length - end.length);
    if (sanitised === text) return text;
    text = sanitised;
  }
  throw new Error("The passes do not come to an end.");
}
