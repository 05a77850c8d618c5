/** Texts that are slow to read for careless code: each of `length` characters. */

const filled = (part: string, start = ""): ((length: number) => string) => {
  return (length) =>
    start +
    part.repeat(Math.max(0, Math.ceil(length / part.length))).slice(0, Math.max(length - start.length, 0));
};

export const HOSTILE_TEXTS: { readonly [name: string]: (length: number) => string } = {
  "a tag that never ends": filled("a", "<"),
  "opening brackets": filled("<"),
  "combining marks out of order": filled("\u0315\u0316", "a"),
  slashes: filled("/", "http://localhost/"),
  blanks: filled(" ", "x"),
  parentheses: filled("("),
  "a style with an open url": (length) => `<p style="background:url(${filled(" ")(length - 30)}">`,
  commas: filled("1,"),
  digits: filled("9", "1"),
  ampersands: filled("&"),
  "square brackets": filled("["),
  escapes: filled("%C3%A9"),
  "broken escapes": filled("%"),
  comments: filled("<!--"),
  "an international host": filled("ü.", "https://"),
  "block delimiters": filled('<!-- wp:a {"a":'),
  quotes: filled("'\""),
  "nested elements": filled("<b>"),
  "cells that close each other": filled("<td><tr>"),
  "elements that overlap": filled("<b><i></b>"),
  lines: filled("\n\n<p>"),
  surrogates: filled("\ud83d\ude00"),
};
