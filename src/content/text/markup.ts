/**
 * Splits HTML into text and tags in one linear pass, for code that works on the text between the
 * tags, and for fields that hold no markup. Does not make HTML safe: `sanitise-html.ts` does.
 */

export interface HtmlToken {
  /** `raw`: the content of a script, a style sheet or a text area. */
  kind: "text" | "tag" | "comment" | "raw";
  text: string;
  /** The tag's name in lower case; for `raw` the name of its element; otherwise empty. */
  name: string;
  isClosing: boolean;
}

/** Elements that hold no tags, with the pattern of their end. */
const RAW_TEXT: Map<string, RegExp> = new Map([
  ["script", /<\/script/gi],
  ["style", /<\/style/gi],
  ["textarea", /<\/textarea/gi],
  ["xmp", /<\/xmp/gi],
]);

/**
 * Bounded by the next `<`, so that a text of many is still read once. What follows a name begins
 * with a character that no name has, so that a name can end in one place only.
 */
const TAG = /<(\/?)([a-zA-Z][^\s/<>]*)(?:[\s/][^<>]*)?>|<[!?/][^<>]*>/y;

/**
 * Yields the tokens of `html`, in order; their texts joined are `html`. A `<` that begins no tag is
 * text. Linear; what follows the last token that is taken is not read.
 */
export function* tokenise(html: string): Generator<HtmlToken, void> {
  let textFrom = 0;
  let hasCommentEnd = true;
  const findEnd = createEndFinder(html);
  const slice = (kind: HtmlToken["kind"], start: number, end: number, name = ""): HtmlToken => ({
    kind,
    text: html.slice(start, end),
    name,
    isClosing: false,
  });
  for (let at = html.indexOf("<"); at !== -1; at = html.indexOf("<", at)) {
    if (hasCommentEnd && html.startsWith("<!--", at)) {
      const end = html.indexOf("-->", at + 4);
      hasCommentEnd = end !== -1;
      if (hasCommentEnd) {
        if (at > textFrom) yield slice("text", textFrom, at);
        yield slice("comment", at, end + 3);
        at = textFrom = end + 3;
        continue;
      }
    }
    TAG.lastIndex = at;
    const match = TAG.exec(html);
    if (match === null) {
      at += 1;
      continue;
    }
    if (at > textFrom) yield slice("text", textFrom, at);
    const [text, slash, tagName = ""] = match;
    at = textFrom = at + text.length;
    const isClosing = slash === "/";
    const name = tagName.toLowerCase();
    yield { kind: "tag", text, name, isClosing };
    const close = isClosing ? undefined : RAW_TEXT.get(name);
    if (close === undefined) continue;
    const end = findEnd(close, at);
    if (end > at) yield slice("raw", at, end, name);
    at = textFrom = end;
  }
  if (html.length > textFrom) yield slice("text", textFrom, html.length);
}

/** Finds where an element's raw text ends. An element that is never closed has no raw text. */
function createEndFinder(html: string): (close: RegExp, from: number) => number {
  const unclosed = new Set<RegExp>();
  return (close, from) => {
    if (unclosed.has(close)) return from;
    close.lastIndex = from;
    const match = close.exec(html);
    if (match !== null) return match.index;
    unclosed.add(close);
    return from;
  };
}

/** Tokens that are processed in one step: about a millisecond. */
const TOKENS_PER_STEP = 1_024;

/** Yields the tokens of `html` like {@link tokenise}, in groups of one step each. */
export function* tokenGroups(html: string): Generator<HtmlToken[], void> {
  let group: HtmlToken[] = [];
  for (const token of tokenise(html)) {
    group.push(token);
    if (group.length < TOKENS_PER_STEP) continue;
    yield group;
    group = [];
  }
  yield group;
}

/** Elements that stand on their own lines: between them words do not run together. */
const BLOCK_ELEMENTS: Set<string> = new Set(
  (
    "address article aside blockquote caption col colgroup dd details dialog div dl dt fieldset figcaption figure footer form " +
    "h1 h2 h3 h4 h5 h6 header hgroup hr legend li main map menu nav ol p pre section summary table tbody td " +
    "tfoot th thead tr ul"
  ).split(" "),
);

/**
 * Removes tags, comments and the content of scripts and style sheets. A `<` that is left becomes
 * `&lt;`, so that it cannot begin a tag. With `apart`, a blank replaces line breaks and block
 * elements.
 */
export function stripTags(html: string, { apart = false }: { apart?: boolean } = {}): string {
  if (!html.includes("<")) return html;
  let text = "";
  for (const token of tokenise(html)) text += stripToken(token, { apart });
  return text;
}

/** Returns what {@link stripTags} keeps of a token. */
export function stripToken({ kind, text, name }: HtmlToken, { apart }: { apart: boolean }): string {
  if (kind === "text") return text.replaceAll("<", "&lt;");
  return apart && (name === "br" || BLOCK_ELEMENTS.has(name)) ? " " : "";
}

/** Escapes markup, so that it is shown as text. */
export const escapeText = (text: string): string =>
  text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll("\u00a0", "&nbsp;");

/** Matches an `&` that begins no character reference. */
const AMPERSAND = /&(?!#\d{1,8};|#x[\da-f]{1,7};|[a-z][a-z\d]{0,31};)/gi;

/** Returns a title of the site as WordPress stores it: markup and quotes escaped, blanks kept. */
export const escapeSetting = (text: string): string =>
  text
    .replace(/[\p{Cs}\0]/gu, "")
    .replace(AMPERSAND, "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&#039;");

// Fields that hold no markup: alternative texts, attributes and class names of menu items.

/**
 * One line of text without tags, percent-encoded octets and control characters, blanks collapsed:
 * WordPress's rule for text fields. A `<` that begins no tag is `&lt;`.
 *
 * Guarantee: no `<` is left, and doing it again changes nothing. Linear.
 */
export function stripAll(raw: string): string {
  const text = stripTags(raw.replace(/[\p{Cc}\p{Cs}]/gu, (character) => (/\s/.test(character) ? " " : "")));
  return withoutOctets(text).replace(/\s+/g, " ").trim();
}

/** Also those that come about when others are taken out. */
function withoutOctets(text: string): string {
  if (!text.includes("%")) return text;
  const parts: string[] = [];
  for (const character of text) {
    parts.push(character);
    if (/^%[\da-f]{2}$/i.test(parts.slice(-3).join(""))) parts.length -= 3;
  }
  return parts.join("");
}

/**
 * Class names, or relations of a link, with nothing but letters, digits, `-` and `_`; a name that
 * holds blanks is one name. As in WordPress an empty list comes back as `[""]`.
 */
export function cleanClasses(classes: string[]): string[] {
  if (classes.length === 0) return [""];
  return classes.map((name) => name.replace(/%[\da-f]{2}/gi, "").replace(/[^\w-]/g, ""));
}

// Images of the site, by the class that editors give them.

/** Images of the site that are completed in one content. */
export const MAX_IMAGES = 500;

/** The class by which editors name the attachment that an image shows. */
const IMAGE_CLASS = /\bwp-image-(\d{1,15})\b/gi;

/** Returns the ids of the attachments that the images of a text show, each once. */
export function listImageIds(text: string): number[] {
  if (!text.includes("wp-image-")) return [];
  const ids = new Set<number>();
  for (const [, id] of text.matchAll(IMAGE_CLASS)) {
    if (ids.size >= MAX_IMAGES) break;
    ids.add(Number(id));
  }
  return [...ids];
}
