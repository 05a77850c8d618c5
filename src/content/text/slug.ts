/**
 * Slugs: a readable name for an address, made from any text, and made unique. Knows no post and no
 * store.
 */

import { tokenise } from "./markup.js";
import { normaliseBounded } from "./normalise.js";

/** In bytes, which are characters here: a slug is ASCII. */
const MAX_LENGTH = 200;

/**
 * Latin letters that Unicode does not take apart into a base letter and marks, and two signs that
 * read as letters.
 */
const LETTERS: Map<string, string> = new Map(
  Object.entries({
    // As `en_US` writes it; `de_DE` writes `ss`.
    ß: "s",
    æ: "ae",
    œ: "oe",
    ĳ: "ij",
    þ: "th",
    ø: "o",
    đ: "d",
    ð: "d",
    ł: "l",
    ŀ: "l",
    ħ: "h",
    ŧ: "t",
    ŋ: "n",
    ŉ: "n",
    ĸ: "k",
    ı: "i",
    ſ: "s",
    ƒ: "f",
    ª: "a",
    º: "o",
    "€": "e",
    "×": "x",
  }),
);

/** Blanks and dashes, and what WordPress shows as a dash. */
const DASH = /[./\u2011\u2013\u2014-]|(?!\p{Cc})\s/u;

/**
 * Signs of ASCII but for `%`, `-`, `.`, `/`, `_`, the signs and invisible characters that WordPress
 * leaves out, marks that no letter has taken up, every other invisible character, which could make
 * two slugs look alike, and halves of characters.
 */
const NOTHING =
  /[!-,:-@[-^`{-~¡£©«®°´»¿\u02ca\u2018-\u201f•…‹›™\ufff9-\ufffd]|[\u0300-\u036f]|\p{Default_Ignorable_Code_Point}|\p{Noncharacter_Code_Point}|\p{Surrogate}|[\u202a-\u202e]|\p{Cc}/gu;

/**
 * The slug of a text as WordPress makes it on saving: without tags, entities and signs, in lower
 * case, Latin letters without their accents, blanks and dashes as single dashes; other letters as
 * lower-case percent-encoded UTF-8.
 *
 * Guarantee: nothing but `a-z`, `0-9`, `_`, `-` and whole percent-encoded characters, at most 200
 * bytes, no dash at either end or beside another; the slug of a slug is itself. Empty when nothing
 * is left. As in WordPress, octets of the text stay, but not of dots, percent signs and control
 * characters, which could lead out of a folder. Linear.
 */
export function toSlug(text: string): string {
  let slug = "";
  for (const written of writtenCharacters(withoutEntities(withoutTags(text)))) {
    if (written === "-" && (slug === "" || slug.endsWith("-"))) continue;
    if (slug.length + written.length > MAX_LENGTH) break;
    slug += written;
  }
  return trimDashes(slug);
}

function* writtenCharacters(text: string): Generator<string> {
  for (const [place, part] of text.split(/((?:%[\da-f]{2})+)/i).entries()) {
    const isOctets = place % 2 === 1;
    for (const character of isOctets ? decodeOctets(part) : plainCharacters(part))
      yield isOctets ? writtenAsOctets(character) : writtenAs(character);
  }
}

/** Bytes that are not UTF-8 are left out. */
const decodeOctets = (octets: string): string =>
  Buffer.from(octets.replaceAll("%", ""), "hex").toString("utf8").replaceAll("\ufffd", "");

function writtenAsOctets(character: string): string {
  if (character <= "\u007f") {
    const hex = character.charCodeAt(0).toString(16);
    return /[\p{Cc}.%]/u.test(character) ? "" : `%${hex}`;
  }
  if (DASH.test(character)) return "-";
  return character.replace(NOTHING, "") === "" ? "" : encodeURIComponent(character).toLowerCase();
}

function plainCharacters(text: string): string {
  const shown = text.toLowerCase();
  const letters = normaliseBounded(shown, "NFC").replace(NOTHING, "");
  // Removing characters can bring letters and accents together, so they are composed once more.
  return normaliseBounded(letters, "NFC");
}

function writtenAs(character: string): string {
  if (DASH.test(character)) return "-";
  if (/^[a-z0-9_]$/.test(character)) return character;
  return LETTERS.get(character) ?? baseOf(character) ?? encodeURIComponent(character).toLowerCase();
}

/** The Latin letter that is left of `character` without its marks. */
function baseOf(character: string): string | undefined {
  const [base = "", ...marks] = normaliseBounded(character, "NFD");
  return /^[a-z]$/.test(base) && marks.every((mark) => /[\u0300-\u036f]/.test(mark)) ? base : undefined;
}

/** Not what is between them, be it a script: WordPress keeps it too. */
const withoutTags = (text: string): string =>
  [...tokenise(text)].map(({ kind, text: part }) => (kind === "text" || kind === "raw" ? part : "")).join("");

const DASH_ENTITIES: Set<string> = new Set(["&nbsp;", "&#160;", "&ndash;", "&#8211;", "&mdash;", "&#8212;"]);

/** As WordPress: whatever stands between `&` and the next `;` on the line goes. */
const withoutEntities = (text: string): string => text.split("\n").map(lineWithoutEntities).join("\n");

function lineWithoutEntities(line: string): string {
  let rest = "";
  let from = 0;
  for (;;) {
    const start = line.indexOf("&", from);
    const end = start === -1 ? -1 : line.indexOf(";", start + 2);
    if (end === -1) return rest + line.slice(from);
    const isDash = DASH_ENTITIES.has(line.slice(start, end + 1).toLowerCase());
    rest += line.slice(from, start) + (isDash ? "-" : "");
    from = end + 1;
  }
}

function trimDashes(slug: string): string {
  const start = slug.startsWith("-") ? 1 : 0;
  return slug.slice(start, slug.endsWith("-") ? -1 : undefined);
}

export interface FreeNumbers {
  /**
   * Returns the lowest number from `from` on for which `<stem>-<number>` may be free, so that taken
   * ones need not be tried one by one; a number with more digits if all others are taken. Default:
   * returns `from`.
   */
  nextFree?: ((stem: string, from: number) => number) | undefined;
  /** Slugs that `nextFree` may skip, because their records are about to give them up. */
  vacated?: (string | undefined)[] | undefined;
}

/**
 * Returns `wanted`, or `wanted` with the lowest of `-2`, `-3` … that `isTaken` does not refuse, cut
 * so that it stays within 200 bytes and no encoded character is cut. `isTaken` must refuse only
 * finitely many.
 */
export function uniqueSlug(
  wanted: string,
  isTaken: (slug: string) => boolean,
  { nextFree = (_, from) => from, vacated = [] }: FreeNumbers = {},
): string {
  const whole = cutSlug(wanted, MAX_LENGTH);
  if (!isTaken(whole)) return whole;
  for (let digits = 1; ; digits += 1) {
    const lowest = Math.max(10 ** (digits - 1), 2);
    const limit = 10 ** digits;
    const stem = cutSlug(wanted, MAX_LENGTH - digits - 1);
    const isRefused = (number: number): boolean => isTaken(`${stem}-${number}`);
    let found = nextFree(stem, lowest);
    while (found < limit && isRefused(found)) found = nextFree(stem, found + 1);
    for (const slug of vacated) {
      const number = readSuffix(slug, stem);
      if (number >= lowest && number < found && !isRefused(number)) found = number;
    }
    if (found < limit) return `${stem}-${found}`;
  }
}

/** Returns the number after `stem`; 0 for another slug. */
function readSuffix(slug: string | undefined, stem: string): number {
  const suffix = slug?.startsWith(`${stem}-`) ? slug.slice(stem.length + 1) : "";
  return /^[1-9]\d{0,8}$/.test(suffix) ? Number(suffix) : 0;
}

/**
 * Returns at most `length` bytes of a slug, without half of an encoded character or a dash at the
 * end.
 */
export function cutSlug(slug: string, length: number): string {
  if (slug.length <= length) return slug;
  let end = length;
  // Back to the start of an encoded character: before each of its octets stands another, but before
  // the first.
  if (slug[end - 1] === "%") end -= 1;
  else if (slug[end - 2] === "%") end -= 2;
  while (isContinuation(slug, end)) end -= 3;
  return trimDashes(slug.slice(0, end));
}

/** True if the octet at `at` is a further one of an encoded character. */
const isContinuation = (slug: string, at: number): boolean =>
  slug[at] === "%" && /^[89ab]$/.test(slug[at + 1] ?? "");

const FEEDS: Set<string> = new Set(["feed", "rdf", "rss", "rss2", "atom", "embed"]);

/**
 * True if the address with this slug would mean something else on the website: a feed, an embed, or
 * for a page (`page` too: `page2`) and a post a number, which reads as a page of a list or a date.
 * WordPress's rule for addresses that end in the post's name.
 */
export function isReservedSlug(slug: string, type: string): boolean {
  if (FEEDS.has(slug)) return true;
  if (type === "page") return /^(?:page)?\d+$/.test(slug);
  return type === "post" && /^\d+$/.test(slug);
}
