/**
 * Splits HTML into text and tags in one linear pass, for code that works on the text between the
 * tags. Does not make HTML safe: `sanitise-html.ts` does.
 */

export interface HtmlToken {
  /** `raw`: the content of a script, a style sheet or a text area. */
  readonly kind: "text" | "tag" | "comment" | "raw";
  readonly text: string;
  /** The tag's name in lower case; for `raw` the name of its element; otherwise empty. */
  readonly name: string;
  readonly isClosing: boolean;
}

/** Elements that hold no tags, with the pattern of their end. */
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
 * Splits `html` into tokens, in order; their texts joined are `html`. A `<` that begins no tag is
 * text. Linear.
 */
export function tokenise(html: string): HtmlToken[] {
  const tokens: HtmlToken[] = [];
  let textFrom = 0;
  let hasCommentEnd = true;
  const findEnd = createEndFinder(html);
  const push = (kind: HtmlToken["kind"], start: number, end: number, name = ""): void => {
    if (end > start) tokens.push({ kind, text: html.slice(start, end), name, isClosing: false });
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
    const end = findEnd(close, at);
    push("raw", at, end, name.toLowerCase());
    at = textFrom = end;
  }
  push("text", textFrom, html.length);
  return tokens;
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

/** Elements that stand on their own lines: between them words do not run together. */
export const BLOCK_ELEMENTS: ReadonlySet<string> = new Set(
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
export function stripTags(html: string, { apart = false }: { readonly apart?: boolean } = {}): string {
  if (!html.includes("<")) return html;
  let text = "";
  for (const token of tokenise(html)) {
    if (token.kind === "text") text += token.text.replaceAll("<", "&lt;");
    else if (apart && (token.name === "br" || BLOCK_ELEMENTS.has(token.name))) text += " ";
  }
  return text;
}

/** Escapes markup, so that it is shown as text. */
export const escapeText = (text: string): string =>
  text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll("\u00a0", "&nbsp;");
