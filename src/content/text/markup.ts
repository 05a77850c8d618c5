/**
 * HTML taken apart into text and tags in one linear pass, for what works on the text between the
 * tags. It judges nothing: safety is filter-html's.
 */

export interface HtmlToken {
  /** `raw`: what a script, a style sheet or a text area holds. */
  readonly kind: "text" | "tag" | "comment" | "raw";
  readonly text: string;
  /** Of a tag, in lower case; of `raw` the element it is in; else empty. */
  readonly name: string;
  readonly isClosing: boolean;
}

/** Elements that hold no tags, and what ends them. */
const RAW_TEXT: ReadonlyMap<string, RegExp> = new Map([
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
 * The tokens in order; their texts together are `html`. A `<` that begins no tag is text. Linear.
 */
export function tokenise(html: string): HtmlToken[] {
  const tokens: HtmlToken[] = [];
  let textFrom = 0;
  let hasCommentEnd = true;
  const endOf = elementEnds(html);
  const push = (kind: HtmlToken["kind"], start: number, end: number, name = "", isClosing = false): void => {
    if (end > start) tokens.push({ kind, text: html.slice(start, end), name, isClosing });
  };
  for (let at = html.indexOf("<"); at !== -1; at = html.indexOf("<", at)) {
    if (hasCommentEnd && html.startsWith("<!--", at)) {
      const end = html.indexOf("-->", at + 4);
      hasCommentEnd = end !== -1;
      if (hasCommentEnd) {
        push("text", textFrom, at);
        push("comment", at, end + 3);
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
    push("text", textFrom, at);
    at = textFrom = TAG.lastIndex;
    const [text, slash, name = ""] = match;
    const isClosing = slash === "/";
    tokens.push({ kind: "tag", text, name: name.toLowerCase(), isClosing });
    const close = isClosing ? undefined : RAW_TEXT.get(name.toLowerCase());
    if (close === undefined) continue;
    const end = endOf(close, at);
    push("raw", at, end, name.toLowerCase());
    at = textFrom = end;
  }
  push("text", textFrom, html.length);
  return tokens;
}

/** Finds where an element's raw text ends; at its start when it is never closed. */
function elementEnds(html: string): (close: RegExp, from: number) => number {
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

/** Elements that stand on their own lines: between them words do not run together. */
export const BLOCK_ELEMENTS: ReadonlySet<string> = new Set(
  (
    "address article aside blockquote caption col colgroup dd details dialog div dl dt fieldset figcaption figure footer form " +
    "h1 h2 h3 h4 h5 h6 header hgroup hr legend li main map menu nav ol p pre section summary table tbody td " +
    "tfoot th thead tr ul"
  ).split(" "),
);

/**
 * The text without tags and comments, and without what scripts and style sheets hold. A `<` that is
 * left becomes `&lt;`, so that no tag can come out of it. With `apart`, a blank stands in place of
 * line breaks and of elements on lines of their own.
 */
export function stripTags(html: string, { apart = false }: { readonly apart?: boolean } = {}): string {
  if (!html.includes("<")) return html;
  let text = "";
  for (const token of tokenise(html)) {
    if (token.kind === "text") text += token.text.replaceAll("<", "&lt;");
    else if (apart && (token.name === "br" || BLOCK_ELEMENTS.has(token.name))) text += " ";
  }
  return text;
}

/** Markup shown as the text it is. */
export const escapeText = (text: string): string =>
  text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll("\u00a0", "&nbsp;");
