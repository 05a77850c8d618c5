/**
 * Typography: replaces straight quotes, hyphens, dots and smilies in the text of HTML by
 * typographic signs, with WordPress's rules for English. Knows no post.
 */

import { runSteps, type Steps } from "../../core/next-turn.js";
import { tokenGroups } from "./markup.js";

/** Elements whose text is shown as written. */
const VERBATIM: Set<string> = new Set(["pre", "code", "kbd", "style", "script", "tt"]);

const AMPERSAND = /&(?!#\d{1,8};|#x[\da-f]{1,7};|[a-z1-4]{1,8};)/gi;

/**
 * Replaces quotes, dashes and ellipses by numeric references. Tags, comments and verbatim elements
 * stay as they are. An `&` that begins no reference becomes `&#038;`. Inserts references only, so
 * safe HTML stays safe. Linear.
 */
export const texturise = (html: string): string => runSteps(texturiseSteps(html));

/** Does the same in steps. With `smilies`, smilies that are set apart by blanks become emoji. */
export function* texturiseSteps(
  html: string,
  { smilies = false }: { smilies?: boolean } = {},
): Steps<string> {
  let verbatim = 0;
  const parts: string[] = [];
  for (const group of tokenGroups(html)) {
    for (const { kind, text, name, isClosing } of group) {
      if (kind === "tag" && VERBATIM.has(name)) verbatim = Math.max(0, verbatim + (isClosing ? -1 : 1));
      if (kind === "comment" || kind === "raw") parts.push(text);
      else if (kind === "text" && verbatim === 0)
        parts.push(yield* replaceSigns(smilies ? replaceSmilies(text) : text));
      else parts.push(escapeAmpersands(text));
    }
    yield;
  }
  return parts.join("");
}

/** Writes an `&` that begins no reference as one. */
export const escapeAmpersands = (text: string): string =>
  text.includes("&") ? text.replace(AMPERSAND, "&#038;") : text;

const OPENING_DOUBLE = "&#8220;";
const CLOSING_DOUBLE = "&#8221;";
const OPENING_SINGLE = "&#8216;";
const APOSTROPHE = "&#8217;";
const PRIME = "&#8242;";
const DOUBLE_PRIME = "&#8243;";
const TIMES = "&#215;";
const EN_DASH = "&#8211;";
const EM_DASH = "&#8212;";

/** Signs that are always replaced in the same way. */
const FIXED_SIGNS: Map<string, string> = new Map([
  ["...", "&#8230;"],
  ["``", OPENING_DOUBLE],
  ["''", CLOSING_DOUBLE],
  [" (tm)", " &#8482;"],
]);

/** The quotations open in a text. Outside of one, a quote after a digit is a unit: 6'2". */
interface OpenQuotes {
  isDouble: boolean;
  isSingle: boolean;
}

const SIGN = /\.\.\.|``|''|["']|-+| \(tm\)|(?<=\d)x(?=\d)/g;

/** Characters whose signs are replaced in one step. */
const CHARACTERS_PER_STEP = 16_384;

function* replaceSigns(text: string): Steps<string> {
  const open: OpenQuotes = { isDouble: false, isSingle: false };
  let result = "";
  for (let from = 0; from < text.length; ) {
    const start = from;
    from = findBreak(text, start);
    const part = text.slice(start, from);
    result += escapeAmpersands(
      part.replace(SIGN, (sign: string, at: number) => replaceSign(sign, text, start + at, open)),
    );
    if (from < text.length) yield;
  }
  return result;
}

/** Longer than any reference that {@link AMPERSAND} knows. */
const REFERENCE_LENGTH = 40;

/** Returns the end of the part that begins at `start`. No sign and no reference crosses it. */
function findBreak(text: string, start: number): number {
  let end = start + CHARACTERS_PER_STEP;
  if (end >= text.length) return text.length;
  const before = end - REFERENCE_LENGTH;
  const reference = text.slice(before, end).lastIndexOf("&");
  if (reference !== -1) return before + reference;
  const mark = text.slice(before, end + 4).lastIndexOf(" (tm)");
  if (mark !== -1) return before + mark;
  while (end < text.length && text[end] !== '"' && text[end] === text[end - 1]) end += 1;
  return end;
}

function replaceSign(sign: string, text: string, at: number, open: OpenQuotes): string {
  const fixed = FIXED_SIGNS.get(sign);
  if (fixed !== undefined) return fixed;
  if (sign === "x") return isBetweenNumbers(text, at) ? TIMES : sign;
  const before = text.slice(Math.max(0, at - 6), at);
  const after = text.slice(at + sign.length, at + sign.length + 6);
  if (sign.startsWith("-")) return replaceDashes(sign.length, before, after);
  return sign === '"' ? replaceDouble(open, before, after) : replaceSingle(open, before, after);
}

function replaceDouble(open: OpenQuotes, before: string, after: string): string {
  const isEmpty = open.isDouble && before.endsWith('"');
  if (!isEmpty && opensAfter(before) && !isBlankStart(after)) {
    open.isDouble = true;
    return OPENING_DOUBLE;
  }
  if (isUnit(before) && !open.isDouble) return DOUBLE_PRIME;
  open.isDouble = false;
  return CLOSING_DOUBLE;
}

/**
 * The words that WordPress knows to begin with an apostrophe. In lower case only; a longer word
 * that begins like one counts, too.
 */
const ELIDED = /^(?:tain't|twere|twas|tis|twill|til|bout|nuff|round|cause|em)/;

/** '99 is a year, as in '99s; '99% and '99.5 are numbers. */
const YEAR = /^\d\d(?![%\d]|[.,]\d)/;
const YEAR_BEFORE = /'\d\d$/;

function replaceSingle(open: OpenQuotes, before: string, after: string): string {
  if (ELIDED.test(after) || YEAR.test(after)) return APOSTROPHE;
  if (opensAfter(before)) {
    open.isSingle = true;
    return OPENING_SINGLE;
  }
  const closes = after === "" || isBlankStart(after) || /^(?:[.,:;!?"'(){}[\]-]|&[lg]t;)/.test(after);
  if (closes && isUnit(before) && !open.isSingle) return PRIME;
  if (closes) open.isSingle = false;
  return APOSTROPHE;
}

/** True if a quote after it stands for feet or inches: after a number that is no year. */
const isUnit = (before: string): boolean => /\d$/.test(before) && !YEAR_BEFORE.test(before);
const opensAfter = (before: string): boolean => before === "" || /(?:[([{"\s-]|&lt;|&nbsp;)$/.test(before);
const isBlankStart = (after: string): boolean => /^(?:\s|&nbsp;)/.test(after);

function replaceDashes(count: number, before: string, after: string): string {
  const isApart = (before === "" || /(?:\s|&nbsp;)$/.test(before)) && (after === "" || isBlankStart(after));
  if (count === 1) return isApart ? EN_DASH : "-";
  if (count === 2) return before.endsWith("xn") ? "--" : isApart ? EM_DASH : EN_DASH;
  return EM_DASH.repeat(Math.floor(count / 3)) + ["", "-", EN_DASH][count % 3];
}

/** The longest number, in characters, that an `x` may stand beside. */
const NUMBER_LENGTH = 24;

/** True for the `x` of `9x9` and `1.5x2`, but not for those of `9x9x9`, `0x1F` and `a9x9`. */
function isBetweenNumbers(text: string, at: number): boolean {
  let start = at;
  while (at - start <= NUMBER_LENGTH && isNumeric(text[start - 1])) start -= 1;
  let end = at + 1;
  while (end - at <= NUMBER_LENGTH && isNumeric(text[end])) end += 1;
  if (at - start > NUMBER_LENGTH || end - at > NUMBER_LENGTH) return false;
  const isHexadecimal = text.slice(start, at) === "0";
  return !isHexadecimal && !isPartOfWord(text[start - 1]) && !isPartOfWord(text[end]);
}

const isNumeric = (character = ""): boolean => /^[\d.,]$/.test(character);
const isPartOfWord = (character = ""): boolean => /^[\p{L}\p{N}_]$/u.test(character);

/** The smilies that WordPress's documentation lists, but for the one that is a picture. */
const SMILIES: Map<string, string> = new Map(
  (
    ":) 🙂 :-) 🙂 :smile: 🙂 ;) 😉 ;-) 😉 :wink: 😉 :D 😀 :-D 😀 :grin: 😀 :( 🙁 :-( 🙁 :sad: 🙁 " +
    "8-) 😎 :cool: 😎 :| 😐 :-| 😐 :neutral: 😐 :P 😛 :-P 😛 :razz: 😛 :o 😮 :-o 😮 :eek: 😮 " +
    ":x 😡 :-x 😡 :mad: 😡 :? 😕 :-? 😕 :???: 😕 8O 😯 8-O 😯 :shock: 😯 :lol: 😆 :oops: 😳 :cry: 😥 " +
    ":roll: 🙄 :evil: 👿 :twisted: 😈 :idea: 💡 :arrow: ➡ :!: ❗ :?: ❓"
  )
    .split(" ")
    .reduce<[string, string][]>((pairs, word, at, words) => {
      if (at % 2 === 1) pairs.push([words[at - 1] ?? "", word]);
      return pairs;
    }, []),
);

/** No smiley is longer. A word that is longer is not looked up. */
const SMILEY = /(?<!\S)[:;8]\S{1,9}(?!\S)/g;

const replaceSmilies = (text: string): string =>
  text.replace(SMILEY, (word: string) => SMILIES.get(word) ?? word);
