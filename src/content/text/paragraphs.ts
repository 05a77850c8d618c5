/**
 * Paragraphs and line breaks for text written without them: a blank line ends a paragraph, a line
 * end is a `<br />`.
 */

import { runSteps, type Steps } from "../../core/next-turn.js";
import { BLOCK_ELEMENTS, tokenGroups } from "./markup.js";

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
export const paragraphs = (html: string): string => runSteps(paragraphSteps(html));

/** Does the same in steps. */
export function* paragraphSteps(html: string): Steps<string> {
  const open = openElements();
  // In parts: looking at the end of a text that grows copies it each time.
  const parts: string[] = [];
  let inline: string[] = [];
  let isPre = false;
  function* flush(): Steps<void> {
    if (inline.length === 0) return;
    const chunks = yield* wrapped(inline.join(""), open.innermost());
    for (const chunk of chunks) parts.push(chunk.replaceAll(KEPT_LINE_END, "\n"));
    inline = [];
  }
  const endLine = (): void => {
    if (parts.at(-1)?.endsWith("\n") === false) parts.push("\n");
  };
  for (const group of tokenGroups(html.replace(/\r\n?/g, "\n"))) {
    for (const { kind, text, name, isClosing } of group) {
      const isBlock = kind === "tag" && BLOCK_ELEMENTS.has(name);
      if (isPre && !(isClosing && name === "pre")) parts.push(text);
      else if (!isBlock) inline.push(kind === "text" ? text : text.replaceAll("\n", KEPT_LINE_END));
      else if (isClosing) {
        if (!isPre) yield* flush();
        isPre = false;
        open.leave(name);
        parts.push(text, "\n");
      } else {
        yield* flush();
        endLine();
        parts.push(text);
        if (VOID.has(name)) parts.push("\n");
        else open.enter(name);
        isPre = name === "pre";
      }
    }
    yield;
  }
  yield* flush();
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

/** Chunks of text that are wrapped in one step. */
const CHUNKS_PER_STEP = 512;

/** The texts that joined are `inline` as it stands in `container`. */
function* wrapped(inline: string, container: string | undefined): Steps<readonly string[]> {
  const chunks: string[] = [];
  const written = inline.replace(/<br\s*\/?>\s*<br\s*\/?>/gi, "\n\n").split(/\n\s*\n/);
  for (const [at, chunk] of written.entries()) {
    if (at % CHUNKS_PER_STEP === CHUNKS_PER_STEP - 1) yield;
    const text = chunk.trimEnd().replace(/^\n+/, "");
    if (text !== "") chunks.push(yield* withLineBreaks(text));
  }
  const isWrapped =
    container === undefined ||
    container === "blockquote" ||
    (chunks.length > 1 && HOLDS_PARAGRAPHS.has(container));
  if (isWrapped) return chunks.map((chunk) => `<p>${chunk}</p>\n`);
  return [chunks.join(container === "p" ? "</p>\n<p>" : "\n")];
}

/** Lines that are ended in one step. */
const LINES_PER_STEP = 4_096;

function* withLineBreaks(chunk: string): Steps<string> {
  if (!chunk.includes("\n")) return chunk;
  const lines = chunk.split("\n");
  for (const [at, written] of lines.entries()) {
    if (at % LINES_PER_STEP === LINES_PER_STEP - 1) yield;
    const line = written.trimEnd();
    const isEnded = at === lines.length - 1 || /<br\s*\/?>$/i.test(line.slice(-8));
    lines[at] = isEnded ? line : `${line}<br />`;
  }
  return lines.join("\n");
}
