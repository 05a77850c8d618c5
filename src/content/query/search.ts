/** Parses search texts and matches posts against them. Knows no index and no storage. */

import { contains, fold } from "../text/normalise.js";
import type { PostQuery } from "./types.js";

export type PostSearch = NonNullable<PostQuery["search"]>;

/** The texts of a post that a search reads in addition to the title. */
export interface SearchText {
  content: string;
  excerpt: string;
  /** The path of an attachment's file, which WordPress searches too. */
  file?: string | undefined;
  /** True if the post has a password in the version that the texts were read from. */
  isProtected?: boolean;
}

export interface SearchTerm {
  /** Folded. */
  text: string;
  /** True if the term must not occur. */
  isExcluded: boolean;
}

export interface ParsedSearch {
  terms: SearchTerm[];
  /** The whole text, folded. */
  sentence: string;
  /** The number of words and phrases, stop words included. */
  count: number;
}

/** The English stop words of WordPress. */
const STOP_WORDS: Set<string> = new Set(
  "about an are as at be by com for from how in is it of on or that the this to was what when where who will with www".split(
    " ",
  ),
);
/** With this many terms, the text is one phrase. */
const MANY_TERMS = 10;
const SEPARATORS: Set<string> = new Set(["\t", " ", ",", "+"]);

/** Splits a text into words between separators and phrases with their quotation marks. */
function splitSearch(text: string): string[] {
  const parts: string[] = [];
  let start = 0;
  while (start < text.length) {
    const first = text[start] as string;
    if (SEPARATORS.has(first)) {
      start += 1;
      continue;
    }
    let end = start + 1;
    if (first === '"') {
      const closing = text.indexOf('"', end);
      end = closing < 0 ? text.length : closing + 1;
    } else {
      while (end < text.length && text[end] !== '"' && !SEPARATORS.has(text[end] as string)) end += 1;
    }
    parts.push(text.slice(start, end));
    start = end;
  }
  return parts;
}

/** Returns `text` without the `characters` at its ends. */
function strip(text: string, characters: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && characters.includes(text[start] as string)) start += 1;
  while (end > start && characters.includes(text[end - 1] as string)) end -= 1;
  return text.slice(start, end);
}

/** Removes quotation marks. A closed phrase keeps the blanks within them. */
const removeQuotes = (part: string): string =>
  strip(part, part.length > 2 && part.startsWith('"') && part.endsWith('"') ? "\"'" : "\"' ");

/**
 * Compares the term as it was written, with its accents: neither `é` nor `thé` is a stop word.
 * WordPress drops `0`, too.
 */
const isStopWord = (term: string): boolean =>
  /^[a-zA-Z0-]?$/.test(term) || STOP_WORDS.has(term.toLowerCase());

/**
 * Splits a search text at blanks, commas and plus signs. `"…"` is a phrase, and `-word` excludes a
 * word. Single letters of ASCII and stop words are dropped. If nothing is left, or there are ten
 * terms or more, the text is one phrase. Pure, linear; the rules are those of WordPress.
 */
export function parseSearch(text: string): ParsedSearch {
  const written = text.replace(/[\r\n]/g, "");
  const sentence = fold(written);
  const parts = splitSearch(written);
  const words = parts
    .map(removeQuotes)
    .filter((term) => !isStopWord(term))
    .map(fold);
  const terms = words.length === 0 || words.length >= MANY_TERMS ? [sentence] : words;
  return {
    terms: terms.map((term) => {
      const isExcluded = term.startsWith("-");
      return { text: isExcluded ? term.slice(1) : term, isExcluded };
    }),
    sentence,
    count: parts.length,
  };
}

export interface SearchMatch {
  /** True if a post with this folded title fits; `undefined` if its texts must be read. */
  byTitle: (title: string) => boolean | undefined;
  byText: (title: string, text: SearchText) => boolean;
  /**
   * Returns the relevance of a post, lower being better; always 0 if `isRanked` is false. Texts are
   * only needed if `byTitle` returned `undefined`.
   */
  rank: (title: string, text: SearchText | undefined) => number;
}

/** With this many terms, WordPress ranks by the whole text only. */
const MANY_RANKED = 7;

type Columns = Pick<PostSearch, "text" | "columns" | "isExact">;

/** Ranks posts by the rules of WordPress. */
function createRank(
  { terms, sentence, count }: ParsedSearch,
  { isExact }: Columns,
): { ranksByTerms: boolean; rank: SearchMatch["rank"] } {
  const ranked = isExact ? [] : terms.filter(({ isExcluded }) => !isExcluded);
  const ranksByTerms = ranked.length > 0 && ranked.length < MANY_RANKED;
  const hasSentence = !/(?:^|\s)-/.test(sentence);

  function rankTitle(title: string): number | undefined {
    const isIn = ({ text }: SearchTerm): boolean => contains(title, text);
    if (count <= 1) return ranked.some(isIn) ? 0 : 1;
    if (hasSentence && contains(title, sentence)) return 1;
    if (!ranksByTerms) return undefined;
    if (ranked.every(isIn)) return 2;
    return ranked.some(isIn) ? 3 : undefined;
  }

  function rankText({ excerpt, content }: SearchText): number | undefined {
    if (!hasSentence) return undefined;
    if (contains(fold(excerpt), sentence)) return 4;
    return contains(fold(content), sentence) ? 5 : undefined;
  }

  return { ranksByTerms, rank: (title, text) => rankTitle(title) ?? (text && rankText(text)) ?? 6 };
}

/** Returns the match of `search`. `hasFiles`: file names count too, as for attachments. */
export function createSearchMatch(
  search: Columns,
  { hasFiles, isRanked }: { hasFiles: boolean; isRanked: boolean },
): SearchMatch {
  const parsed = parseSearch(search.text);
  const isSearched = (column: PostSearch["columns"][number]): boolean =>
    search.columns.length === 0 || search.columns.includes(column);
  const inTitle = isSearched("title");
  const inContent = isSearched("content");
  const inExcerpt = isSearched("excerpt");
  const needsTexts = inContent || inExcerpt || hasFiles;
  const has = (text: string, term: string): boolean =>
    search.isExact ? text === term : contains(text, term);
  const wanted = parsed.terms.filter(({ isExcluded }) => !isExcluded);
  const unwanted = parsed.terms.filter(({ isExcluded }) => isExcluded);
  const { rank, ranksByTerms } = createRank(parsed, search);

  const fits = (columns: string[]): boolean =>
    wanted.every(({ text }) => columns.some((column) => has(column, text))) &&
    !unwanted.some(({ text }) => columns.some((column) => has(column, text)));

  return {
    byTitle(title) {
      if (!needsTexts) return fits([title]);
      if (!inTitle) return undefined;
      if (unwanted.some(({ text }) => has(title, text))) return false;
      const isDecided = unwanted.length === 0 && (!isRanked || ranksByTerms);
      return isDecided && wanted.every(({ text }) => has(title, text)) ? true : undefined;
    },
    byText: (title, { content, excerpt, file }) =>
      fits([
        ...(inTitle ? [title] : []),
        ...(inContent ? [fold(content)] : []),
        ...(inExcerpt ? [fold(excerpt)] : []),
        ...(hasFiles ? [fold(file ?? "")] : []),
      ]),
    rank: isRanked ? rank : () => 0,
  };
}
