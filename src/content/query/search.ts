/** What a search text asks for, and whether a post fits. Knows no index and no storage. */

import { contains } from "./contains.js";
import { fold } from "./folding.js";
import type { PostQuery } from "./types.js";

export type PostSearch = NonNullable<PostQuery["search"]>;

/** What a search looks into besides the title. */
export interface SearchText {
  readonly content: string;
  readonly excerpt: string;
  /** Of attachments: the path of the file, which the reference searches too. */
  readonly file?: string | undefined;
  /** True for a post that has a password in the version that the texts were read from. */
  readonly isProtected?: boolean;
}

export interface SearchTerm {
  /** Folded. */
  readonly text: string;
  /** Must not occur. */
  readonly isExcluded: boolean;
}

export interface ParsedSearch {
  readonly terms: readonly SearchTerm[];
  /** The whole text, folded. */
  readonly sentence: string;
  /** Words and phrases before those that say nothing were dropped. */
  readonly count: number;
}

/** Of the reference, in English. */
const STOP_WORDS: ReadonlySet<string> = new Set(
  "about an are as at be by com for from how in is it of on or that the this to was what when where who will with www".split(
    " ",
  ),
);
/** From so many terms on, the text is taken as one phrase. */
const MANY_TERMS = 10;
const SEPARATORS: ReadonlySet<string> = new Set(["\t", " ", ",", "+"]);

/** Words between separators, and phrases with their quotation marks. */
function split(text: string): readonly string[] {
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

/** `text` without the `characters` at its ends. */
function strip(text: string, characters: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && characters.includes(text[start] as string)) start += 1;
  while (end > start && characters.includes(text[end - 1] as string)) end -= 1;
  return text.slice(start, end);
}

/** A closed phrase keeps the blanks within its quotation marks. */
const bare = (part: string): string =>
  strip(part, part.length > 2 && part.startsWith('"') && part.endsWith('"') ? "\"'" : "\"' ");

const saysNothing = (term: string): boolean => /^[a-z-]?$/.test(term) || STOP_WORDS.has(term);

/**
 * Words at blanks, commas and plus signs; `"a phrase"`; `-word` excludes. Single letters and stop words are dropped. With nothing left, or from
 * ten terms on, the text is one phrase. Pure, linear. Source of the rules: the reference.
 */
export function parseSearch(text: string): ParsedSearch {
  const sentence = fold(text.replace(/[\r\n]/g, ""));
  const parts = split(sentence);
  const kept = parts.map(bare).filter((term) => !saysNothing(term));
  const terms = kept.length === 0 || kept.length >= MANY_TERMS ? [sentence] : kept;
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
  /** Whether a post with this folded title fits; `undefined` where that takes its texts. */
  readonly byTitle: (title: string) => boolean | undefined;
  readonly byText: (title: string, text: SearchText) => boolean;
  /** Lower is better; the texts matter only where `byTitle` left it open. 0 for all where it is not asked for. */
  readonly rank: (title: string, text: SearchText | undefined) => number;
}

/** From so many terms on, the reference ranks by the whole text only. */
const MANY_RANKED = 7;

/** What `search` asks of posts whose file names count (`hasFiles`, attachments) or not. */
export function createSearchMatch(
  search: Pick<PostSearch, "text" | "columns" | "isExact">,
  { hasFiles, isRanked }: { hasFiles: boolean; isRanked: boolean },
): SearchMatch {
  const { terms, sentence, count } = parseSearch(search.text);
  const all = search.columns.length === 0;
  const [inTitle, inContent, inExcerpt] = (["title", "content", "excerpt"] as const).map(
    (column) => all || search.columns.includes(column),
  );
  const needsTexts = inContent || inExcerpt || hasFiles;
  const has = (text: string, term: string): boolean =>
    search.isExact ? text === term : contains(text, term);
  const wanted = terms.filter(({ isExcluded }) => !isExcluded);
  const unwanted = terms.filter(({ isExcluded }) => isExcluded);
  const ranked = search.isExact ? [] : wanted;
  const ranksByTerms = ranked.length > 0 && ranked.length < MANY_RANKED;
  const isPlain = !/(?:^|\s)-/.test(sentence);

  function fits(columns: readonly string[]): boolean {
    return (
      wanted.every(({ text }) => columns.some((column) => has(column, text))) &&
      !unwanted.some(({ text }) => columns.some((column) => has(column, text)))
    );
  }

  return {
    byTitle(title) {
      if (!needsTexts) return fits([title]);
      if (!inTitle) return undefined;
      if (unwanted.some(({ text }) => has(title, text))) return false;
      const isSettled = unwanted.length === 0 && (!isRanked || ranksByTerms);
      return isSettled && wanted.every(({ text }) => has(title, text)) ? true : undefined;
    },
    byText: (title, { content, excerpt, file }) =>
      fits([
        ...(inTitle ? [title] : []),
        ...(inContent ? [fold(content)] : []),
        ...(inExcerpt ? [fold(excerpt)] : []),
        ...(hasFiles ? [fold(file ?? "")] : []),
      ]),
    rank(title, text) {
      if (!isRanked) return 0;
      const isIn = ({ text: term }: SearchTerm): boolean => contains(title, term);
      if (count <= 1) return ranked.some(isIn) ? 0 : 1;
      if (isPlain && contains(title, sentence)) return 1;
      if (ranksByTerms && ranked.every(isIn)) return 2;
      if (ranksByTerms && ranked.some(isIn)) return 3;
      if (isPlain && text && contains(fold(text.excerpt), sentence)) return 4;
      if (isPlain && text && contains(fold(text.content), sentence)) return 5;
      return 6;
    },
  };
}
