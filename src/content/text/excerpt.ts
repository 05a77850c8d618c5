/** The excerpt of a post whose author wrote none: the first words of its content. */

import { runSteps, type Steps } from "../../core/next-turn.js";
import { splitBlocks } from "./blocks.js";
import { stripToken, tokenGroups } from "./markup.js";
import { type IsShortCode, isBuiltInShortCode, stripShortCodes } from "./short-codes.js";

/** WordPress's list of blocks whose text reads alone, and of those that only hold others. */
const READABLE_BLOCKS: Set<string> = new Set(
  (
    "freeform heading html list list-item media-text paragraph preformatted pullquote quote table verse " +
    "columns column group"
  )
    .split(" ")
    .map((name) => `core/${name}`),
);

/**
 * At most `words` words of the content up to `<!--more-->` or the first page break, without tags,
 * short codes and blocks that are no text; with ` [&hellip;]` where words are left out. Raw text
 * with entities, to be rendered as an excerpt; no `<` is left in it. Linear; what
 * follows the last word is not read.
 */
export const makeExcerpt = (content: string, words = 55): string => runSteps(excerptSteps(content, words));

/** Does the same in steps. */
export function* excerptSteps(
  content: string,
  words: number,
  isShortCode: IsShortCode = isBuiltInShortCode,
): Steps<string> {
  const found: string[] = [];
  // The text since the last blank, whose word may go on.
  let rest: string[] = [];
  const teaser = yield* stripShortCodes(teaserOf(content), isShortCode);
  for (const group of tokenGroups(readableBlocks(teaser))) {
    const text = group.map((token) => stripToken(token, { apart: true })).join("");
    rest.push(text);
    if (/[\n\r\t ]/.test(text)) {
      const split = rest.join("").split(/[\n\r\t ]+/);
      rest = split.slice(-1);
      for (const word of split.slice(0, -1)) if (word !== "") found.push(word);
    }
    if (found.length > words) break;
    yield;
  }
  const last = rest.join("");
  if (last !== "") found.push(last);
  if (found.length <= words) return found.join(" ");
  return `${found.slice(0, Math.max(0, words)).join(" ")} [&hellip;]`;
}

function teaserOf(content: string): string {
  const end = content.search(/<!--(?:nextpage|more(?: [^<>]*)?)-->/);
  return end === -1 ? content : content.slice(0, end);
}

function readableBlocks(content: string): string {
  let text = "";
  let skipped = 0;
  for (const part of splitBlocks(content)) {
    if (typeof part === "string") {
      if (skipped === 0) text += part;
    } else if (part.kind === "open") {
      if (skipped > 0 || !READABLE_BLOCKS.has(part.name)) skipped += 1;
    } else if (part.kind === "close" && skipped > 0) {
      skipped -= 1;
    }
  }
  return text;
}
