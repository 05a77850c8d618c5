/**
 * Paragraphs and line breaks for text written without them: a blank line ends a paragraph, a line
 * end is a `<br />`.
 */

import { BLOCK_ELEMENTS, tokenise } from "./markup.js";

/** Where text of several paragraphs may stand; of a single one it stays as it is. */
const HOLDS_PARAGRAPHS: ReadonlySet<string> = new Set(
  "article aside dd details div fieldset figure footer form header li main nav section td th".split(" "),
);

const VOID: ReadonlySet<string> = new Set(["area", "col", "hr"]);

/**
 * Replaces a line end inside a tag or a script, which begins no new line of text. A noncharacter,
 * which Unicode reserves for internal use.
 */
const KEPT_LINE_END = "\ufdd2";

/**
 * The HTML with `<p>` around text that stands on its own or in a `<blockquote>`, and `<br />` at
 * its line ends; elements on lines of their own get them. Not within `<pre>`, tags, comments,
 * scripts. The rule of WordPress for content without blocks. Ends with a line end; empty for blanks
 * alone. Linear.
 */
export function paragraphs(html: string): string {
  const open = openElements();
  // In parts: looking at the end of a text that grows copies it each time.
  const parts: string[] = [];
  let inline: string[] = [];
  let isPre = false;
  const flush = (): void => {
    const text = wrapped(inline.join(""), open.innermost()).replaceAll(KEPT_LINE_END, "\n");
    if (text !== "") parts.push(text);
    inline = [];
  };
  const endLine = (): void => {
    if (parts.at(-1)?.endsWith("\n") === false) parts.push("\n");
  };
  for (const { kind, text, name, isClosing } of tokenise(html.replace(/\r\n?/g, "\n"))) {
    const isBlock = kind === "tag" && BLOCK_ELEMENTS.has(name);
    if (isPre && !(isClosing && name === "pre")) parts.push(text);
    else if (!isBlock) inline.push(kind === "text" ? text : text.replaceAll("\n", KEPT_LINE_END));
    else if (isClosing) {
      if (!isPre) flush();
      isPre = false;
      open.leave(name);
      parts.push(text, "\n");
    } else {
      flush();
      endLine();
      parts.push(text);
      if (VOID.has(name)) parts.push("\n");
      else open.enter(name);
      isPre = name === "pre";
    }
  }
  flush();
  endLine();
  return parts.join("");
}

interface OpenElements {
  readonly innermost: () => string | undefined;
  readonly enter: (name: string) => void;
  /** Also what was left open in it; nothing where it is not open. */
  readonly leave: (name: string) => void;
}

function openElements(): OpenElements {
  const names: string[] = [];
  const counts = new Map<string, number>();
  const pop = (): string | undefined => {
    const name = names.pop();
    if (name !== undefined) counts.set(name, (counts.get(name) ?? 0) - 1);
    return name;
  };
  return {
    innermost: () => names.at(-1),
    enter: (name) => {
      if (names.at(-1) === "p") pop();
      names.push(name);
      counts.set(name, (counts.get(name) ?? 0) + 1);
    },
    leave: (name) => {
      if ((counts.get(name) ?? 0) === 0) return;
      while (pop() !== name);
    },
  };
}

function wrapped(inline: string, container: string | undefined): string {
  const chunks = inline
    .replace(/<br\s*\/?>\s*<br\s*\/?>/gi, "\n\n")
    .split(/\n\s*\n/)
    .map((chunk) => chunk.trimEnd().replace(/^\n+/, ""))
    .filter((chunk) => chunk !== "")
    .map(withLineBreaks);
  const isWrapped =
    container === undefined ||
    container === "blockquote" ||
    (chunks.length > 1 && HOLDS_PARAGRAPHS.has(container));
  if (isWrapped) return chunks.map((chunk) => `<p>${chunk}</p>\n`).join("");
  return chunks.join(container === "p" ? "</p>\n<p>" : "\n");
}

function withLineBreaks(chunk: string): string {
  const lines = chunk.split("\n").map((line) => line.trimEnd());
  return lines
    .map((line, index) =>
      index === lines.length - 1 || /<br\s*\/?>$/i.test(line.slice(-8)) ? line : `${line}<br />`,
    )
    .join("\n");
}
