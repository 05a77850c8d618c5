/**
 * Typography: straight quotes, dashes and dots as the signs a printer would set. The rules of
 * WordPress for English.
 */

import { tokenise } from "./markup.js";

/** What is shown letter by letter. */
const VERBATIM: ReadonlySet<string> = new Set(["pre", "code", "kbd", "style", "script", "tt"]);

const AMPERSAND = /&(?!#\d{1,8};|#x[\da-f]{1,7};|[a-z][a-z1-4]{0,31};)/gi;

/**
 * The HTML with curly quotes, dashes and ellipses as numeric references, outside of tags, comments
 * and of what is shown verbatim; an `&` that begins no reference is `&#038;`. Puts in nothing but
 * references, so that what was safe stays safe. Linear.
 */
export function texturise(html: string): string {
  let verbatim = 0;
  let result = "";
  for (const { kind, text, name, isClosing } of tokenise(html)) {
    if (kind === "tag" && VERBATIM.has(name)) verbatim = Math.max(0, verbatim + (isClosing ? -1 : 1));
    if (kind === "comment" || kind === "raw") result += text;
    else result += (kind === "text" && verbatim === 0 ? signs(text) : text).replace(AMPERSAND, "&#038;");
  }
  return result;
}

const OPENING_DOUBLE = "&#8220;";
const CLOSING_DOUBLE = "&#8221;";
const OPENING_SINGLE = "&#8216;";
const APOSTROPHE = "&#8217;";
const EN_DASH = "&#8211;";
const EM_DASH = "&#8212;";

function signs(text: string): string {
  // True if a quotation is open in this text: a digit before a quote is a measure otherwise.
  let isQuoted = false;
  let isSingleQuoted = false;
  return text.replace(/\.\.\.|``|''|["']|-+| \(tm\)/g, (sign: string, at: number) => {
    const before = text.slice(Math.max(0, at - 6), at);
    const after = text.slice(at + sign.length, at + sign.length + 6);
    if (sign.startsWith("-")) return dashes(sign.length, before, after);
    if (sign === "...") return "&#8230;";
    if (sign === "``") return OPENING_DOUBLE;
    if (sign === "''") return CLOSING_DOUBLE;
    if (sign === " (tm)") return " &#8482;";
    if (sign === '"') {
      if (opensAfter(before) && !isBlankStart(after)) {
        isQuoted = true;
        return OPENING_DOUBLE;
      }
      if (/\d$/.test(before) && !isQuoted) return "&#8243;";
      isQuoted = false;
      return CLOSING_DOUBLE;
    }
    // '99 is a year.
    if (/^\d\d(?:$|[^%\d])/.test(after) && !isSingleQuoted) return APOSTROPHE;
    if (opensAfter(before)) {
      isSingleQuoted = true;
      return OPENING_SINGLE;
    }
    const closes = after === "" || isBlankStart(after) || /^(?:[.,:;!?"'(){}[\]-]|&[lg]t;)/.test(after);
    if (closes && /\d$/.test(before) && !isSingleQuoted) return "&#8242;";
    if (closes) isSingleQuoted = false;
    return APOSTROPHE;
  });
}

const opensAfter = (before: string): boolean => before === "" || /(?:[([{"\s-]|&lt;|&nbsp;)$/.test(before);
const isBlankStart = (after: string): boolean => /^(?:\s|&nbsp;)/.test(after);

function dashes(count: number, before: string, after: string): string {
  const isApart = (before === "" || /(?:\s|&nbsp;)$/.test(before)) && (after === "" || isBlankStart(after));
  if (count === 1) return isApart ? EN_DASH : "-";
  if (count === 2) return before.endsWith("xn") ? "--" : isApart ? EM_DASH : EN_DASH;
  return EM_DASH.repeat(Math.floor(count / 3)) + ["", "-", EN_DASH][count % 3];
}
